package worker

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// finish stores an attempt's result, also after the claim's time is over: nobody else knows it.
func (j *job) finish(ctx context.Context, a reviewer.Attempt, r reviewer.Report) (done reviewer.Attempt, err error) {
	ctx, span := j.Tracer.Start(ctx, obs.SpanFinish, trace.WithAttributes(obs.AttemptID(a.ID.String()), obs.RunID(a.Run.String())))
	defer func() { obs.End(span, err) }()
	j.lease.unwatch()
	err = j.cleanup(ctx, allTries, func(ctx context.Context) (err error) {
		done, err = j.Ends.Finish(ctx, a, r)
		return err
	})
	if err == nil && done.State == reviewer.StateFinished {
		j.Metrics.attempt(ctx, string(done.State), a.Engine)
		j.Metrics.spent(ctx, a.Engine, done.Cost)
	}
	return done, step("finish attempt", err)
}

// fail closes a started attempt whose engine gave no result, and says what that means for the claim.
func (j *job) fail(ctx context.Context, a reviewer.Attempt, out engine.Output, err error) error {
	end := reviewer.End{Kind: reviewer.EndFailed, Reason: failure(err)}
	switch {
	case errors.Is(err, errNotCalled):
		end.Kind, end.Spent.Known = reviewer.EndCancelled, true // no call, no number, no cost
	case !errors.Is(err, errEngineStuck):
		end.Spent = reviewer.Spent{Cost: reviewer.Micros(j.Engine.Price().Cost(out.Usage)), Known: true}
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errCancelRequested):
		end.Kind, end.Reason = reviewer.EndCancelled, "target_moved"
	case errors.Is(cause, errShuttingDown):
		end.Reason = "shutting_down"
	case cause != nil:
		end.Reason = "lease_lost"
	}
	j.close(ctx, a, end)
	if cause != nil {
		return cause
	}
	return &failedError{reason: end.Reason, number: a.Number}
}

// void closes an attempt that is not to be started.
func (j *job) void(ctx context.Context, a reviewer.Attempt, held bool, why error) {
	j.close(ctx, a, reviewer.End{Kind: reviewer.EndVoided, Reason: voidReason(why), Held: held})
}

// close ends an attempt without a result. What can't be written now is closed by the reaper.
func (j *job) close(ctx context.Context, a reviewer.Attempt, end reviewer.End) {
	j.lease.unwatch()
	var done reviewer.Attempt
	write := func(ctx context.Context) (err error) {
		done, err = j.Ends.Close(ctx, a, end)
		return err
	}
	err := j.cleanup(ctx, fewTries, write)
	if errors.Is(err, reviewer.ErrStarted) {
		// The start took effect and its answer was lost: no engine was called.
		end = reviewer.End{Kind: reviewer.EndCancelled, Reason: end.Reason, Spent: reviewer.Spent{Known: true}}
		err = j.cleanup(ctx, fewTries, write)
	}
	if err != nil {
		j.Log.WarnContext(ctx, "an attempt is left to the reaper", "attempt", a.ID.String(), "err", err)
		return
	}
	if string(done.State) == string(end.Kind) { // and was not closed by somebody else before
		j.Metrics.attempt(ctx, string(done.State), a.Engine)
		j.Metrics.spent(ctx, a.Engine, done.Cost)
	}
}

// Tries of a cleanup. A result that was paid for exists nowhere else, and outlasts a restart of the database;
// what is merely closed is closed by the reaper too.
const (
	fewTries = 3
	allTries = 0 // as many as cleanupTime allows
)

// cleanup writes what must be written although the claim's time may be over, again where the database
// does not answer.
func (j *job) cleanup(ctx context.Context, tries int, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	for n := 1; ; n++ {
		err := write(ctx)
		_, fenced := errors.AsType[*reviewer.FencedError](err)
		if err == nil || n == tries || fenced || isDecided(err) || !pause(ctx, min(100*time.Millisecond<<n, time.Second)) {
			return err
		}
	}
}

