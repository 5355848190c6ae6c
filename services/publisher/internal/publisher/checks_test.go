package publisher

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// shownCheck is a check run on the model's page: what it shows, and whether it has not concluded.
type shownCheck struct {
	ref  Ref
	at   Position
	open bool
}

// checkWorld is one target's check runs: what is stored, and the page. Writes land at once, late, or never.
type checkWorld struct {
	now      time.Time
	checks   []shownCheck // by id - 1
	flying   []checkFlight
	surfaces map[Ref]Surface
	works    []Work
	last     Position
}

type checkFlight struct {
	at time.Time
	id int
	to shownCheck
}

func (w *checkWorld) land(id int, to shownCheck) int64 {
	if id == 0 {
		w.checks = append(w.checks, to)
		return int64(len(w.checks))
	}
	w.checks[id-1] = to
	return int64(id)
}

func (w *checkWorld) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.flying = slices.DeleteFunc(w.flying, func(f checkFlight) bool {
		if f.at.After(w.now) {
			return false
		}
		w.land(f.id, f.to)
		return true
	})
}

func (w *checkWorld) find(ref Ref, id int64) *Found {
	for n, c := range w.checks {
		if c.ref == ref && (id == 0 || id == int64(n+1)) {
			return &Found{ID: int64(n + 1), At: c.at}
		}
	}
	return nil
}

// record is what the scheduler tells: an epoch of a run at a head, or its progress, in whatever order.
func (w *checkWorld) record(kind Kind, at Position, head byte) {
	work := shown(kind, at.Epoch, head, string('a'+rune(head)))
	work.Epoch.At = at
	work.Cells = slices.DeleteFunc(work.Cells, func(c Cell) bool { return c.Intent.Ref.Kind != SurfaceCheckRun })
	for n := range work.Cells {
		work.Cells[n].Intent.At, work.Cells[n].Intent.Available = at, w.now
	}
	if at.Compare(w.last) > 0 {
		w.last = at
	}
	w.works = append(w.works, work)
	slices.SortFunc(w.works, func(a, b Work) int { return a.Epoch.At.Compare(b.Epoch.At) })
}

// sender does what one claim does, up to a crash.
func (w *checkWorld) sender(t *rapid.T, next func() fate) {
	w.works = slices.DeleteFunc(w.works, func(v Work) bool { return v.Ended() && len(v.Cells) > 0 })
	if len(w.works) == 0 {
		return
	}
	for n := range w.works {
		w.works[n].Last = w.last
	}
	last, progress := Latest(w.works)
	held := false
	for n := range w.works {
		v := &w.works[n]
		for m := range v.Cells {
			v.Cells[m].Surface = w.surfaces[v.Cells[m].Intent.Ref]
			if v.Cells[m].Intent.State == StateSending && !w.step(t, v, &v.Cells[m], next) {
				return
			}
		}
		switch {
		case n != last && n != progress:
			for m := range v.Cells {
				if v.Cells[m].Intent.State == StatePending {
					w.apply(t, &v.Cells[m], Dropped{ReasonSuperseded})
				}
			}
		case !held:
			if !w.publish(t, v, next) {
				return
			}
		}
		held = held || !v.MayBeOut().IsZero()
	}
}

func (w *checkWorld) publish(t *rapid.T, v *Work, next func() fate) bool {
	for _, d := range v.Arrange(Plan{}, Overlay(nil, w.surfaces)) {
		e := v.Epoch
		v.Cells = append(v.Cells, Cell{Intent: Intent{
			Ref: d.Surface.Ref, Rank: d.Rank, At: e.At, Kind: e.Kind, Run: e.RunID(), State: StatePending, Available: w.now,
		}})
	}
	for range 20 {
		c := v.Ready(DefaultRules, w.now)
		if c == nil {
			return true
		}
		if !w.step(t, v, c, next) {
			return false
		}
	}
	t.Fatalf("the sender spins at %+v", v)
	return false
}

func (w *checkWorld) apply(t *rapid.T, c *Cell, ev Event) {
	got, _, err := DefaultRules.Apply(*c, ev, w.now)
	if err != nil {
		t.Fatalf("%T: %v on %+v", ev, err, *c)
	}
	*c = got
	c.Surface.Ref = c.Intent.Ref
	w.surfaces[c.Intent.Ref] = c.Surface
}

