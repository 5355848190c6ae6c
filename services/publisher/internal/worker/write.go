package worker

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// errTooLate: a write was recorded and could not begin in time. It surely had no effect.
var errTooLate = &publisher.Failure{Class: publisher.NotExecuted, Reason: "TOO_LATE", Err: errors.New("no time was left for the call")}

// write sends the intent if it can be sent now. Once more around where an edit found that a person had
// deleted the output, and it may be made anew.
func (x *session) write(ctx context.Context, w *publisher.Work, c *publisher.Cell, rv publisher.Review) {
	for range 2 {
		if x.lost || x.paused || ctx.Err() != nil {
			return
		}
		if w.Waits(c.Intent) {
			return
		}
		switch x.Rules.Next(*c, x.now()) {
		case publisher.StepCreate:
			x.send(ctx, w, c, publisher.OpCreate, rv)
		case publisher.StepEdit:
			x.send(ctx, w, c, publisher.OpEdit, rv)
		default:
			return
		}
		if c.Intent.State != publisher.StatePending || x.lost || x.paused {
			return
		}
		x.look(ctx, w, c, lookFrom(w))
	}
}

// send records that the write begins, commits that, and only then makes the call. Whatever was decided
// before goes into the same commit.
func (x *session) send(ctx context.Context, w *publisher.Work, c *publisher.Cell, op publisher.Op, rv publisher.Review) {
	if !x.room() {
		return // the next claim does it, with a whole lease
	}
	out := w.Render(x.Keys, c.Intent.Ref, publisher.Input{Review: rv})
	recorded := time.Now()
	x.apply(ctx, w, c, publisher.Sent{Op: op, Body: out.Body})
	x.pending.Wrote = true
	if x.lost {
		return
	}
	if x.flush(ctx, x.Settings.Timeout+x.Rules.Grace); x.lost {
		return
	}
	placed, err := x.call(ctx, w, c, op, out, recorded)
	x.urgent = true
	if err != nil {
		x.apply(ctx, w, c, publisher.Failed{Failure: publisher.FailureOf(err)})
		return
	}
	x.throttles = 0
	x.apply(ctx, w, c, publisher.Answered{Placed: placed})
}

// call makes the write so that it ends before its grace does. Stopping the service does not cut it off.
func (x *session) call(ctx context.Context, w *publisher.Work, c *publisher.Cell, op publisher.Op, out publisher.Output, recorded time.Time) (placed publisher.Placed, err error) {
	if !x.pace(ctx) {
		return placed, errTooLate
	}
	// A fifteenth of the grace is kept between the latest end of the call and the end of its grace.
	left := min(x.Settings.Timeout, x.Rules.Grace-x.Rules.Grace/15-time.Since(recorded))
	if left <= 0 {
		return placed, errTooLate
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), left)
	defer cancel()
	i := c.Intent
	ctx, span := x.Tracer.Start(ctx, obs.SpanGitHubWrite, trace.WithAttributes(
		obs.Tenant(w.Epoch.Tenant.String()), obs.TargetID(w.Epoch.Target.String()), obs.Epoch(w.Epoch.At.Epoch),
		obs.RunID(i.Run.String()), obs.IntentKey(i.Key), obs.Surface(string(i.Ref.Kind)), obs.Outcome(string(op))))
	defer func() { obs.End(span, err) }()
	began := time.Now()
	if op == publisher.OpCreate {
		placed, err = x.Surfaces[i.Ref.Kind].Create(ctx, w.Epoch, out)
	} else {
		placed, err = x.Surfaces[i.Ref.Kind].Edit(ctx, w.Epoch, c.Surface.GitHubID, out)
	}
	x.written = time.Now()
	x.Metrics.write(ctx, i, op, time.Since(began), err)
	return placed, err
}

// pace keeps the distance between two writes of one installation; false where the service stops first.
func (x *session) pace(ctx context.Context) bool {
	next := x.claim.NextWrite
	wait := time.Duration(0)
	switch {
	case !x.written.IsZero():
		wait = x.Settings.Spacing - time.Since(x.written)
	case !next.IsZero():
		wait = min(next.Sub(x.now()), x.Settings.Spacing)
	}
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
