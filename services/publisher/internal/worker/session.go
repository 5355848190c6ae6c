package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// saveTimeout bounds one save, also while stopping.
const saveTimeout = 10 * time.Second

// session is one claim of a sender, from the lease to its return. What it decides stays in memory until
// the next write is about to begin, or until its end: a save per step would cost a commit each.
type session struct {
	*Sender
	claim publisher.Claim
	began time.Time // before the claim was asked for, on our own monotonic clock

	dirty     []*publisher.Cell
	pending   publisher.Changes
	throttles int
	written   time.Time // when the last write ended
	urgent    bool      // something happened on GitHub that is not saved yet
	paused    bool      // GitHub told the installation to stop
	lost      bool      // a save failed: nothing may be done any more
	hold      bool      // a write that no intent records may be out: the lease is kept until its end
	asked     time.Time // when the epoch in hand was last found to be current
}

func newSession(s *Sender, c publisher.Claim, began time.Time) *session {
	return &session{Sender: s, claim: c, began: began, throttles: c.Throttles}
}

// now is the database's clock, as far as it is known here.
func (x *session) now() time.Time { return x.claim.Now.Add(time.Since(x.began)) }

// room tells whether a write that begins now ends, with its grace, within the lease.
func (x *session) room() bool {
	return x.Settings.Lease-time.Since(x.began) > x.Settings.Timeout+x.Rules.Grace
}

func (x *session) done(ctx context.Context) bool {
	return x.lost || x.paused || ctx.Err() != nil || !x.room()
}

// run works on the claim's targets, one after the other, and says in how long the installation is due
// again; negative is not by itself.
func (x *session) run(ctx context.Context) time.Duration {
	works := x.claim.Works
	for len(works) > 0 && !x.done(ctx) {
		n := 1
		for n < len(works) && works[n].Epoch.Target == works[0].Epoch.Target {
			n++
		}
		x.target(ctx, works[:n])
		works = works[n:]
		if x.urgent && len(works) > 0 {
			x.flush(ctx, 0)
		}
	}
	x.heal(ctx)
	return x.release(ctx)
}

// apply takes an event of a cell to the state machine.
func (x *session) apply(ctx context.Context, w *publisher.Work, c *publisher.Cell, ev publisher.Event) {
	before := *c
	next, effects, err := x.Rules.Apply(*c, ev, x.now())
	if err != nil {
		// The order of steps rules this out; the intent stays as it is stored.
		x.Log.ErrorContext(ctx, "intent refuses an event", "key", c.Intent.Key, "err", err)
		x.lost = true
		return
	}
	*c = next
	if before.Intent != next.Intent || before.Surface != next.Surface {
		x.touch(c)
	}
	for _, e := range effects {
		switch e := e.(type) {
		case publisher.PauseSender:
			x.pause(ctx, w, e.Failure)
		case publisher.Bisect:
			x.Metrics.bisect(ctx)
			x.add(ctx, w, w.Halves(next.Intent))
		case publisher.FallBack:
			x.add(ctx, w, w.Instead())
		}
	}
	if next.Intent.Ended() {
		x.ended(ctx, w, next.Intent)
	}
}

// touch marks a cell to be saved.
func (x *session) touch(c *publisher.Cell) {
	for _, d := range x.dirty {
		if d == c {
			return
		}
	}
	x.dirty = append(x.dirty, c)
}

// add gives the work further intents. Cells move thereby: whoever holds one that has not ended looks it up again.
func (x *session) add(ctx context.Context, w *publisher.Work, drafts []publisher.Draft) {
	if len(drafts) == 0 || x.lost {
		return
	}
	e, old := w.Epoch, w.Cells
	w.Cells = slices.Clone(old)
	for _, d := range drafts {
		id, err := uuid.NewV7()
		if err != nil {
			x.Log.ErrorContext(ctx, "mint id", "err", err)
			x.lost = true
			return
		}
		for _, s := range x.claim.Open[e.Target] {
			if s.Ref == d.Surface.Ref && d.Surface.GitHubID == 0 {
				d.Surface = s
			}
		}
		cell := publisher.Cell{
			Intent: publisher.Intent{
				ID: publisher.IntentID(id), Key: e.IntentKey(d.Surface.Ref), Target: e.Target, Ref: d.Surface.Ref, Rank: d.Rank,
				At: e.At, Kind: e.Kind, Run: e.RunID(), State: publisher.StatePending, Remarks: d.Remarks,
				Available: x.now(), CreatedAt: x.now(),
			},
			Surface: d.Surface,
		}
		w.Cells, x.pending.Added = append(w.Cells, cell), append(x.pending.Added, cell)
	}
	for n, d := range x.dirty {
		for m := range old {
			if d == &old[m] {
				x.dirty[n] = &w.Cells[m]
			}
		}
	}
}

