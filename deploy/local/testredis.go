package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	redisStarts    = 3 // attempts: another process may take the free port before Redis does
	redisStartTime = 5 * time.Second
	redisStopTime  = 5 * time.Second
)

// testRedis is a redis-server that keeps nothing.
type testRedis struct {
	addr   string
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has been waited for
}

func startTestRedis(ctx context.Context, dir string) (*testRedis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	var errs []error
	for range redisStarts {
		port, err := freePort(ctx)
		if err != nil {
			return nil, err
		}
		r := &testRedis{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), exited: make(chan struct{})}
		r.cmd = exec.Command(path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), //nolint:noctx // stop ends it, with time to clean up
			"--dir", dir, "--save", "", "--appendonly", "no", "--loglevel", "warning")
		if err := r.start(ctx); err == nil {
			return r, nil
		} else if ctx.Err() != nil {
			return nil, err
		} else {
			errs = append(errs, err)
		}
	}
	return nil, errors.Join(errs...)
}

// start begins the process from a thread that lives as long as the process: with Pdeathsig the
// kernel kills the child when the thread that forked it ends, not only when the process does.
func (r *testRedis) start(ctx context.Context) error {
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(r.exited)
		err := r.cmd.Start()
		started <- err
		if err == nil {
			_ = r.cmd.Wait() // how it ended says nothing that a failing client does not
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	if err := r.answers(ctx); err != nil {
		r.stop()
		return err
	}
	return nil
}

// answers waits until our own process answers: one that lost its port to another has exited.
func (r *testRedis) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, redisStartTime)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := r.tellsPid(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-r.exited:
			return fmt.Errorf("redis-server on %s exited: %s", r.addr, r.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("redis-server on %s does not answer: %w", r.addr, errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

func (r *testRedis) tellsPid(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", r.addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if _, err := io.WriteString(conn, "INFO server\r\n"); err != nil {
		return err
	}
	want := fmt.Sprintf("process_id:%d", r.cmd.Process.Pid)
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == want:
			return nil
		case strings.HasPrefix(line, "process_id:"), strings.HasPrefix(line, "-"):
			return fmt.Errorf("another server answers: %q", line)
		}
	}
	return errors.Join(errors.New("no process id in its answer"), lines.Err())
}

func (r *testRedis) stop() {
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.exited:
	case <-time.After(redisStopTime):
		_ = r.cmd.Process.Kill()
		<-r.exited
	}
}

func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
