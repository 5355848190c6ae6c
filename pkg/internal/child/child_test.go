package child_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/internal/child"
)

// parentEnv makes this test binary play a parent that is about to be killed.
const parentEnv = "CHILD_TEST_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		parent(dir)
	}
	os.Exit(m.Run())
}

// parent starts a child that ignores the death signal, so that only the mourner can end it, prints
// its process id and waits to be killed.
func parent(dir string) {
	p, err := child.Start(exec.Command("/bin/sh", "-c", `trap "" TERM; while :; do sleep 1; done`), syscall.SIGTERM, nil)
	if err != nil {
		panic(err)
	}
	mourner, err := child.Mourn(p.Pid, dir)
	if err != nil {
		panic(err)
	}
	fmt.Println(p.Pid)
	<-p.Done()
	_ = mourner()
}

func start(t *testing.T, script string) *child.Process {
	t.Helper()
	p, err := child.Start(exec.Command("/bin/sh", "-c", script), syscall.SIGKILL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	return p
}

func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mourned")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestProcessEndsByItself(t *testing.T) {
	t.Parallel()
	p := start(t, "echo out; echo err >&2; exit 3")
	<-p.Done()
	var exit *exec.ExitError
	if !errors.As(p.Err(), &exit) || exit.ExitCode() != 3 {
		t.Errorf("got %v", p.Err())
	}
	if got := p.Output(); got != "out\nerr\n" {
		t.Errorf("kept %q", got)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("Stop after the end: %v", err)
	}
}

func TestStopGoesOnToKill(t *testing.T) {
	t.Parallel()
	p := start(t, `trap "" TERM; while :; do sleep 1; done`)
	if err := p.Stop(child.Step{Signal: syscall.SIGTERM, Wait: 10 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if p.Err() == nil {
		t.Error("a killed process ended without an error")
	}
}

func TestStartOfNothing(t *testing.T) {
	t.Parallel()
	if _, err := child.Start(exec.Command("/nonexistent"), syscall.SIGKILL, nil); err == nil {
		t.Error("started nothing")
	}
}

func TestKilledParentTakesChildAndFolderAlong(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), parentEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	deadline := time.After(20 * time.Second)
	for {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			break
		}
		select {
		case <-deadline:
			t.Fatal("the folder is still there")
		case <-time.After(20 * time.Millisecond):
		}
	}
	if s := state(pid); s != "" && s != "Z" {
		t.Errorf("process %d is still %s", pid, s)
	}
}

func TestMournerLeavesAStoppedChildAlone(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	bystander := start(t, "exec sleep 60") // whoever has the process id by then
	done, err := child.Mourn(bystander.Pid, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(done(), done()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
	select {
	case <-bystander.Done():
		t.Error("the mourner ended a process that it was told has stopped")
	default:
	}
}

// state returns a process's state letter, "" when it is gone.
func state(pid int) string {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest[:1]
}
