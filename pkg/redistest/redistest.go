// Package redistest gives tests a Redis.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/pkg/internal/child"
)

// Variable names the environment variable with the host:port of a Redis to use.
const Variable = "FENCELINE_TEST_REDIS"

// readyWithin bounds the start of a server.
const readyWithin = 30 * time.Second

// New returns the host:port of a Redis: that of $FENCELINE_TEST_REDIS, else a redis-server that is
// started for this test process and goes with it, else, where none is installed, miniredis. Tests
// share it: each keeps to keys of its own.
func New(t testing.TB) string {
	t.Helper()
	r, err := theRedis()
	if err != nil {
		t.Fatalf("redistest: no Redis: %v", err)
	}
	return r.addr
}

// Server starts a redis-server, or a miniredis, for one test alone, which may stop, pause and flush
// it. It ends with the test.
func Server(t testing.TB) *Redis {
	t.Helper()
	r, err := start()
	if err != nil {
		t.Fatalf("redistest: no Redis: %v", err)
	}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Errorf("redistest: %v", err)
		}
	})
	return r
}

// Goroutines excuses what a server that was started for this process keeps running, and a client's last look for one.
func Goroutines() []goleak.Option {
	const process = "github.com/fenceline-dev/fenceline/pkg/internal/child.(*Process)."
	return []goleak.Option{
		goleak.IgnoreAnyFunction(process + "own"), goleak.IgnoreAnyFunction(process + "pump"),
		goleak.IgnoreAnyFunction("github.com/alicebob/miniredis/v2/server.(*Server).servePeer"),
		goleak.IgnoreAnyFunction("github.com/alicebob/miniredis/v2/server.(*Server).serve"),
		// go-redis looks once a second whether a server that refused it is back, and only then notices that it was closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
	}
}

// Redis is a running server.
type Redis struct {
	addr    string
	process *child.Process // nil: another's, or miniredis
	stop    func() error
}

// Addr returns host:port.
func (r *Redis) Addr() string { return r.addr }

// Real reports whether this is a redis-server, and not miniredis.
func (r *Redis) Real() bool { return r.process != nil }

// Stop ends the server and what it held. A second call returns what the first did.
func (r *Redis) Stop() error { return r.stop() }

// Pause stops the process without closing its connections, as a hanging machine would; Resume lets
// it go on. Both need a real one.
func (r *Redis) Pause() error { return r.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (r *Redis) Resume() error { return r.signal(syscall.SIGCONT) }

func (r *Redis) signal(s syscall.Signal) error {
	if r.process == nil {
		return errors.New("redistest: only a redis-server of one's own can be paused")
	}
	return syscall.Kill(r.process.Pid, s)
}

var theRedis = sync.OnceValues(func() (*Redis, error) {
	if addr := os.Getenv(Variable); addr != "" {
		return &Redis{addr: addr, stop: func() error { return nil }}, nil
	}
	return start()
})

func start() (*Redis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		m, err := miniredis.Run()
		if err != nil {
			return nil, err
		}
		return &Redis{addr: m.Addr(), stop: func() error { m.Close(); return nil }}, nil
	}
	for n := 1; ; n++ { // a free port may be lost between finding and taking it
		r, err := startServer(path)
		if err == nil || n == 3 {
			return r, err
		}
	}
}

func startServer(path string) (*Redis, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/tmp", "fenceline-redistest-")
	if err != nil {
		return nil, err
	}
	//nolint:noctx // redis-server, which lives as long as this process
	cmd := exec.Command(path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no")
	process, err := child.Start(cmd, syscall.SIGKILL, nil) // it holds nothing worth a clean end
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	mourner, err := child.Mourn(process.Pid, dir)
	if err != nil {
		return nil, errors.Join(err, process.Stop(), os.RemoveAll(dir))
	}
	r := &Redis{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), process: process}
	r.stop = sync.OnceValue(func() error {
		_ = r.Resume() // a stopped process keeps a SIGTERM for later
		return errors.Join(process.Stop(child.Step{Signal: syscall.SIGTERM, Wait: 5 * time.Second}), mourner())
	})
	if err := r.ready(); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	return r, nil
}

// ready returns when the server answers a PING.
func (r *Redis) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	for {
		err := ping(ctx, r.addr)
		if err == nil {
			return nil
		}
		select {
		case <-r.process.Done():
			return fmt.Errorf("redis-server ended: %s", r.process.Output())
		case <-ctx.Done():
			return fmt.Errorf("redis-server does not answer: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func ping(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer := make([]byte, 7)
	if _, err := conn.Read(answer); err != nil {
		return err
	}
	if string(answer) != "+PONG\r\n" {
		return fmt.Errorf("PING answered %q", answer)
	}
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // binds at once
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