func (x *session) ended(ctx context.Context, w *publisher.Work, i publisher.Intent) {
	x.Metrics.intentEnded(ctx, i)
	if i.State == publisher.StateEnded {
		x.Log.InfoContext(ctx, "intent ended", "key", i.Key, "surface", i.Ref.Kind, "reason", i.Reason, "last_error", i.LastError)
	}
	if w.Ended() {
		x.pending.Ended = append(x.pending.Ended, *w)
	}
}

// pause leaves the whole installation alone for as long as GitHub asked.
func (x *session) pause(ctx context.Context, w *publisher.Work, f publisher.Failure) {
	if x.paused {
		return // the same word, for another intent of the epoch
	}
	x.throttles++
	x.paused = true
	x.pending.Told, x.pending.PauseReason = f.Pause(x.throttles), f.Word()
	x.pending.Pause = x.pending.Told
	if f.Suspended() { // the scheduler's pause holds us up, and may be ended by an event
		x.pending.Pause = min(x.pending.Told, x.Rules.HoldMax)
	}
	if epoch := w.Epoch; epoch.Reply == nil { // a reply's target is none of the scheduler's
		x.pending.Delayed = &epoch
	}
	x.Metrics.pause(ctx, f)
	x.Log.WarnContext(ctx, "installation paused", "installation", x.claim.Installation, "reason", f.Word(), "for", x.pending.Told.String())
}

// flush saves what was decided, if enough of the lease is left for what follows.
func (x *session) flush(ctx context.Context, needed time.Duration) {
	x.save(ctx, publisher.Changes{Needed: needed})
}

// release saves the rest and gives the lease back.
func (x *session) release(ctx context.Context) time.Duration {
	if x.hold && !x.lost {
		x.save(ctx, publisher.Changes{})
		return x.Settings.Lease - time.Since(x.began)
	}
	if !x.lost {
		if next, ok := x.save(ctx, publisher.Changes{Release: true}); ok {
			return next
		}
	}
	// Whatever is unsaved is found again by its marker. A moment's rest keeps a fault from spinning.
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	x.dirty, x.pending = nil, publisher.Changes{}
	if next, ok := x.save(ctx, publisher.Changes{Release: true}); ok {
		return next
	}
	return x.Settings.Lease
}

// cells are those to be saved. Epochs of one target share surfaces: the last one to touch a surface left it
// as it is, whatever earlier ones knew.
func (x *session) cells() []publisher.Cell {
	type place struct {
		target publisher.TargetID
		ref    publisher.Ref
	}
	latest := map[place]publisher.Cell{}
	for _, c := range x.dirty {
		at := place{c.Intent.Target, c.Surface.Ref}
		if known, ok := latest[at]; !ok || c.Intent.At.Compare(known.Intent.At) > 0 {
			latest[at] = *c
		}
	}
	out := make([]publisher.Cell, 0, len(x.dirty))
	for _, c := range x.dirty {
		cell := *c
		cell.Surface = latest[place{c.Intent.Target, c.Surface.Ref}].Surface
		out = append(out, cell)
	}
	return out
}

func (x *session) save(ctx context.Context, ch publisher.Changes) (time.Duration, bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	ch.Cells = x.cells()
	p := x.pending
	ch.Added = p.Added
	ch.Ended, ch.Seen, ch.Wrote = p.Ended, p.Seen, p.Wrote || x.urgent
	ch.Pause, ch.Told, ch.PauseReason, ch.Delayed = p.Pause, p.Told, p.PauseReason, p.Delayed
	ch.Elapsed, ch.Spacing, ch.Throttles = time.Since(x.began), x.Settings.Spacing, x.throttles
	next, err := x.Store.Save(ctx, x.claim, ch)
	if err != nil {
		x.lost = true
		if errors.Is(err, publisher.ErrLeaseLost) {
			obs.FenceVerdictIn(ctx, "LEASE_LOST")
		}
		x.Log.WarnContext(ctx, "save intents", "installation", x.claim.Installation, "err", err)
		return 0, false
	}
	for _, c := range x.dirty {
		c.Intent.Version++
	}
	x.dirty, x.pending, x.urgent = nil, publisher.Changes{}, false
	return next, true
}
