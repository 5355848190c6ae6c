// Package boot is the skeleton of a service's process: telemetry, the debug listener, a run
// group, and an ordered stop with a deadline. Several fit in one process.
package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

const (
	// defaultStop is how long a service may take to stop once it was told to.
	defaultStop = 20 * time.Second
	// closeTimeout bounds the closers together, once the parts have ended.
	closeTimeout = 5 * time.Second
	// flushTimeout bounds the last export of spans, after everything else has stopped.
	flushTimeout = 5 * time.Second
)

// Options describe one service's process.
type Options struct {
	Service string      // lower-case name: scheduler
	Obs     obs.Config  // telemetry
	Debug   DebugConfig // health, metrics, profiles
	Stderr  io.Writer   // JSON log lines; nothing else is printed

	// StopTimeout bounds the graceful stop of the parts; zero means 20 s. Closers get at
	// most 5 s more, and so does the last export of spans.
	StopTimeout time.Duration
}

// Run is the life of one service: it calls start, which wires the service and registers its
// parts with Process.Go, then waits. The service stops when ctx ends, which is no error, or
// when the first part fails, whose error is returned. Everything that was started has ended
// when Run returns, but for parts that ignored their context past the stop's deadline: they
// are named in the error.
func Run(ctx context.Context, opts Options, start func(ctx context.Context, p *Process) error) (err error) {
	if opts.Stderr == nil {
		opts.Stderr = io.Discard
	}
	if opts.StopTimeout <= 0 {
		opts.StopTimeout = defaultStop
	}
	tel, shutdown, err := obs.Start(ctx, opts.Obs, opts.Service, opts.Stderr)
	if err != nil {
		return fmt.Errorf("start telemetry: %w", err)
	}
	defer func() {
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if ferr := shutdown(flush); ferr != nil {
			tel.Log.WarnContext(flush, "telemetry was not flushed", "err", ferr)
		}
	}()
	p := newProcess(ctx, opts.Service, tel)
	debug, err := serveDebug(p, opts.Debug, tel.Prometheus)
	if err != nil {
		p.fail(err)
		return err
	}
	defer debug.close()
	p.debugAddr = debug.addr

	if err := p.start(start); err != nil {
		p.fail(err)
	} else {
		p.Log.InfoContext(ctx, "service started", "debug_addr", p.debugAddr)
	}
	<-p.ctx.Done()
	return p.stop(ctx, opts.StopTimeout)
}

// start runs the wiring; a panic in it is an error like any other.
func (p *Process) start(start func(context.Context, *Process) error) error {
	if err := guard(p.Log, "start", func() error { return start(p.ctx, p) }); err != nil {
		return fmt.Errorf("start %s: %w", p.service, err)
	}
	p.started.Store(true)
	return nil
}

// stop waits for the parts, then runs the closers in reverse order.
func (p *Process) stop(parent context.Context, limit time.Duration) error {
	failure := p.failure()
	parent = context.WithoutCancel(parent)
	p.Log.InfoContext(parent, "service stops", "failed", failure != nil)
	began := time.Now()
	errs := []error{failure, p.wait(parent, limit), p.close(parent, closeTimeout)}
	p.Log.InfoContext(parent, "service stopped", "took_ms", time.Since(began).Milliseconds())
	return errors.Join(errs...)
}
