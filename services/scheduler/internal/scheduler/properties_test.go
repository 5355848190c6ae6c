package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// machine throws calls at a target, in any order and under any fence. Histories that make sense, and
// what they come to, are package walk's.
type machine struct {
	rules    scheduler.Rules
	now      time.Time
	target   scheduler.Target
	runs     map[scheduler.RunID]scheduler.Run
	fences   []scheduler.Fence
	lastRing time.Time
	told     map[scheduler.Told]bool
	ids      uint16
}

func (m *machine) id() [16]byte { m.ids++; return [16]byte{byte(m.ids >> 8), byte(m.ids), 0xff} }

var contents = rapid.Custom(func(t *rapid.T) scheduler.Content {
	return scheduler.Content{
		State:   rapid.SampledFrom([]scheduler.State{scheduler.StateOpen, scheduler.StateOpen, scheduler.StateDraft, scheduler.StateClosed}).Draw(t, "state"),
		Head:    rapid.SampledFrom([]string{"h1", "h2", "h3"}).Draw(t, "head"),
		BaseRef: rapid.SampledFrom([]string{"main", "next"}).Draw(t, "base"),
	}
})

// save holds every transition to what no history may break.
func (m *machine) save(t *rapid.T, next scheduler.Target, e scheduler.Effects) {
	last := m.target
	for _, r := range e.Runs {
		m.runs[r.ID] = r
	}
	for _, r := range e.Rings {
		m.lastRing = r.At
	}
	switch {
	case next.Generation < last.Generation || next.Activities < last.Activities || next.Epoch < last.Epoch || next.Resolved < last.Resolved:
		t.Fatalf("a counter went back: %+v -> %+v", last, next)
	case next.Resolved > next.Generation:
		t.Fatalf("more is resolved than was heard: %+v", next)
	case (next.Generation > next.Resolved || len(next.Requests) > 0) && !next.Due():
		t.Fatalf("forgotten: %+v", next)
	case next.Due() && !next.Claim.Held() && m.lastRing.Before(next.ReadyAt()):
		t.Fatalf("due at %s without a ring: the last is for %s", next.ReadyAt(), m.lastRing)
	case (next.Epoch > last.Epoch) != (e.Publish != nil):
		t.Fatalf("epoch %d -> %d, published %+v", last.Epoch, next.Epoch, e.Publish)
	case e.Progress != nil && (e.Progress.Epoch != next.Epoch || e.Progress.Generation != next.Generation || e.Progress.Lifecycle != next.Lifecycle):
		t.Fatalf("progress %+v is not of the target as it is now: %+v", e.Progress, next)
	case e.Progress != nil && (!next.WantsPublish || e.Progress.Run.ID != next.InWork):
		t.Fatalf("progress of a run whose result would not be published: %+v of %+v", e.Progress, next)
	case e.Progress != nil && m.told[e.Progress.Told]:
		t.Fatalf("told twice: %+v", e.Progress)
	case next.InWork.IsZero() && next.Told.State != "" && next.Told.Epoch == next.Epoch:
		t.Fatalf("a run has ended, and the page shows it %s: %+v", next.Told.State, next)
	case next.Claim.Held() && next.Claim.LeaseUntil.After(next.Claim.ClaimedAt.Add(m.rules.MaxClaim)):
		t.Fatalf("a claim beyond its bound: %+v", next.Claim)
	}
	if e.Progress != nil {
		m.told[e.Progress.Told] = true
	}
	m.target = next
}

// refuse holds a refused call to changing nothing but the end of its own claim.
func (m *machine) refuse(t *rapid.T, last scheduler.Target, f scheduler.Fence, e scheduler.Effects) {
	if e.Publish != nil || e.Progress != nil || len(e.Runs)+len(e.Receipts) > 0 || m.target.Resolved != last.Resolved || m.target.DueAt != last.DueAt {
		t.Fatalf("a refused call wrote %+v", e)
	}
	if m.target.Claim.Held() && m.target.Claim.ID == f.Claim {
		t.Fatalf("a refused call left its claim: %+v", m.target.Claim)
	}
	if last.Claim.ID != f.Claim && m.target.Claim != last.Claim {
		t.Fatalf("a refused call ended another's claim")
	}
}

