package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

// TestMain also plays the programs that tests start: one service, or a whole stack.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		switch os.Args[1] {
		case "service":
			exit(RunService(ctx, os.Args[2], config.Environ(), os.Stderr))
		case "stack":
			exit(holdStack(ctx, os.Args[2]))
		}
	}
	m.Run()
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// holdStack runs a stack until ctx ends, and says when it is up.
func holdStack(ctx context.Context, dir string) error {
	s, err := Start(ctx, testConfig(dir))
	if err != nil {
		return err
	}
	fmt.Println("up")
	<-ctx.Done()
	return s.Stop()
}

func testConfig(dir string) Config {
	return Config{Dir: dir, Processes: true, Command: []string{os.Args[0], "service"}}
}

// stateDir is a folder that the user postgres can enter, which t.TempDir need not be.
func stateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "fenceline-stack-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestStackStopsAllThatItStarted(t *testing.T) {
	s, err := Start(t.Context(), testConfig(stateDir(t)))
	if err != nil {
		t.Fatal(err)
	}
	started := descendants(t, os.Getpid())
	if want := len(Services) + 2; len(started) < want {
		t.Errorf("%d processes run, want at least the %d of PostgreSQL, Redis and the services: %v", len(started), want, started)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	for pid, name := range started {
		if alive(pid) {
			t.Errorf("%s, process %d, is still there", name, pid)
		}
	}
	for name, addr := range map[string]string{
		"webhook": s.At.Webhook, "GitHub": s.At.GitHub, "control": s.At.Control, "Redis": s.At.Redis, "PostgreSQL": s.At.Postgres,
		"scheduler": s.At.GRPC["scheduler"],
	} {
		if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			_ = conn.Close()
			t.Errorf("something still listens where %s was, on %s", name, addr)
		}
	}
	select {
	case err := <-s.Failed():
		t.Errorf("a stopped part was reported as failed: %v", err)
	default:
	}
}

func TestStackStartsAgainAfterItWasKilled(t *testing.T) {
	dir := stateDir(t)
	cmd := exec.Command(os.Args[0], "stack", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("the first stack said %q, %v", line, err)
	}
	if _, err := Start(t.Context(), testConfig(dir)); err == nil || !strings.Contains(err.Error(), strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("a second stack on the same folder: %v, want the process that runs there named", err)
	}
	orphans := descendants(t, cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	s, err := Start(t.Context(), testConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for pid, name := range orphans {
		if alive(pid) {
			t.Errorf("%s, process %d, outlived its stack", name, pid)
		}
	}
}

func TestStackSaysWhichSettingIsWrong(t *testing.T) {
	cfg := testConfig(stateDir(t))
	cfg.Processes, cfg.Env = false, map[string]string{"SCHEDULER_QUIET": "soon"}
	before := descendants(t, os.Getpid())
	_, err := Start(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "SCHEDULER_QUIET") {
		t.Errorf("got %v, want the variable named", err)
	}
	for pid, name := range descendants(t, os.Getpid()) {
		if _, was := before[pid]; !was && alive(pid) {
			t.Errorf("%s, process %d, was left by a start that failed", name, pid)
		}
	}
}

func TestStackReportsAPartThatEnds(t *testing.T) {
	s, err := Start(t.Context(), testConfig(stateDir(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop() }()
	for pid, name := range descendants(t, os.Getpid()) {
		if strings.Contains(name, "redis-server") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	select {
	case err := <-s.Failed():
		if !strings.Contains(err.Error(), "redis-server") {
			t.Errorf("got %v, want redis-server named", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("nothing was reported")
	}
}

func TestFixedPortsThatAreTakenAreNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := l.Addr().(*net.TCPAddr).Port
	_, err = fixedAddresses(t.Context(), port-controlOffset)
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) || !strings.Contains(err.Error(), "control API") {
		t.Errorf("got %v, want address and purpose named", err)
	}
}

func TestStateFolderOfSomebodyElseIsRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/tmp", dir); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want the folder refused", err)
	}
}

// descendants are the processes below one, by pid, with their command lines.
func descendants(t *testing.T, root int) map[int]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Skip("no /proc to look at")
	}
	parents := map[int]int{}
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		_, after, _ := strings.Cut(string(content), ") ")
		fields := strings.Fields(after)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || len(fields) < 2 {
			continue
		}
		if parents[pid], err = strconv.Atoi(fields[1]); err != nil {
			t.Fatal(err)
		}
	}
	found := map[int]string{}
	for pid := range parents {
		for at := parents[pid]; at > 1; at = parents[at] {
			if at == root {
				command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				found[pid] = strings.ReplaceAll(string(command), "\x00", " ")
				break
			}
		}
	}
	return found
}

// alive reports whether a process is there and no zombie.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(content), ") Z ")
}
