package boot_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/pkg/boot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBoom = errors.New("boom")

type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// marker is a log that tells when a text was written.
type marker struct {
	text string
	seen chan struct{}
	once sync.Once
}

func (m *marker) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(m.text)) {
		m.once.Do(func() { close(m.seen) })
	}
	return len(p), nil
}

func options(log io.Writer) boot.Options {
	return boot.Options{Service: "ledger", Debug: boot.DebugConfig{Listen: "127.0.0.1:0"}, Stderr: log, StopTimeout: 10 * time.Second}
}

// within fails the test where what has to happen soon does not.
func within[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("%s did not happen", what)
		panic("unreachable")
	}
}

// get returns status and body of a path of the debug listener.
func get(t *testing.T, addr, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestFiveServicesInOneProcess(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	names := []string{"ingest", "scheduler", "reviewer", "ledger", "publisher"}
	up := make(chan *boot.Process, len(names))
	done := make(chan error, len(names))
	var logs [5]buffer
	for i, name := range names {
		opts := options(&logs[i])
		opts.Service = name
		go func() {
			done <- boot.Run(ctx, opts, func(_ context.Context, p *boot.Process) error {
				p.Go("loop", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
				p.Go("once", func(context.Context) error { return nil })
				up <- p
				return nil
			})
		}()
	}
	addrs := map[string]bool{}
	for range names {
		p := within(t, "a start", up)
		addrs[p.DebugAddr()] = true
		if code, _ := get(t, p.DebugAddr(), "/healthz"); code != 200 {
			t.Errorf("healthz: %d", code)
		}
		if code, body := get(t, p.DebugAddr(), "/metrics"); code != 200 || !strings.Contains(body, "go_goroutines") {
			t.Errorf("metrics: %d", code)
		}
		if code, _ := get(t, p.DebugAddr(), "/debug/pprof/cmdline"); code != 200 {
			t.Errorf("pprof on loopback: %d", code)
		}
	}
	if len(addrs) != len(names) {
		t.Errorf("debug listeners: %v", addrs)
	}
	cancel()
	for range names {
		if err := within(t, "a stop", done); err != nil {
			t.Errorf("told to stop: %v", err)
		}
	}
	for i := range logs {
		for line := range strings.Lines(logs[i].String()) {
			var entry struct{ Service string }
			if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Service != names[i] {
				t.Errorf("log of %s: %s", names[i], line)
			}
		}
	}
}

func TestFailuresStopTheGroup(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		start func(context.Context, *boot.Process) error
		want  string
	}{
		"start fails":  {func(context.Context, *boot.Process) error { return errBoom }, "start ledger: boom"},
		"start panics": {func(context.Context, *boot.Process) error { panic("boom") }, "start ledger: panic: boom"},
		"start fails after a part began": {func(_ context.Context, p *boot.Process) error {
			p.Go("loop", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			return errBoom
		}, "start ledger: boom"},
		"a part fails": {func(_ context.Context, p *boot.Process) error {
			p.Go("loop", func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("end: %w", ctx.Err()) })
			p.Go("bad", func(context.Context) error { return errBoom })
			return nil
		}, "ledger: bad: boom"},
		"a part panics": {func(_ context.Context, p *boot.Process) error {
			p.Go("bad", func(context.Context) error { panic("boom") })
			return nil
		}, "ledger: bad: panic: boom"},
		"a part is cancelled by itself": {func(_ context.Context, p *boot.Process) error {
			p.Go("bad", func(context.Context) error { return context.Canceled })
			return nil
		}, "ledger: bad: context canceled"},
		"a closer fails": {func(_ context.Context, p *boot.Process) error {
			p.OnStop("pool", func(context.Context) error { return errBoom })
			return errors.New("first")
		}, "start ledger: first\nclose pool: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &buffer{}
			err := boot.Run(t.Context(), options(log), tc.start)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if strings.Contains(tc.want, "panic") && !strings.Contains(log.String(), "boot_test.go") {
				t.Errorf("no stack in the log: %s", log)
			}
		})
	}
}

