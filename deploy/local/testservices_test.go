package local

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestWithServicesRunsTheCommandBesideItsServers(t *testing.T) {
	t.Setenv(envTestPostgres, "")
	t.Setenv(envTestRedis, "")
	var out bytes.Buffer
	opts := TestServices{Stdout: &out, Stderr: os.Stderr}
	if err := WithServices(t.Context(), opts, "sh", "-c", "echo $"+envTestPostgres+"; echo $"+envTestRedis); err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(out.String())
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "postgres") {
		t.Fatalf("the command saw %q, want a DSN and an address", lines)
	}
	if conn, err := net.Dial("tcp", lines[1]); err == nil {
		_ = conn.Close()
		t.Errorf("redis at %s is still there", lines[1])
	}
}

func TestWithServicesUsesServersThatAreNamed(t *testing.T) {
	t.Setenv(envTestPostgres, "postgres://elsewhere")
	t.Setenv(envTestRedis, "elsewhere:6379")
	var out bytes.Buffer
	err := WithServices(t.Context(), TestServices{Stdout: &out}, "sh", "-c", "echo $"+envTestPostgres+" $"+envTestRedis)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "postgres://elsewhere elsewhere:6379\n"; got != want {
		t.Errorf("the command saw %q, want %q", got, want)
	}
}

func TestWithServicesPassesTheExitCodeOn(t *testing.T) {
	t.Setenv(envTestPostgres, "postgres://elsewhere")
	t.Setenv(envTestRedis, "elsewhere:6379")
	err := WithServices(t.Context(), TestServices{}, "sh", "-c", "exit 7")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("got %v, want exit code 7", err)
	}
}

func TestWithServicesInterruptsTheCommand(t *testing.T) {
	t.Setenv(envTestPostgres, "postgres://elsewhere")
	t.Setenv(envTestRedis, "elsewhere:6379")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready := cancelWhenWritten(cancel)
	err := WithServices(ctx, TestServices{Stdout: ready}, "sh", "-c", "trap 'exit 9' INT; echo ready; while :; do sleep 0.01; done")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 9 {
		t.Errorf("got %v, want the exit code of the command's own handler", err)
	}
}

type cancelWhenWritten func()

func (f cancelWhenWritten) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}