func voidReason(why error) string {
	_, over := errors.AsType[*reviewer.OverBudgetError](why)
	_, fenced := errors.AsType[*reviewer.FencedError](why)
	_, source := errors.AsType[*reviewer.SourceError](why)
	switch {
	case over:
		return "over_budget"
	case fenced:
		return "fenced"
	case source:
		return "source_away"
	case errors.Is(why, errCancelRequested):
		return "target_moved"
	case errors.Is(why, errShuttingDown):
		return "shutting_down"
	case errors.Is(why, reviewer.ErrExhausted):
		return "attempts_exhausted"
	}
	return "dependency_away"
}

// end closes the claim for what the walk came to, and returns the outcome's word; the error is what
// nobody expects.
func (j *job) end(ctx context.Context, err error) (string, error) {
	if err == nil {
		return j.outcome, nil
	}
	if f, ok := errors.AsType[*reviewer.FencedError](err); ok {
		return j.fenced(ctx, f), nil
	}
	r := releaseFor(err)
	if unexpected(err) != nil {
		j.Log.WarnContext(ctx, "claim released", "target", j.fence.Target.String(), "reason", string(r.Reason), "err", err)
	}
	err = j.cleanup(ctx, fewTries, func(ctx context.Context) error { return j.Claims.Release(ctx, j.claim.Tenant, j.fence, r) })
	if f, ok := errors.AsType[*reviewer.FencedError](err); ok {
		return j.fenced(ctx, f), nil
	}
	return string(r.Reason), err // it lapses where it could not be given back
}

// fenced records that the scheduler took the claim away. Nothing is left to do: what was paid is settled.
func (j *job) fenced(ctx context.Context, f *reviewer.FencedError) string {
	obs.FenceVerdictIn(ctx, f.Reason)
	j.Metrics.fenced(ctx, f.Reason)
	j.Log.InfoContext(ctx, "claim lost", "target", j.fence.Target.String(), "claim", j.fence.Claim.String(), "reason", f.Reason)
	return "fenced"
}

// Pauses that a release asks for.
const (
	failedPause    = 30 * time.Second // after a first failed attempt, four times that after each further
	failedPauseMax = 15 * time.Minute
	awayPause      = 15 * time.Second
	busyPause      = time.Minute
)

// releaseFor says how a claim is given back that ended without a decision.
func releaseFor(err error) reviewer.Release {
	r := reviewer.Release{Reason: reviewer.ReleaseDependencyAway, RetryAfter: awayPause, Detail: detail(err)}
	failed, isFailed := errors.AsType[*failedError](err)
	src, isSource := errors.AsType[*reviewer.SourceError](err)
	switch {
	case errors.Is(err, errCancelRequested):
		r.Reason, r.RetryAfter = reviewer.ReleaseCancelled, 0
	case errors.Is(err, errShuttingDown):
		r.Reason, r.RetryAfter = reviewer.ReleaseShuttingDown, 0
	case isFailed:
		r.Reason, r.RetryAfter = reviewer.ReleaseAttemptFailed, min(failedPause<<(2*max(failed.number-1, 0)), failedPauseMax)
	case errors.Is(err, reviewer.ErrEngineRunning):
		r.RetryAfter = busyPause
	case isSource:
		return releaseForSource(src)
	}
	return r
}

func releaseForSource(src *reviewer.SourceError) reviewer.Release {
	r := reviewer.Release{Reason: reviewer.ReleaseDependencyAway, RetryAfter: src.RetryAfter, Detail: src.Error()}
	switch src.Kind {
	case reviewer.SourceThrottled:
		r.Reason, r.Pause = reviewer.ReleaseThrottled, &reviewer.Pause{Reason: "throttled", For: r.RetryAfter}
	case reviewer.SourceSuspended:
		// The pause alone holds the target: it ends with the suspension, if that is sooner.
		r.Reason, r.RetryAfter, r.Pause = reviewer.ReleaseThrottled, 0, &reviewer.Pause{Reason: "suspended", For: src.RetryAfter}
	case reviewer.SourceAway, reviewer.SourceDenied:
		r.RetryAfter = max(r.RetryAfter, awayPause)
	}
	return r
}

// detail is one sentence for people, made of our own words alone.
func detail(err error) string {
	if s, ok := errors.AsType[*stepError](err); ok {
		return s.step + " did not succeed"
	}
	for _, known := range []error{errCancelRequested, errShuttingDown, errLeaseUnproved} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if f, ok := errors.AsType[*failedError](err); ok {
		return f.Error()
	}
	return "a service did not answer"
}
