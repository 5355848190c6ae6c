package worker

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/source"
)

// stepError names the step that failed, for people; what it wraps is for the log.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

func step(name string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{step: name, err: err}
}

// failedError is an attempt whose engine gave no result.
type failedError struct {
	reason string
	number int
}

func (e *failedError) Error() string { return fmt.Sprintf("attempt %d failed: %s", e.number, e.reason) }

func (j *job) read(ctx context.Context) (snap source.Snapshot, err error) {
	ctx, span := j.Tracer.Start(ctx, obs.SpanRead)
	defer func() { obs.End(span, err) }()
	snap, err = j.Source.Read(ctx, j.claim.PullRequest)
	if err == nil {
		span.SetAttributes(obs.HeadSHA(snap.Reading.HeadSHA), obs.BaseSHA(snap.Reading.BaseSHA))
	}
	return snap, err
}

// review finds the run's result: one that was finished before, or that of a new attempt.
func (j *job) review(ctx context.Context, run reviewer.Run, snap source.Snapshot) error {
	trace.SpanFromContext(ctx).SetAttributes(obs.RunID(run.ID.String()), obs.HeadSHA(run.HeadSHA), obs.BaseSHA(run.BaseSHA))
	size := snap.Diff.DiffBytes()
	opening, err := j.Attempts.Open(ctx, reviewer.Ask{
		Attempt: freshAttempt(), Tenant: j.claim.Tenant, Fence: j.fence, Run: run, Engine: j.Engine.Name(),
		Fork: snap.Diff.Fork, DiffBytes: size, Reserve: reviewer.Micros(j.Engine.Price().Maximum(size)),
		Lease: j.lease.longest(), Trace: obs.Inject(ctx), MaxPerRun: j.Settings.MaxAttempts,
	})
	switch {
	case err != nil:
		return step("open attempt", err)
	case opening.Kind == reviewer.OpenAdopted:
		return j.adopt(ctx, opening.Attempt)
	case opening.Kind == reviewer.OpenExhausted:
		return j.exhausted(ctx)
	}
	return j.attempt(ctx, opening.Attempt, snap)
}

// exhausted ends a run that has used its attempts.
func (j *job) exhausted(ctx context.Context) error {
	return j.commit(ctx, reviewer.Outcome{Refused: &reviewer.Refused{
		Reason: "attempts_exhausted", Detail: fmt.Sprintf("%d attempts gave no result", j.Settings.MaxAttempts),
	}})
}

// adopt takes over what an earlier claim finished and paid for.
func (j *job) adopt(ctx context.Context, a reviewer.Attempt) (err error) {
	ctx, span := j.Tracer.Start(ctx, obs.SpanAdopt, trace.WithAttributes(
		obs.AttemptID(a.ID.String()), obs.RunID(j.fence.Run.String()), obs.Engine(a.Engine)))
	defer func() { obs.End(span, err) }()
	err = j.accept(ctx, a, true)
	if err == nil {
		j.Metrics.attempt(ctx, "adopted", a.Engine)
	}
	return err
}

func (j *job) accept(ctx context.Context, a reviewer.Attempt, adopted bool) error {
	return j.commit(ctx, reviewer.Outcome{Accepted: &reviewer.Accepted{
		Attempt: a.ID, Result: a.Result, Engine: a.Engine, Cost: a.Cost, Adopted: adopted,
	}})
}

// attempt takes a created attempt to its end, and the claim with it.
func (j *job) attempt(ctx context.Context, a reviewer.Attempt, snap source.Snapshot) (err error) {
	ctx, span := j.Tracer.Start(ctx, obs.SpanAttempt, trace.WithAttributes(
		obs.AttemptID(a.ID.String()), obs.RunID(a.Run.String()), obs.Engine(a.Engine)))
	defer func() { obs.End(span, unexpected(err)) }()
	err = j.pursue(ctx, a, snap)
	if err == nil {
		span.SetAttributes(obs.Outcome(j.outcome))
	}
	return err
}

func (j *job) pursue(ctx context.Context, a reviewer.Attempt, snap source.Snapshot) error {
	j.lease.watch(a)
	in, held, err := j.prepare(ctx, a, snap)
	if err == nil {
		var started reviewer.Attempt
		if started, err = j.start(ctx, a); err == nil {
			j.paid()
			return j.run(ctx, started, in)
		}
	}
	err = because(ctx, err)
	j.void(ctx, a, held, err)
	if refused, ok := errors.AsType[*reviewer.OverBudgetError](err); ok {
		return j.commit(ctx, reviewer.Outcome{OverBudget: &reviewer.OverBudget{
			Reason: "over_budget", RetryAfter: refused.RetryAfter, Needed: a.Reserved,
		}})
	}
	if errors.Is(err, reviewer.ErrExhausted) {
		return j.exhausted(ctx)
	}
	return err
}

// prepare gets what an engine call needs: its input, the money, and the proof that the claim is alive.
// held says that the ledger may hold money.
func (j *job) prepare(ctx context.Context, a reviewer.Attempt, snap source.Snapshot) (in engine.Input, held bool, err error) {
	if in, err = j.Source.Input(ctx, j.claim.PullRequest, snap); err != nil {
		return in, false, err
	}
	if held, err = j.reserve(ctx, a); err != nil {
		return in, held, err
	}
	return in, true, step("renew lease", j.lease.prove(ctx))
}

func (j *job) reserve(ctx context.Context, a reviewer.Attempt) (held bool, err error) {
	ctx, span := j.Tracer.Start(ctx, obs.SpanReserve, trace.WithAttributes(obs.AttemptID(a.ID.String())))
	defer func() { obs.End(span, unexpected(err)) }()
	for n := 1; ; n++ {
		err := j.callWithin(ctx, func(ctx context.Context) error { return j.Ledger.Reserve(ctx, a) })
		if err == nil {
			return true, nil
		}
		if _, refused := errors.AsType[*reviewer.OverBudgetError](err); refused {
			return false, err
		}
		if n == 3 || !errors.Is(err, reviewer.ErrAway) || !pause(ctx, j.lease.call/20<<n) {
			return true, step("reserve", err)
		}
	}
}

// start takes the attempt's number. Its answer may be lost: the same claim is then answered as before.
func (j *job) start(ctx context.Context, a reviewer.Attempt) (started reviewer.Attempt, err error) {
	for n := 1; ; n++ {
		err := j.callWithin(ctx, func(ctx context.Context) (err error) {
			started, err = j.Attempts.Start(ctx, a, j.Settings.MaxAttempts, j.lease.longest())
			return err
		})
		if err == nil {
			return started, nil
		}
		if n == 3 || isDecided(err) || !pause(ctx, j.lease.call/20<<n) {
			return reviewer.Attempt{}, step("start attempt", err)
		}
	}
}

func (j *job) callWithin(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, j.lease.call)
	defer cancel()
	return call(ctx)
}

// isDecided says that the rules refused, and will again.
func isDecided(err error) bool {
	for _, is := range []error{
		reviewer.ErrClosed, reviewer.ErrNotOwner, reviewer.ErrNotFound, reviewer.ErrStarted, reviewer.ErrNotStarted,
		reviewer.ErrExhausted, reviewer.ErrEngineRunning,
	} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// unexpected leaves out of a span's status what is an ordinary end of an attempt.
func unexpected(err error) error {
	_, over := errors.AsType[*reviewer.OverBudgetError](err)
	_, fenced := errors.AsType[*reviewer.FencedError](err)
	if over || fenced || errors.Is(err, errCancelRequested) || errors.Is(err, errShuttingDown) {
		return nil
	}
	return err
}
