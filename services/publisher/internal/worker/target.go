package worker

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// lookBack is how far before a write the search for it begins: clocks differ.
const lookBack = 5 * time.Minute

// lookFrom is from when on the output of an epoch can be there: an answer can't be older than its question.
func lookFrom(w *publisher.Work) time.Time {
	if w.Epoch.Reply == nil {
		return time.Time{}
	}
	return w.Epoch.CreatedAt.Add(-lookBack)
}

// target works on the open epochs of one target, oldest first. What may have been sent is looked up to
// the end, whatever is current; then only the last epoch can still be shown.
func (x *session) target(ctx context.Context, works []publisher.Work) {
	last := len(works) - 1
	known := map[publisher.Ref]publisher.Surface{} // as earlier epochs left them
	var out time.Time                              // until when something of an earlier epoch may be out
	for n := range works {
		w := &works[n]
		for i := range w.Cells {
			if s, ok := known[w.Cells[i].Surface.Ref]; ok {
				w.Cells[i].Surface = s
			}
		}
		ctx, span := x.span(ctx, w)
		x.settle(ctx, w)
		switch {
		case x.lost || x.paused:
		case n < last:
			x.each(ctx, w, publisher.Dropped{Reason: publisher.ReasonSuperseded})
		case !out.IsZero():
			x.each(ctx, w, publisher.Held{Until: out, Reason: "an earlier write may be out"})
		default:
			x.publish(ctx, w)
		}
		if until := w.MayBeOut(); until.After(out) {
			out = until
		}
		for _, c := range w.Cells {
			known[c.Surface.Ref] = c.Surface
		}
		span.End()
		if x.lost || x.paused {
			return
		}
	}
}

// span continues the trace that the epoch brought.
func (x *session) span(ctx context.Context, w *publisher.Work) (context.Context, trace.Span) {
	e := &w.Epoch
	ctx, span := x.Tracer.Start(obs.Extract(ctx, e.Traceparent), obs.SpanPublish,
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
			obs.Tenant(e.Tenant.String()), obs.TargetID(e.Target.String()), obs.Lifecycle(e.At.Lifecycle),
			obs.Epoch(e.At.Epoch), obs.RunID(e.RunID().String()), obs.InstallationID(e.PR.Installation),
			attribute.String("fenceline.epoch.kind", string(e.Kind))))
	if own := obs.Inject(ctx); own != "" {
		e.Traceparent = own // what is told of the epoch comes from this step
	}
	return ctx, span
}

// each takes an event to all intents of the work that wait.
func (x *session) each(ctx context.Context, w *publisher.Work, ev publisher.Event) {
	for n := range w.Cells {
		c := &w.Cells[n]
		if c.Intent.State == publisher.StatePending && !x.lost {
			x.apply(ctx, w, c, ev)
		}
	}
}

// settle finds out what became of writes whose answer is not known.
func (x *session) settle(ctx context.Context, w *publisher.Work) {
	for n := range w.Cells {
		c := &w.Cells[n]
		if c.Intent.State == publisher.StateSending && !x.lost && !x.paused {
			x.look(ctx, w, c, c.Intent.SentAt.Add(-lookBack))
		}
	}
}

// look does the lookups that the intent needs next: at most two, since each says what is there.
func (x *session) look(ctx context.Context, w *publisher.Work, c *publisher.Cell, since time.Time) {
	surface := x.Surfaces[c.Intent.Ref.Kind]
	var found *publisher.Found
	var err error
	switch x.Rules.Next(*c, x.now()) {
	case publisher.StepLookUp:
		found, err = surface.Find(ctx, w.Epoch, c.Intent.Ref, since)
	case publisher.StepReadBack:
		found, err = surface.Read(ctx, w.Epoch, c.Intent.Ref, c.Surface.GitHubID)
	case publisher.StepDrop:
		x.apply(ctx, w, c, publisher.Dropped{Reason: publisher.ReasonSuperseded})
		return
	default:
		return
	}
	if err != nil {
		x.apply(ctx, w, c, publisher.Delayed{Failure: publisher.FailureOf(err)})
		return
	}
	if found != nil && found.Extra > 0 {
		x.Metrics.duplicates(ctx, found.Extra)
		x.Log.WarnContext(ctx, "more than one output of a surface", "key", c.Intent.Key, "kept", found.ID, "extra", found.Extra)
	}
	x.apply(ctx, w, c, publisher.LookedUp{Found: found})
	if x.Rules.Next(*c, x.now()) == publisher.StepNothing {
		x.apply(ctx, w, c, publisher.Dropped{Reason: publisher.ReasonNothing})
	}
}