func (m *machine) fence(t *rapid.T) scheduler.Fence {
	f := rapid.SampledFrom(m.fences).Draw(t, "fence")
	if rapid.Bool().Draw(t, "spoil") {
		f.Generation -= scheduler.Generation(rapid.IntRange(0, 1).Draw(t, "generations back"))
		f.Lifecycle += scheduler.Lifecycle(rapid.IntRange(0, 1).Draw(t, "lifecycles on"))
		if rapid.Bool().Draw(t, "without run") {
			f.Run = scheduler.RunID{}
		}
	}
	return f
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"time passes": func(t *rapid.T) {
			m.now = m.now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
		},
		"record": func(t *rapid.T) {
			a := scheduler.Activity{
				ID:    scheduler.ActivityID(fmt.Sprint(m.id())),
				Cause: rapid.SampledFrom([]scheduler.Cause{scheduler.CauseWebhook, scheduler.CauseSweep, scheduler.CauseReplay, scheduler.CauseRequest}).Draw(t, "cause"),
			}
			if a.Cause == scheduler.CauseRequest {
				a.Request = scheduler.Request{ID: scheduler.RequestID(a.ID), Dry: rapid.Bool().Draw(t, "dry"), Rerun: rapid.Bool().Draw(t, "rerun")}
			} else {
				a.Hint.Content = contents.Draw(t, "content")
				a.Hint.UpdatedAt = m.now.Add(-time.Duration(rapid.IntRange(0, 100).Draw(t, "old")) * time.Second).Truncate(time.Second)
			}
			next, e := m.rules.Record(m.target, a, m.now)
			m.save(t, next, e)
		},
		"claim": func(t *rapid.T) {
			next, e := m.rules.Lapse(m.target, m.now)
			m.save(t, next, e)
			next, err := m.rules.Claim(m.target, scheduler.ClaimID(m.id()), "worker", false, m.now)
			if err != nil {
				return
			}
			m.save(t, next, scheduler.Effects{})
			m.fences = append(m.fences, next.Fence())
		},
		"resolve": func(t *rapid.T) {
			f, last := m.fence(t), m.target
			in := reading(contents.Draw(t, "content"), m.now.Add(-time.Duration(rapid.IntRange(0, 100).Draw(t, "old"))*time.Second))
			var known []scheduler.Run
			for _, r := range m.runs {
				known = append(known, r)
			}
			next, res, e, err := m.rules.Resolve(m.target, f, in, known, scheduler.RunID(m.id()), m.now)
			if err != nil {
				t.Fatal(err)
			}
			m.save(t, next, e)
			if res.Refused != nil {
				m.refuse(t, last, f, e)
			} else if next.Claim.Held() && next.Claim.ID == f.Claim {
				m.fences = append(m.fences, next.Fence())
			}
		},
		"commit": func(t *rapid.T) {
			f, last := m.fence(t), m.target
			o := rapid.SampledFrom([]scheduler.Outcome{accepted(byte(m.ids) | 1), refused("too_large"), overBudget(0)}).Draw(t, "outcome")
			next, c, e, err := m.rules.Commit(m.target, f, m.runs[f.Run], o, m.now)
			if err != nil {
				return // a fence without its run
			}
			m.save(t, next, e)
			if c.Refused != nil {
				m.refuse(t, last, f, e)
			}
		},
		"release": func(t *rapid.T) {
			f, last := m.fence(t), m.target
			next, e, refused := m.rules.Release(m.target, f, scheduler.ReleaseAttemptFailed, "", 0, m.now)
			m.save(t, next, e)
			if refused != nil {
				m.refuse(t, last, f, e)
			}
		},
		"renew": func(t *rapid.T) {
			if next, _, err := m.rules.Renew(m.target, m.fence(t).Claim, m.now); err == nil {
				m.save(t, next, scheduler.Effects{})
			}
		},
		"start": func(t *rapid.T) {
			next, _, e, err := m.rules.Start(m.target, m.fence(t).Claim, m.runs[m.target.Claim.Run], m.now)
			if err != nil {
				return
			}
			if next.Epoch != m.target.Epoch || next.Page != m.target.Page {
				t.Fatalf("a start changed the page: %+v -> %+v", m.target, next)
			}
			m.save(t, next, e)
		},
		"publication": func(t *rapid.T) {
			next, e := m.target.RecordPublication(scheduler.Publication{
				Lifecycle: 1, Epoch: scheduler.Epoch(rapid.IntRange(0, 5).Draw(t, "epoch")),
				Delivery: rapid.SampledFrom([]scheduler.Delivery{scheduler.DeliveryDelivered, scheduler.DeliveryEnded}).Draw(t, "delivery"),
			}, m.runs[m.target.Page.Run], m.now)
			m.save(t, next, e)
		},
	}
}

func TestNoHistoryBreaksATarget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{
			rules: scheduler.Defaults(), now: start, runs: map[scheduler.RunID]scheduler.Run{}, told: map[scheduler.Told]bool{},
			target: scheduler.NewTarget(scheduler.TargetID{1}, scheduler.TenantID{2}, scheduler.PullRequest{}, start),
			fences: []scheduler.Fence{{}},
		}
		t.Repeat(m.actions())
	})
}

// A branch that is pushed faster than it can be reviewed costs at most one attempt per maximum wait,
// once the quiet time has doubled up to it, and is reviewed when it rests.
func TestABusyBranchCostsOneAttemptPerMaximumWait(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		every := time.Duration(rapid.IntRange(5, 25).Draw(rt, "seconds between pushes")) * time.Second
		s := newScene(t)
		var claims []time.Time
		for i := 0; s.now.Sub(start) < time.Hour; i++ {
			s.webhook(scheduler.Content{State: scheduler.StateOpen, Head: fmt.Sprint("h", i), BaseRef: "main"})
			if s.target.Claim.Held() {
				s.resolves(open1) // too late: the push has gone by
			}
			s.after(every)
			if !s.target.ReadyAt().After(s.now) {
				s.claims()
				claims = append(claims, s.now)
			}
		}
		for i := 6; i < len(claims); i++ {
			if gap := claims[i].Sub(claims[i-1]); gap < s.rules.MaxWait {
				rt.Fatalf("claims %d and %d are %s apart", i-1, i, gap)
			}
		}
		if len(claims) < 10 {
			rt.Fatalf("only %d claims in an hour", len(claims))
		}
	})
}
