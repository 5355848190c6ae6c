package publisher

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// page is GitHub as a model: comments of ours, and writes that are still on their way.
type page struct {
	now      time.Time
	nextID   int64
	comments map[int64]Mark
	flying   []flight
}

type flight struct {
	at   time.Time
	op   Op
	id   int64
	mark Mark
}

const httpTimeout = 10 * time.Second

// pass lets time go by; what flies lands.
func (p *page) pass(d time.Duration) {
	p.now = p.now.Add(d)
	var left []flight
	for _, f := range p.flying {
		if f.at.After(p.now) {
			left = append(left, f)
			continue
		}
		p.land(f)
	}
	p.flying = left
}

func (p *page) land(f flight) int64 {
	if f.op == OpCreate {
		p.nextID++
		f.id = p.nextID
	}
	if _, there := p.comments[f.id]; there || f.op == OpCreate {
		p.comments[f.id] = f.mark
	}
	return f.id
}

// find is a complete listing.
func (p *page) find() *Found {
	var found *Found
	for id, m := range p.comments {
		if found == nil || id < found.ID {
			found = &Found{ID: id, At: m.At, Run: m.Run, Extra: len(p.comments) - 1}
		}
	}
	return found
}

// fate is what becomes of a send.
type fate int

const (
	answered   fate = iota
	crashSaved      // the process dies after the record was committed, before the call
	crashCall       // ... after the call, before its answer is saved
	lostDone        // the write is made, its answer lost
	lostLate        // the answer is lost, the write lands before the HTTP timeout is over
	lostNever       // the answer is lost, and so is the write
	refusedNow      // surely not executed
)

// world is one target's summary: what is stored, and the page.
type world struct {
	rules   Rules
	page    page
	surface Surface // stored
	intents []Intent
}

// sender does what a sender does in one claim: it loads, settles what may be out, shows the last epoch.
func (w *world) sender(t *rapid.T, fate func() fate) {
	for n := range w.intents {
		last := n == len(w.intents)-1
		c := Cell{Intent: w.intents[n], Surface: w.surface}
		for range 4 {
			before := c
			if !w.step(t, &c, last, fate) {
				return // the process died
			}
			if c == before {
				break
			}
		}
		if c.Intent.State == StateSending {
			return // later epochs wait until it is settled
		}
	}
}

// step does the next thing with an intent; false is a crash. Every step saves.
func (w *world) step(t *rapid.T, c *Cell, last bool, next func() fate) bool {
	apply := func(ev Event) {
		got, _, err := w.rules.Apply(*c, ev, w.page.now)
		if err != nil {
			t.Fatalf("%T: %v on %+v", ev, err, *c)
		}
		*c = got
	}
	save := func() {
		w.surface = c.Surface
		for n := range w.intents {
			if w.intents[n].At == c.Intent.At {
				w.intents[n] = c.Intent
			}
		}
	}
	if c.Intent.State == StatePending && !last {
		apply(Dropped{ReasonSuperseded})
		save()
		return true
	}
	switch w.rules.Next(*c, w.page.now) {
	case StepLookUp:
		apply(LookedUp{Found: w.page.find()})
		save()
	case StepReadBack:
		var found *Found
		if m, ok := w.page.comments[c.Surface.GitHubID]; ok {
			found = &Found{ID: c.Surface.GitHubID, At: m.At, Run: m.Run}
		}
		apply(LookedUp{Found: found})
		save()
	case StepDrop:
		apply(Dropped{ReasonSuperseded})
		save()
	case StepCreate, StepEdit:
		op, id := OpCreate, c.Surface.GitHubID
		if id != 0 {
			op = OpEdit
		}
		apply(Sent{Op: op})
		save()
		return w.call(flight{op: op, id: id, mark: Mark{At: c.Intent.At, Run: c.Intent.Run}}, next(), apply, save)
	default: // nothing to do now
	}
	return true
}

func (w *world) call(f flight, fate fate, apply func(Event), save func()) bool {
	switch fate {
	case crashSaved:
		return false
	case crashCall:
		w.page.land(f)
		return false
	case lostDone:
		w.page.land(f)
		apply(Failed{Failure{Class: Unknown, Reason: "LOST"}})
	case lostLate:
		f.at = w.page.now.Add(httpTimeout)
		w.page.flying = append(w.page.flying, f)
		apply(Failed{Failure{Class: Unknown, Reason: "LOST"}})
	case lostNever:
		apply(Failed{Failure{Class: Unknown, Reason: "LOST"}})
	case refusedNow:
		apply(Failed{Failure{Class: NotExecuted, Reason: "AWAY"}})
	case answered:
		apply(Answered{Placed{ID: w.page.land(f)}})
	}
	save()
	return true
}

// TestAnyCrashLeavesOneComment: whatever sequence of epochs, crashes, lost answers and late writes there
// is, at rest the page has exactly one comment, and it shows the last epoch.
func TestAnyCrashLeavesOneComment(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{rules: DefaultRules, page: page{now: time.Unix(1000, 0), comments: map[int64]Mark{}}}
		w.surface.Ref = Ref{Kind: SurfaceSummary}
		drawn := func() fate { return fate(rapid.IntRange(0, int(refusedNow)).Draw(t, "fate")) }
		steps := rapid.SliceOfN(rapid.IntRange(0, 4), 4, 30).Draw(t, "steps")
		record := func() {
			at := Position{Lifecycle: 1, Epoch: int64(len(w.intents) + 1)}
			w.intents = append(w.intents, Intent{
				ID: IntentID{15: byte(at.Epoch)}, Ref: w.surface.Ref, At: at, Kind: KindResult, Run: RunID{byte(at.Epoch)},
				State: StatePending, Available: w.page.now,
			})
		}
		record()
		for _, s := range steps {
			switch s {
			case 0:
				record()
			case 1, 2:
				w.sender(t, drawn)
			case 3, 4:
				w.page.pass(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
			}
			if len(w.page.comments) > 1 {
				t.Fatalf("two comments: %v", w.page.comments)
			}
		}
		for range 20 { // to rest
			w.page.pass(10 * time.Minute)
			w.sender(t, func() fate { return answered })
		}
		want := w.intents[len(w.intents)-1].At
		found := w.page.find()
		if found == nil || found.Extra != 0 || found.At != want {
			t.Fatalf("the page shows %+v, want one comment of %+v; intents %+v", found, want, w.intents)
		}
		for _, i := range w.intents {
			if !i.Ended() {
				t.Fatalf("open at rest: %+v", i)
			}
		}
	})
}
