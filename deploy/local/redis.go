package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
)

const (
	redisStarts    = 3 // attempts: another process may take the free port before Redis does
	redisStartTime = 5 * time.Second
)

// redis carries the doorbell and keeps nothing: a redis-server, or miniredis inside this process.
type redis struct {
	addr    string
	process *process
	inside  *miniredis.Miniredis
}

// startDoorbell takes a redis-server where there is one, and else miniredis. Port 0 takes a free one.
func startDoorbell(ctx context.Context, dir string, port int) (*redis, error) {
	if _, err := exec.LookPath("redis-server"); err == nil {
		return startRedis(ctx, dir, port)
	}
	inside := miniredis.NewMiniRedis()
	if err := inside.StartAddr(net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
		return nil, fmt.Errorf("start miniredis: %w", err)
	}
	return &redis{addr: inside.Addr(), inside: inside}, nil
}

func startRedis(ctx context.Context, dir string, port int) (*redis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	var errs []error
	for range redisStarts {
		at := port
		if at == 0 {
			if at, err = freePort(ctx); err != nil {
				return nil, err
			}
		}
		r := &redis{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(at))}
		r.process, err = startProcess("redis-server", nil, nil, path, "--bind", "127.0.0.1", "--port", strconv.Itoa(at),
			"--dir", dir, "--save", "", "--appendonly", "no", "--loglevel", "warning")
		if err == nil {
			if err = r.answers(ctx); err == nil {
				return r, nil
			}
			_ = r.stop()
		}
		if errs = append(errs, err); ctx.Err() != nil || port != 0 {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// kind names what runs, for people.
func (r *redis) kind() string {
	if r.inside != nil {
		return "miniredis in this process"
	}
	return fmt.Sprintf("redis-server, process %d", r.process.pid())
}

// answers waits until our own process answers: one that lost its port to another has exited.
func (r *redis) answers(ctx context.Context) error {
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
		case <-r.process.exited:
			return fmt.Errorf("redis-server on %s exited: %s", r.addr, r.process.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("redis-server on %s does not answer: %w", r.addr, errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

func (r *redis) tellsPid(ctx context.Context) error {
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
	want := fmt.Sprintf("process_id:%d", r.process.pid())
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

func (r *redis) stop() error {
	if r.inside != nil {
		r.inside.Close()
		return nil
	}
	return r.process.stop()
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
