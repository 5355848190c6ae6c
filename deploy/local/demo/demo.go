// Package demo shows one delivery on its whole way: from a signed webhook to a posted review, the money
// and the trace.
package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/local"
	"github.com/fenceline-dev/fenceline/deploy/local/spans"
	"github.com/fenceline-dev/fenceline/deploy/local/view"
	"github.com/fenceline-dev/fenceline/pkg/obs"
)

// Options say what is shown.
type Options struct {
	Repo, Base, Head string // a local repository and two revisions; empty: a made one
	JSON             string // file that says what happened; empty: none
	Quiet            time.Duration
	Stack            local.Config // its quiet window and endpoint of spans are set here
	Terminal         *view.Terminal
}

// Run shows the walk. It returns an error, in a sentence, when any step did not happen.
func Run(ctx context.Context, o Options) (err error) {
	what, err := choose(ctx, o)
	if err != nil {
		return err
	}
	if o.Quiet, err = effectiveQuiet(o); err != nil {
		return err
	}
	if o.JSON, err = writable(o.JSON); err != nil {
		return err
	}
	received, err := spans.Listen(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, received.Close()) }()

	t := o.Terminal
	t.Title("Fenceline, from a webhook to a posted review")
	began := time.Now()
	cfg := o.Stack
	cfg.OTLPEndpoint = received.Endpoint()
	cfg.Env = settings(o)
	cfg.Progress = func(what string) { t.Line("  %s %s", t.Green("up"), what); t.Waiting("  … starting") }
	t.Waiting("  … starting PostgreSQL")
	stack, err := local.Start(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		if stop := stack.Stop(); stop != nil {
			err = errors.Join(err, stop)
		}
	}()
	t.Line("  all up after %s; spans are collected on %s", view.Took(time.Since(began)), received.Endpoint())
	t.Line("  quiet window: %s here, 30 s by default (a pull request is reviewed once it has been quiet for that long)", o.Quiet)
	if err := show(ctx, o, what, stack, received); err != nil {
		switch {
		case ctx.Err() != nil:
			return errInterrupted
		case errors.As(err, new(*endError)):
			return err // decided, and shown why: no part has failed
		}
		return logged(err, stack.Log)
	}
	t.Line("\n%s in %s, the start of everything included", t.Green("Done"), view.Took(time.Since(began)))
	return nil
}

var errInterrupted = errors.New("interrupted; what was started is stopped again")

// quietSetting is the scheduler's setting of the quiet window.
const quietSetting = "SCHEDULER_QUIET"

// settings shorten what a person would wait for; the simulated GitHub needs no pause between writes.
func settings(o Options) map[string]string {
	env := map[string]string{quietSetting: o.Quiet.String(), "PUBLISHER_WRITE_SPACING": "0s"}
	for name, value := range o.Stack.Env {
		if name != quietSetting { // o.Quiet is it
			env[name] = value
		}
	}
	return env
}

// effectiveQuiet is the quiet window that the scheduler gets: its own setting goes before the flag's.
func effectiveQuiet(o Options) (time.Duration, error) {
	set := o.Stack.Env[quietSetting]
	if set == "" {
		return o.Quiet, nil
	}
	quiet, err := time.ParseDuration(set)
	if err != nil {
		return 0, fmt.Errorf("the setting %s is no duration such as 3s: %w", quietSetting, err)
	}
	return quiet, nil
}

func show(ctx context.Context, o Options, what source, stack *local.Stack, received *spans.Receiver) error {
	from, err := connect(stack)
	if err != nil {
		return err
	}
	defer func() { _ = from.close() }()
	w := &walk{t: o.Terminal, stack: stack, from: from, quiet: o.Quiet}
	o.Terminal.Title("What happens, as it happens")
	quiet := obs.Quiet(ctx) // looking on must leave no spans
	failed := w.through(quiet, what)
	if failed != nil && !errors.As(failed, new(*endError)) {
		return failed
	}
	if err := w.gather(quiet); err != nil {
		return err
	}
	var cost *Cost
	if failed == nil {
		if cost, err = w.measure(quiet); err != nil {
			return err
		}
	}
	// What ends flushes its spans, so that the trace is whole.
	if err := stack.StopServices(); err != nil {
		return err
	}
	trace := received.Trace(w.delivery.GetTraceId())
	w.showPage()
	w.showLedger()
	w.showDecisions()
	w.showTrace(trace)
	if cost != nil {
		cost.times(received.Trace(cost.TraceID))
		w.showCost(cost)
	}
	if o.JSON != "" {
		if err := w.record(o, trace, cost).write(o.JSON); err != nil {
			return err
		}
		o.Terminal.Line("\n  what happened, for scripts: %s", o.JSON)
	}
	return failed
}

// through walks the stages; a target that ends without a review is still followed to its page.
func (w *walk) through(ctx context.Context, what source) error {
	if err := w.open(ctx, what); err != nil {
		return err
	}
	for _, stage := range w.stages() {
		err := stage(ctx)
		if errors.As(err, new(*endError)) {
			d := w.decision("skipped", "refused", "over_budget")
			w.happened("decision", "scheduler", timeOf(d.GetAt()), "%s: %s", d.GetKind(), d.GetReason())
			return errors.Join(err, w.published(ctx))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