// publish shows the target's last epoch, if it is current.
func (x *session) publish(ctx context.Context, w *publisher.Work) {
	if !x.due(ctx, w) || w.Epoch.Reply == nil && (!x.current(ctx, w) || !x.matches(ctx, w)) {
		return
	}
	var review publisher.Review
	if w.Epoch.Kind.ShowsResult() {
		var err error
		if review, err = x.Reviewer.Review(ctx, w.Epoch); err != nil {
			x.each(ctx, w, publisher.Delayed{Failure: publisher.FailureOf(err)})
			return
		}
	}
	for n := range w.Cells { // every lookup before the first write: the writes follow each other closely
		if c := &w.Cells[n]; !x.lost && !x.paused {
			x.look(ctx, w, c, lookFrom(w))
		}
	}
	for n := range w.Cells {
		x.write(ctx, w, &w.Cells[n], review)
	}
	x.due(ctx, w)
}

// due tells whether anything can be done for the work now. A check run waits for the comment.
func (x *session) due(ctx context.Context, w *publisher.Work) bool {
	now, some := x.now(), false
	summary := w.Summary()
	for n := range w.Cells {
		c := &w.Cells[n]
		if c.Intent.State != publisher.StatePending || c.Intent.Available.After(now) || x.lost {
			continue
		}
		if w.Waits(c.Intent) && summary.Available.After(now) {
			x.apply(ctx, w, c, publisher.Held{Until: summary.Available, Reason: "the comment comes first"})
			continue
		}
		some = true
	}
	return some
}

// current asks the scheduler; another answer than yes is applied.
func (x *session) current(ctx context.Context, w *publisher.Work) bool {
	got, err := x.Scheduler.CheckCurrent(ctx, w.Epoch)
	switch {
	case err != nil:
		x.each(ctx, w, publisher.Delayed{Failure: publisher.FailureOf(err)})
	case got.Standing == publisher.Superseded:
		obs.FenceVerdictIn(ctx, "SUPERSEDED")
		x.each(ctx, w, publisher.Dropped{Reason: publisher.ReasonSuperseded})
	case got.Standing == publisher.Waiting:
		obs.FenceVerdictIn(ctx, "WAIT")
		x.each(ctx, w, publisher.Held{Until: got.Until, Reason: got.Reason})
	default:
		obs.FenceVerdictIn(ctx, obs.FenceHeld)
		return true
	}
	return false
}

// matches reads GitHub in the same breath, for an epoch that shows a result: what it shows must be what
// is there. Else it waits, and the scheduler is told what was read.
func (x *session) matches(ctx context.Context, w *publisher.Work) bool {
	if !w.Epoch.Kind.ShowsResult() {
		return true
	}
	got, err := x.Reader.ReadPullRequest(ctx, w.Epoch.PR)
	if err != nil {
		x.each(ctx, w, publisher.Delayed{Failure: publisher.FailureOf(err)})
		return false
	}
	if got.Shows(*w.Epoch.Run) {
		return true
	}
	x.pending.Seen = append(x.pending.Seen, publisher.Seen{Epoch: w.Epoch, Reading: got})
	x.each(ctx, w, publisher.Held{Reason: "GitHub shows another comparison"})
	return false
}