func (w *checkWorld) step(t *rapid.T, v *Work, c *Cell, next func() fate) bool {
	c.Surface = w.surfaces[c.Intent.Ref]
	switch DefaultRules.Next(*c, w.now) {
	case StepLookUp:
		w.apply(t, c, LookedUp{Found: w.find(c.Intent.Ref, 0), Last: v.Last})
	case StepReadBack:
		w.apply(t, c, LookedUp{Found: w.find(c.Intent.Ref, c.Surface.GitHubID), Last: v.Last})
	case StepDrop:
		w.apply(t, c, Dropped{ReasonSuperseded})
	case StepNothing:
		w.apply(t, c, Dropped{ReasonNothing})
	case StepCreate, StepEdit:
		return w.send(t, c, next())
	case StepNone, StepLater:
	}
	return true
}

func (w *checkWorld) send(t *rapid.T, c *Cell, f fate) bool {
	op, id := OpCreate, int(c.Surface.GitHubID)
	if id != 0 {
		op = OpEdit
	}
	w.apply(t, c, Sent{Op: op})
	to := shownCheck{ref: c.Intent.Ref, at: c.Intent.At, open: c.Intent.opens()}
	switch f {
	case crashSaved:
		return false
	case crashCall:
		w.land(id, to)
		return false
	case lostDone:
		w.land(id, to)
		w.apply(t, c, Failed{Failure{Class: Unknown}})
	case lostLate:
		w.flying = append(w.flying, checkFlight{w.now.Add(httpTimeout), id, to})
		w.apply(t, c, Failed{Failure{Class: Unknown}})
	case lostNever:
		w.apply(t, c, Failed{Failure{Class: Unknown}})
	case refusedNow:
		w.apply(t, c, Failed{Failure{Class: NotExecuted}})
	case answered:
		w.apply(t, c, Answered{Placed{ID: w.land(id, to)}})
	}
	return true
}

// TestNoCheckRunStaysOpen: whatever comes in whatever order, and whatever crashes, is lost or lands late, each head's
// run has at most one check run, and at rest none is open but that of the last progress, where that is the last word.
func TestNoCheckRunStaysOpen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &checkWorld{now: at0, surfaces: map[Ref]Surface{}}
		drawn := func() fate { return fate(rapid.IntRange(0, int(refusedNow)).Draw(t, "fate")) }
		epoch, generation, head := int64(0), int64(0), byte(0)
		var told []func() // what the outbox holds, without order
		for range rapid.IntRange(3, 25).Draw(t, "steps") {
			at := Position{Lifecycle: 1, Epoch: epoch}
			tell := func(kind Kind, at Position) {
				head := head
				told = append(told, func() { w.record(kind, at, head) })
			}
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0: // a run begins, on a head of its own
				generation, head = generation+1, head+1
				at.Step = ProgressStep(generation, KindQueued)
				tell(KindQueued, at)
			case 1:
				if generation > 0 {
					at.Step = ProgressStep(generation, KindInProgress)
					tell(KindInProgress, at)
				}
			case 2, 3:
				if head > 0 {
					epoch++
					at.Epoch++
					tell(rapid.SampledFrom([]Kind{KindResult, KindSkipped, KindSuperseded, KindOverBudget}).Draw(t, "kind"), at)
				}
			case 4:
				if len(told) > 0 {
					n := rapid.IntRange(0, len(told)-1).Draw(t, "message")
					told[n]()
					told = slices.Delete(told, n, n+1)
				}
			case 5:
				w.sender(t, drawn)
			case 6:
				w.pass(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
			}
		}
		// A last epoch, as the scheduler makes one wherever progress may be shown.
		epoch++
		for _, deliver := range told {
			deliver()
		}
		w.record(KindResult, Position{Lifecycle: 1, Epoch: epoch}, head+1)
		for range 20 {
			w.pass(10 * time.Minute)
			w.sender(t, func() fate { return answered })
		}
		seen := map[Ref]bool{}
		for _, c := range w.checks {
			if c.open || seen[c.ref] {
				t.Fatalf("at rest: %s", fmt.Sprint(w.checks))
			}
			seen[c.ref] = true
		}
		if !seen[checkOf(head+1, string('a'+rune(head+1)))] {
			t.Fatalf("the last head has no check run: %v", w.checks)
		}
	})
}
