package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

// Process is what a service's wiring gets: its telemetry and its run group.
type Process struct {
	Log    *slog.Logger
	Tracer trace.TracerProvider
	Meter  metric.MeterProvider

	service   string
	debugAddr string
	ctx       context.Context // ends when the group stops
	cancel    context.CancelFunc
	started   atomic.Bool

	mu      sync.Mutex
	failed  error          // why the group stopped, nil when it was told to
	parts   map[int]string // running, by number; names need not be unique
	next    int
	idle    chan struct{} // closed when stopping and nothing runs
	closers []closer
	checks  []check
}

type closer struct {
	name string
	fn   func(context.Context) error
}

type check struct {
	name string
	fn   func(context.Context) error
}

func newProcess(ctx context.Context, service string, tel *obs.Telemetry) *Process {
	p := &Process{Log: tel.Log, Tracer: tel.Tracer, Meter: tel.Meter, service: service, parts: map[int]string{}}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

// Go runs one part of the service. Its context ends when the service stops; the first part
// that returns an error, or panics, stops the others. A part may also end early with nil.
func (p *Process) Go(name string, run func(ctx context.Context) error) {
	p.mu.Lock()
	n := p.next
	p.next++
	p.parts[n] = name
	p.mu.Unlock()
	go func() {
		defer p.done(n)
		err := guard(p.Log, name, func() error { return run(p.ctx) })
		if err != nil {
			p.fail(fmt.Errorf("%s: %s: %w", p.service, name, err))
		}
	}()
}

// fail stops the group. The first failure is what Run returns; a part that ends because the
// group stops has not failed, and what fails while stopping is logged.
func (p *Process) fail(err error) {
	p.mu.Lock()
	running := p.ctx.Err() == nil
	if running {
		p.failed = err
	}
	p.cancel()
	p.mu.Unlock()
	if !running && !errors.Is(err, p.ctx.Err()) && !errors.Is(err, context.Cause(p.ctx)) {
		p.Log.ErrorContext(p.ctx, "failed while stopping", "err", err)
	}
}

func (p *Process) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// Ready adds a readiness check: /readyz says 503 while it fails. It gets 2 s.
func (p *Process) Ready(name string, fn func(ctx context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checks = append(p.checks, check{name, fn})
}

// OnStop registers what is closed after every part has ended, last registered first: pools
// and client connections, which parts use until their own end.
func (p *Process) OnStop(name string, fn func(ctx context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closers = append(p.closers, closer{name, fn})
}

// DebugAddr is host:port of the debug listener, "" when there is none.
func (p *Process) DebugAddr() string { return p.debugAddr }

func (p *Process) done(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.parts, n)
	if len(p.parts) == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// wait returns an error that names the parts that still run after limit.
func (p *Process) wait(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p.mu.Lock()
	idle := make(chan struct{})
	if len(p.parts) == 0 {
		close(idle)
	} else {
		p.idle = idle
	}
	p.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.parts) == 0 {
		return nil
	}
	left := slices.Sorted(maps.Values(p.parts))
	return fmt.Errorf("stop %s: still running after %s: %s", p.service, limit, strings.Join(left, ", "))
}

// close runs the closers; one that hangs holds up the others, but not the caller.
func (p *Process) close(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p.mu.Lock()
	closers := slices.Clone(p.closers)
	p.mu.Unlock()
	done := make(chan error, 1)
	go func() {
		var errs []error
		for _, c := range slices.Backward(closers) {
			if err := guard(p.Log, c.name, func() error { return c.fn(ctx) }); err != nil {
				errs = append(errs, fmt.Errorf("close %s: %w", c.name, err))
			}
		}
		done <- errors.Join(errs...)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("stop %s: not closed after %s", p.service, limit)
	}
}

// guard turns a panic into an error; the stack goes to the log alone.
func guard(log *slog.Logger, name string, fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			log.Error("panic", "part", name, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return fn()
}
