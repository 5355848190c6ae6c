package worker

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// Settings bound a worker.
type Settings struct {
	MaxAttempts   int           // of one run
	EngineTimeout time.Duration // of one engine call
	MaxFindings   int           // kept of one engine call
	Renew         time.Duration // between renewals, unless the lease is too short for it
	Call          time.Duration // of one call of another service, unless the lease is too short for it
}

// Worker reviews one claim at a time; any number of goroutines may use it.
type Worker struct {
	Settings Settings
	Claims   Claims
	Runs     Runs
	Ledger   Ledger
	Source   Source
	Attempts Attempts
	Ends     Ends
	Engine   engine.Engine
	Log      *slog.Logger
	Tracer   trace.Tracer
	Metrics  *Metrics
}

// Why work on a claim stops early. Each is the cause of the claim's context.
var (
	errLeaseUnproved   = errors.New("the lease could not be proved in time")
	errCancelRequested = errors.New("the target moved")
	errShuttingDown    = errors.New("the worker is shutting down")
)

// cleanupTime bounds what must still be written after a claim's own time is over.
const cleanupTime = 10 * time.Second

// Review walks one claim to its end: a decision, a release, or the loss of the claim. asked is when the
// claim was asked for, by this process's clock. Once stopping has ended, what has not been paid for is
// given back; ctx, which outlives it, cuts off the rest.
func (w *Worker) Review(ctx, stopping context.Context, c reviewer.Claim, asked time.Time) {
	ctx = obs.Extract(ctx, c.Trace)
	ctx, span := w.Tracer.Start(ctx, obs.SpanClaim, trace.WithLinks(links(c)...), trace.WithAttributes(attributes(c)...))
	var err error
	defer func() { obs.End(span, err) }()
	j := &job{Worker: w, claim: c, fence: c.Fence}
	j.outcome, err = j.end(ctx, j.walk(ctx, stopping, asked))
	w.Metrics.claimEnded(ctx, j.outcome)
	span.SetAttributes(obs.Outcome(j.outcome))
	if err != nil {
		w.Log.WarnContext(ctx, "a claim is left to lapse", "target", c.Fence.Target.String(), "err", err)
	}
}

func links(c reviewer.Claim) []trace.Link {
	out := make([]trace.Link, 0, len(c.Links))
	for _, l := range c.Links {
		out = append(out, obs.Link(l))
	}
	return out
}

func attributes(c reviewer.Claim) []attribute.KeyValue {
	out := []attribute.KeyValue{
		obs.Tenant(c.Tenant.String()), obs.TargetID(c.Fence.Target.String()), obs.ClaimID(c.Fence.Claim.String()),
		obs.Generation(c.Fence.Generation), obs.Lifecycle(c.Fence.Lifecycle),
		obs.InstallationID(c.PullRequest.Installation), obs.PullRequest(strconv.FormatInt(c.PullRequest.Number, 10)),
	}
	if c.Delivery != "" {
		out = append(out, obs.DeliveryID(c.Delivery))
	}
	return out
}

// job is one claim under way.
type job struct {
	*Worker
	claim reviewer.Claim
	fence reviewer.Fence
	lease *lease
	// paid is called before the engine is: from then on a graceful stop waits for its result.
	paid    func() bool
	outcome string // of a claim that ended by a decision
}

// walk takes the claim to a decision. Its error says why there is none.
func (j *job) walk(ctx, stopping context.Context, asked time.Time) error {
	ctx, end := j.hold(ctx, asked)
	defer end()
	j.paid = context.AfterFunc(stopping, func() { j.lease.stop(errShuttingDown) })
	defer j.paid()

	snap, err := j.read(ctx)
	if err != nil {
		return because(ctx, err)
	}
	res, err := j.resolve(ctx, snap.Reading)
	if err != nil {
		return because(ctx, err)
	}
	if res.Answer != reviewer.AnswerReview {
		j.outcome = string(res.Answer)
		return nil
	}
	j.fence = res.Fence
	j.lease.resolved(res.Fence)
	return because(ctx, j.review(ctx, res.Run, snap))
}

// resolve asks what to do with the reading; the claim may be over with the answer.
func (j *job) resolve(ctx context.Context, in reviewer.Reading) (res reviewer.Resolution, err error) {
	err = j.repeat(ctx, func(ctx context.Context) (err error) {
		res, err = j.Runs.Resolve(ctx, j.claim.Tenant, j.fence, in)
		return err
	})
	if err == nil {
		obs.FenceVerdictIn(ctx, obs.FenceHeld)
	}
	return res, err
}

// commit ends the claim by its run's outcome.
func (j *job) commit(ctx context.Context, o reviewer.Outcome) error {
	err := j.repeat(ctx, func(ctx context.Context) error { return j.Runs.Commit(ctx, j.claim.Tenant, j.fence, o) })
	if err != nil {
		return err
	}
	obs.FenceVerdictIn(ctx, obs.FenceHeld)
	switch {
	case o.Accepted != nil:
		j.outcome = "accepted"
	case o.Refused != nil:
		j.outcome = "refused"
	default:
		j.outcome = "over_budget"
	}
	return nil
}

// repeats bounds how often a fenced call is made whose answer was lost.
const repeats = 5

// repeat makes a fenced call that may end the claim, again by the same fence where its answer was lost,
// while the lease lasts. No renewal runs beside it: one that comes after the claim's end would be
// refused, and take the call's answer with it.
func (j *job) repeat(ctx context.Context, call func(context.Context) error) error {
	for n := 1; ; n++ {
		err := j.lease.alone(func() error {
			ctx, cancel := context.WithTimeout(ctx, j.lease.call)
			defer cancel()
			return call(ctx)
		})
		if err == nil || n == repeats || !errors.Is(err, reviewer.ErrAway) || !pause(ctx, j.lease.call/20<<n) {
			return err
		}
	}
}

// because prefers the reason why a context ended over what came of it.
func because(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, fenced := errors.AsType[*reviewer.FencedError](err); fenced {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// pause waits around d, and reports whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(jittered(d)):
		return true
	}
}

// jittered is d, give or take a fifth, so that replicas don't move in step.
func jittered(d time.Duration) time.Duration {
	return d - d/5 + rand.N(d*2/5+1)
}

func freshAttempt() reviewer.AttemptID { return reviewer.AttemptID(uuid.Must(uuid.NewV7())) }
