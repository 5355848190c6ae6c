package worker

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// heal looks again at pages that were written some time ago, for what went wrong unseen: a second output of a
// surface, or one that shows another epoch than was delivered. Targets that were worked on are left to the next
// claim.
func (x *session) heal(ctx context.Context) {
	worked := map[publisher.TargetID]bool{}
	for _, w := range x.claim.Works {
		worked[w.Epoch.Target] = true
	}
	for n := range x.claim.Checks {
		w := &x.claim.Checks[n]
		for m := range w.Cells {
			c := &w.Cells[m]
			at := c.Surface.CheckAt
			if worked[w.Epoch.Target] || c.Surface.Shown != w.Epoch.At || at.IsZero() || at.After(x.now()) {
				continue
			}
			if x.done(ctx) || x.hold {
				return
			}
			x.check(ctx, w, c)
			x.touch(c)
		}
	}
}

// check looks at all outputs of one surface.
func (x *session) check(ctx context.Context, w *publisher.Work, c *publisher.Cell) {
	ref := c.Intent.Ref
	healer := x.Healers[ref.Kind]
	if healer == nil {
		c.Surface = c.Surface.Checked(x.now())
		return
	}
	all, err := x.all(ctx, w, c, healer)
	if err != nil {
		x.put(ctx, w, c, err)
		return
	}
	h := c.Surface.Reconcile(all)
	for _, extra := range h.Extra {
		if x.done(ctx) {
			return // due still
		}
		if err := x.bare(ctx, w, c, "remove", func(ctx context.Context) error {
			return healer.Remove(ctx, w.Epoch, ref, extra)
		}); err != nil {
			x.put(ctx, w, c, err)
			return
		}
		x.Metrics.heal(ctx, ref.Kind, "duplicate")
		x.Log.WarnContext(ctx, "second output removed", "key", c.Intent.Key, "kept", h.Surface.GitHubID, "removed", extra.ID)
	}
	c.Surface = h.Surface
	if h.Again && !x.rewrite(ctx, w, c) {
		return
	}
	c.Surface = c.Surface.Checked(x.now())
}

// all lists the outputs of the surface that were written since its epoch was recorded, or all of them, and the
// stored one in any case, if it bears its marker still.
func (x *session) all(ctx context.Context, w *publisher.Work, c *publisher.Cell, healer Healer) ([]publisher.Found, error) {
	id := c.Surface.GitHubID
	all, err := healer.All(ctx, w.Epoch, c.Intent.Ref, c.Surface.CheckFrom(w.Epoch.CreatedAt.Add(-lookBack)))
	if err != nil || len(all) == 0 || id == 0 || slices.ContainsFunc(all, func(f publisher.Found) bool { return f.ID == id }) {
		return all, err
	}
	stored, err := x.Surfaces[c.Intent.Ref.Kind].Read(ctx, w.Epoch, c.Intent.Ref, id)
	if err == nil && stored != nil && stored.At != (publisher.Position{}) {
		all = append(all, *stored)
	}
	return all, err
}

// rewrite makes the output say again what was delivered, if that is current still; false where it is to be tried
// again. An edit may be repeated, so no intent records it: the lease keeps others away until it can't be out.
func (x *session) rewrite(ctx context.Context, w *publisher.Work, c *publisher.Cell) bool {
	if w.Epoch.Reply == nil {
		got, err := x.Scheduler.CheckCurrent(ctx, w.Epoch)
		if err != nil {
			x.put(ctx, w, c, err)
			return false
		}
		if got.Standing != publisher.Current {
			return true // a later epoch edits it
		}
	}
	in, ok := x.input(ctx, w)
	if !ok || x.done(ctx) {
		c.Surface = c.Surface.CheckLater(x.now())
		return false
	}
	out := w.Render(x.Keys, c.Intent.Ref, part(w, c.Intent, publisher.OpEdit, in))
	var placed publisher.Placed
	err := x.bare(ctx, w, c, string(publisher.OpEdit), func(ctx context.Context) (err error) {
		placed, err = x.Surfaces[c.Intent.Ref.Kind].Edit(ctx, w.Epoch, c.Surface.GitHubID, out)
		return err
	})
	if err != nil || placed.More {
		x.put(ctx, w, c, err)
		return false
	}
	x.Metrics.heal(ctx, c.Intent.Ref.Kind, "outdated")
	x.Log.WarnContext(ctx, "output showed another epoch than was delivered", "key", c.Intent.Key, "id", c.Surface.GitHubID)
	return true
}

// put puts a look off that could not be finished, or gives it up where there is nothing to look at.
func (x *session) put(ctx context.Context, w *publisher.Work, c *publisher.Cell, err error) {
	c.Surface = c.Surface.CheckLater(x.now())
	if err == nil {
		return
	}
	switch f := publisher.FailureOf(err); f.Class {
	case publisher.Throttled:
		x.pause(ctx, w, f)
	case publisher.Refused, publisher.Gone:
		c.Surface = c.Surface.Checked(x.now())
	case publisher.Unknown, publisher.NotExecuted:
	}
}

// bare makes a write that no intent records, at the pace of all writes.
func (x *session) bare(ctx context.Context, w *publisher.Work, c *publisher.Cell, what string, call func(context.Context) error) (err error) {
	if !x.pace(ctx) {
		return errTooLate
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.Settings.Timeout)
	defer cancel()
	ctx, span := x.Tracer.Start(obs.Extract(ctx, w.Epoch.Traceparent), obs.SpanGitHubWrite, trace.WithAttributes(
		obs.Tenant(w.Epoch.Tenant.String()), obs.TargetID(w.Epoch.Target.String()), obs.Epoch(w.Epoch.At.Epoch),
		obs.IntentKey(c.Intent.Key), obs.Surface(string(c.Intent.Ref.Kind)), obs.Outcome(what)))
	defer func() { obs.End(span, err) }()
	began := time.Now()
	err = call(ctx)
	x.written, x.urgent = time.Now(), true
	x.Metrics.write(ctx, c.Intent, publisher.OpEdit, time.Since(began), err)
	if err != nil && publisher.FailureOf(err).Class == publisher.Unknown {
		x.hold = true
	}
	return err
}
