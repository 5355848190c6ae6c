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

// freshFor is how long it is believed that an epoch may be shown.
const freshFor = 5 * time.Second

// maxSteps bounds what is done for one epoch in one claim; the lease does so long before.
const maxSteps = 1000

// write does what can be done for the work now, one thing after the other: each ends an intent, or puts it off, or
// brings it on.
func (x *session) write(ctx context.Context, w *publisher.Work, in publisher.Input) {
	for range maxSteps {
		if x.done(ctx) {
			return
		}
		c := w.Ready(x.Rules, x.now())
		if c == nil {
			return
		}
		op := publisher.OpEdit
		switch x.Rules.Next(*c, x.now()) {
		case publisher.StepLookUp:
			x.look(ctx, w, c, lookFrom(w))
			continue
		case publisher.StepDrop:
			x.apply(ctx, w, c, publisher.Dropped{Reason: publisher.ReasonSuperseded})
			continue
		case publisher.StepNothing:
			x.apply(ctx, w, c, publisher.Dropped{Reason: publisher.ReasonNothing})
			continue
		case publisher.StepCreate:
			op = publisher.OpCreate
		case publisher.StepEdit, publisher.StepNone, publisher.StepLater, publisher.StepReadBack:
		}
		if time.Since(x.asked) > freshFor && !x.stands(ctx, w) {
			return
		}
		x.send(ctx, w, c, op, in)
	}
}

// part is what of the input the intent's output is made from: a new review says its part of the plan, one that is
// brought up to date nothing anew, and everything else how the plan turned out.
func part(w *publisher.Work, i publisher.Intent, op publisher.Op, in publisher.Input) publisher.Input {
	switch {
	case i.Rank != publisher.RankReview:
		in.Plan = w.Settled(in.Plan)
	case op == publisher.OpCreate:
		in.Plan = in.Plan.Of(i.Remarks)
	default:
		in.Plan.Say = nil
	}
	return in
}

// send records that the write begins, commits that, and only then makes the call. Whatever was decided
// before goes into the same commit.
func (x *session) send(ctx context.Context, w *publisher.Work, c *publisher.Cell, op publisher.Op, in publisher.Input) {
	in = part(w, c.Intent, op, in)
	said := publisher.Fingerprints("")
	if c.Intent.Rank == publisher.RankReview {
		said = in.Plan.Fingerprints()
		if op == publisher.OpCreate && said == "" { // nobody misses it any more
			x.apply(ctx, w, c, publisher.Dropped{Reason: publisher.ReasonNothingNew})
			return
		}
	}
	out := w.Render(x.Keys, c.Intent.Ref, in)
	recorded := time.Now()
	x.apply(ctx, w, c, publisher.Sent{Op: op, Body: out.Body, Remarks: said})
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
	if c.Intent.Rank == publisher.RankRemark && c.Intent.State == publisher.StateConfirmed {
		x.Metrics.resolve(ctx)
	}
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
