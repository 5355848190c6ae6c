package pglocal_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pglocal"
)

// dir is a folder that the user postgres can enter, which t.TempDir need not be.
func dir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("/tmp", "pglocal-test-") //nolint:usetesting // the user postgres has to enter, and TempDir is closed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(d) })
	if err := os.Chmod(d, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

func start(t *testing.T, o pglocal.Options) *pglocal.Cluster {
	t.Helper()
	c, err := pglocal.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	return c
}

func query(t *testing.T, dsn, sql string) (string, error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var got string
	return got, conn.QueryRow(t.Context(), sql).Scan(&got)
}

func TestClusterKeepsItsDataOverRestarts(t *testing.T) {
	t.Parallel()
	d := dir(t)
	c := start(t, pglocal.Options{Dir: d, Fsync: true})
	if got, err := query(t, c.DSN("postgres"), "SELECT current_setting('fsync') || current_setting('listen_addresses')"); err != nil || got != "on127.0.0.1" {
		t.Fatalf("got %q, %v", got, err)
	}
	if _, err := query(t, c.DSN("postgres"), "SELECT 'x' FROM set_config('a.b','c',false)"); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), c.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "CREATE TABLE kept AS SELECT 'here' AS v"); err != nil {
		t.Fatal(err)
	}
	if _, err := pglocal.Start(t.Context(), pglocal.Options{Dir: d}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("a second supervisor got in: %v", err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Fatalf("second Stop: %v", err)
	}
	select {
	case <-c.Done():
	default:
		t.Fatal("Stop returned before the server ended")
	}
	port := c.Port
	c = start(t, pglocal.Options{Dir: d, Port: port})
	if got, err := query(t, c.DSN("postgres"), "SELECT v || current_setting('fsync') FROM kept"); err != nil || got != "hereoff" {
		t.Fatalf("got %q, %v", got, err)
	}
	if c.Port != port {
		t.Errorf("port %d, want %d", c.Port, port)
	}
}

func TestPasswordIsNeeded(t *testing.T) {
	t.Parallel()
	c := start(t, pglocal.Options{Dir: dir(t)})
	cfg, err := pgx.ParseConfig(c.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Password = "guess"
	if conn, err := pgx.ConnectConfig(t.Context(), cfg); err == nil {
		_ = conn.Close(t.Context())
		t.Fatal("any password opens the cluster over TCP")
	}
}

func TestStartAfterCrash(t *testing.T) {
	t.Parallel()
	d := dir(t)
	c := start(t, pglocal.Options{Dir: d})
	if err := syscall.Kill(c.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	_ = c.Stop()
	pidFile := filepath.Join(d, "data", "postmaster.pid")
	if _, err := os.Stat(pidFile); err != nil {
		t.Fatalf("a killed server leaves its file: %v", err)
	}
	// The process id now belongs to someone else: a process of the server's own user, which
	// PostgreSQL takes for a live server.
	squatter := exec.Command("sleep", "60")
	if os.Geteuid() == 0 {
		info, err := os.Stat(pidFile)
		if err != nil {
			t.Fatal(err)
		}
		st := info.Sys().(*syscall.Stat_t)
		squatter.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: st.Uid, Gid: st.Gid}}
		squatter.Dir = "/"
	}
	if err := squatter.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = squatter.Process.Kill(); _ = squatter.Wait() }()
	content, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(content), "\n")
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(squatter.Process.Pid)+"\n"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	c = start(t, pglocal.Options{Dir: d})
	if got, err := query(t, c.DSN("postgres"), "SELECT 'up'"); err != nil || got != "up" {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestInterruptedInitIsStartedOver(t *testing.T) {
	t.Parallel()
	d := dir(t)
	if err := os.MkdirAll(filepath.Join(d, "data.new", "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	start(t, pglocal.Options{Dir: d})
}

func TestStartFailsWithTheServersWords(t *testing.T) {
	t.Parallel()
	c := start(t, pglocal.Options{Dir: dir(t)})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := pglocal.Start(ctx, pglocal.Options{Dir: dir(t), Port: c.Port})
	if err == nil || !strings.Contains(err.Error(), strconv.Itoa(c.Port)) && !strings.Contains(err.Error(), "TCP/IP") {
		t.Fatalf("got %v", err)
	}
}

func TestUnreachableFolderIsNamed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root's server runs as another user")
	}
	closed := filepath.Join(dir(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := pglocal.Start(t.Context(), pglocal.Options{Dir: filepath.Join(closed, "pg")})
	if err == nil || !strings.Contains(err.Error(), "can't enter "+closed) {
		t.Fatalf("got %v", err)
	}
}
