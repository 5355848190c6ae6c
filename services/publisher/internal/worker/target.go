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
// the end, whatever is current; then only the last epoch can still be shown, and the last progress after it.
func (x *session) target(ctx context.Context, works []publisher.Work) {
	last, progress := publisher.Latest(works)
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
		case n != last && n != progress:
			x.each(ctx, w, publisher.Dropped{Reason: publisher.ReasonSuperseded})
		case !out.IsZero():
			x.each(ctx, w, publisher.Held{Until: out, Reason: "an earlier write may be out"})
		default:
			x.publish(ctx, w, publisher.Overlay(x.claim.Open[w.Epoch.Target], known))
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

// unread puts off what waits for the page to be read. Where that is refused, what stands on the head's commit does not
// end with the rest: it is told once that has ended.
func (x *session) unread(ctx context.Context, w *publisher.Work, f publisher.Failure) {
	follows := f.Reason == publisher.ReasonNotPermitted && w.OnPage()
	for n := range w.Cells {
		c := &w.Cells[n]
		switch {
		case c.Intent.State != publisher.StatePending || x.lost:
		case follows && c.Intent.Ref.OnCommit():
			x.apply(ctx, w, c, publisher.Held{Reason: "the page may not be read"})
		default:
			x.apply(ctx, w, c, publisher.Delayed{Failure: f})
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
		x.apply(ctx, w, c, publisher.Delayed{Failure: publisher.FailureOf(err), Own: true})
		return
	}
	if found != nil && found.Extra > 0 { // removed when the page is looked at again
		x.Metrics.duplicates(ctx, found.Extra)
		x.Log.WarnContext(ctx, "more than one output of a surface", "key", c.Intent.Key, "kept", found.ID, "extra", found.Extra)
	}
	x.apply(ctx, w, c, publisher.LookedUp{Found: found, Last: w.Last})
	if x.Rules.Next(*c, x.now()) == publisher.StepNothing {
		x.apply(ctx, w, c, publisher.Dropped{Reason: publisher.ReasonNothing})
	}
}

// publish shows an epoch, if it is current. Open is what is to be taken back on the target's page.
func (x *session) publish(ctx context.Context, w *publisher.Work, open []publisher.Surface) {
	if !x.due(ctx, w) || !x.stands(ctx, w) {
		return
	}
	in, ok := x.input(ctx, w)
	if !ok {
		return
	}
	x.add(ctx, w, w.Arrange(in.Plan, open))
	for n := range w.Cells { // every lookup before the first write: the writes follow each other closely
		if c := &w.Cells[n]; !x.lost && !x.paused {
			x.look(ctx, w, c, lookFrom(w))
		}
	}
	x.review(ctx, w, in.Plan)
	x.write(ctx, w, in)
	x.due(ctx, w)
}

// stands tells whether the epoch may be shown at this moment.
func (x *session) stands(ctx context.Context, w *publisher.Work) bool {
	x.asked = time.Now()
	return w.Epoch.Reply != nil || x.current(ctx, w) && x.matches(ctx, w)
}

// input loads what the epoch's outputs are made from.
func (x *session) input(ctx context.Context, w *publisher.Work) (in publisher.Input, ok bool) {
	e := w.Epoch
	if e.Reply != nil || e.Kind.Progress() {
		return in, true
	}
	memory, err := x.Store.Recall(ctx, e)
	if err != nil {
		x.Log.WarnContext(ctx, "recall a page", "installation", x.claim.Installation, "err", err)
		x.lost = true
		return in, false
	}
	in.History = memory.History
	if !e.Kind.ShowsResult() {
		return in, true
	}
	if in.Review, err = x.Reviewer.Review(ctx, e); err != nil {
		x.each(ctx, w, publisher.Delayed{Failure: publisher.FailureOf(err)})
		return in, false
	}
	if !w.Reviews() || w.NotPermitted() {
		return in, true
	}
	remarks, err := x.Remarker.Remarks(ctx, e)
	if err != nil {
		x.unread(ctx, w, publisher.FailureOf(err))
		return in, false
	}
	in.Plan = publisher.PlanRemarks(in.Review, remarks, memory.Said, w.SaidHere())
	return in, true
}

// review decides what the run's own review has to do, once it is known whether it is on the page.
func (x *session) review(ctx context.Context, w *publisher.Work, plan publisher.Plan) {
	drafts, drop := w.ArrangeReview(plan)
	x.add(ctx, w, drafts)
	if !drop {
		return
	}
	for n := range w.Cells {
		c := &w.Cells[n]
		if c.Intent.Rank == publisher.RankReview && c.Intent.Ref.Key == w.Epoch.RunID().String() && !x.lost && !x.paused {
			x.apply(ctx, w, c, publisher.Dropped{Reason: publisher.ReasonNothingNew})
		}
	}
}

// due tells whether anything can be done for the work now. What waits for another intent waits at least as long as
// that.
func (x *session) due(ctx context.Context, w *publisher.Work) bool {
	now, some := x.now(), false
	for n := range w.Cells {
		c := &w.Cells[n]
		if c.Intent.State != publisher.StatePending || c.Intent.Available.After(now) || x.lost {
			continue
		}
		if until, waits := w.Waits(c.Intent); waits && until.After(now) {
			x.apply(ctx, w, c, publisher.Held{Until: until, Reason: "another surface comes first"})
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
		if !w.Epoch.Kind.Progress() { // a result that comes right behind its progress is no fence that did not hold
			obs.FenceVerdictIn(ctx, "SUPERSEDED")
		}
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
	if !w.Epoch.Kind.ShowsResult() || w.NotPermitted() {
		return true
	}
	got, err := x.Reader.ReadPullRequest(ctx, w.Epoch.PR)
	if err != nil {
		x.unread(ctx, w, publisher.FailureOf(err))
		return false
	}
	if got.Shows(*w.Epoch.Run) {
		return true
	}
	x.pending.Seen = append(x.pending.Seen, publisher.Seen{Epoch: w.Epoch, Reading: got})
	x.each(ctx, w, publisher.Held{Reason: "GitHub shows another comparison"})
	return false
}