func TestStopOrder(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var order []string
	step := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, s)
	}
	err := boot.Run(ctx, options(io.Discard), func(_ context.Context, p *boot.Process) error {
		p.OnStop("pool", func(context.Context) error { step("pool"); return nil })
		p.OnStop("peer", func(ctx context.Context) error { step("peer"); return ctx.Err() })
		p.Go("server", func(ctx context.Context) error { <-ctx.Done(); step("server"); return nil })
		cancel()
		return nil
	})
	if want := []string{"server", "peer", "pool"}; err != nil || !slices.Equal(order, want) {
		t.Errorf("order %v, want %v; %v", order, want, err)
	}
}

func TestStopDeadlineNamesWhatHangs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	leave, left := make(chan struct{}), make(chan struct{})
	opts := options(io.Discard)
	opts.StopTimeout = 20 * time.Millisecond
	err := boot.Run(ctx, opts, func(_ context.Context, p *boot.Process) error {
		p.Go("deaf", func(context.Context) error { <-leave; close(left); return nil })
		p.Go("good", func(ctx context.Context) error { <-ctx.Done(); return nil })
		cancel()
		return nil
	})
	if err == nil || err.Error() != "stop ledger: still running after 20ms: deaf" {
		t.Errorf("got %v", err)
	}
	close(leave)
	within(t, "the end", left)
}

func TestStoppedWhileStarting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	err := boot.Run(ctx, options(io.Discard), func(ctx context.Context, _ *boot.Process) error {
		cancel(errors.New("a signal"))
		<-ctx.Done()
		return fmt.Errorf("connect: %w", ctx.Err())
	})
	if err != nil {
		t.Errorf("told to stop: %v", err)
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var away atomic.Bool
	wiring, wired := make(chan *boot.Process, 1), make(chan struct{})
	draining, drained := make(chan struct{}), make(chan struct{})
	log, done := &marker{text: "service started", seen: make(chan struct{})}, make(chan error, 1)
	go func() {
		done <- boot.Run(ctx, options(log), func(_ context.Context, p *boot.Process) error {
			p.Ready("database", func(context.Context) error {
				if away.Load() {
					return errors.New("10.0.0.1 is away")
				}
				return nil
			})
			p.Ready("hanging", func(ctx context.Context) error {
				if away.Load() {
					<-ctx.Done()
				}
				return ctx.Err()
			})
			p.Go("server", func(ctx context.Context) error { <-ctx.Done(); close(draining); <-drained; return nil })
			wiring <- p
			<-wired
			return nil
		})
	}()
	p := within(t, "the wiring", wiring)
	check := func(code int, want string) {
		t.Helper()
		got, body := get(t, p.DebugAddr(), "/readyz")
		if got != code || strings.TrimSpace(body) != want {
			t.Errorf("readyz: %d %s, want %d %s", got, body, code, want)
		}
	}
	check(503, `{"ready":false,"failing":["starting"]}`)
	close(wired)
	within(t, "the start", log.seen)
	check(200, `{"ready":true}`)
	away.Store(true)
	check(503, `{"ready":false,"failing":["database","hanging"]}`)
	if code, _ := get(t, p.DebugAddr(), "/healthz"); code != 200 {
		t.Errorf("healthz looks at the database: %d", code)
	}
	cancel()
	within(t, "the draining", draining)
	check(503, `{"ready":false,"failing":["stopping"]}`)
	close(drained)
	if err := within(t, "the stop", done); err != nil {
		t.Error(err)
	}
}

func TestDebugListener(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	opts := options(io.Discard)
	opts.Debug.Listen = taken.Addr().String()
	err = boot.Run(t.Context(), opts, func(context.Context, *boot.Process) error { return nil })
	if err == nil || !strings.HasPrefix(err.Error(), "LEDGER_DEBUG_LISTEN: ") {
		t.Errorf("got %v", err)
	}
	opts.Debug.Listen = ""
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = boot.Run(ctx, opts, func(_ context.Context, p *boot.Process) error {
		if p.DebugAddr() != "" {
			t.Errorf("a listener at %s", p.DebugAddr())
		}
		cancel()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
