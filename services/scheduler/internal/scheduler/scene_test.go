package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// scene plays one target through the rules, so that a test reads as what happened.
type scene struct {
	t      *testing.T
	rules  scheduler.Rules
	now    time.Time
	target scheduler.Target
	runs   []scheduler.Run
	fence  scheduler.Fence // of the latest claim
	last   scheduler.Effects
	ids    uint16
}

var (
	start = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	open1 = scheduler.Content{State: scheduler.StateOpen, Head: "h1", BaseRef: "main"}
	open2 = scheduler.Content{State: scheduler.StateOpen, Head: "h2", BaseRef: "main"}
	gone  = scheduler.Content{State: scheduler.StateGone}
)

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, rules: scheduler.Defaults(), now: start}
	pr := scheduler.PullRequest{Project: scheduler.ProjectID{2}, Host: "github.com", Installation: 7, Repository: 42, FullName: "acme/widgets", Number: 12}
	s.target = scheduler.NewTarget(scheduler.TargetID{1}, scheduler.TenantID{3}, pr, start)
	return s
}

func in(c scheduler.Content, state scheduler.State) scheduler.Content {
	c.State = state
	return c
}

func retargeted(c scheduler.Content) scheduler.Content {
	c.BaseRef = "next"
	return c
}

func (s *scene) id() [16]byte { s.ids++; return [16]byte{byte(s.ids >> 8), byte(s.ids), 0xff} }

func (s *scene) after(d time.Duration) *scene { s.now = s.now.Add(d); return s }

func (s *scene) save(t scheduler.Target, e scheduler.Effects) {
	s.target, s.last = t, e
	for _, run := range e.Runs {
		known := false
		for i := range s.runs {
			if s.runs[i].ID == run.ID {
				s.runs[i], known = run, true
			}
		}
		if !known {
			s.runs = append(s.runs, run)
		}
	}
}

// hears records an activity whose payload GitHub stamped now.
func (s *scene) hears(cause scheduler.Cause, c scheduler.Content) *scene {
	return s.hearsOf(cause, c, s.now)
}

// hearsOf records an activity whose payload GitHub stamped at.
func (s *scene) hearsOf(cause scheduler.Cause, c scheduler.Content, at time.Time) *scene {
	return s.hearsActivity(scheduler.Activity{
		Cause: cause, Hint: scheduler.Hint{Content: c, UpdatedAt: at.Truncate(time.Second)},
	})
}

func (s *scene) hearsActivity(a scheduler.Activity) *scene {
	a.ID = scheduler.ActivityID(fmt.Sprint("activity-", s.id()))
	s.save(s.rules.Record(s.target, a, s.now))
	return s
}

func (s *scene) webhook(c scheduler.Content) *scene { return s.hears(scheduler.CauseWebhook, c) }

func (s *scene) request(r scheduler.Request) *scene {
	return s.hearsActivity(scheduler.Activity{Cause: scheduler.CauseRequest, Request: r})
}

// claims waits until the target may be claimed, and claims it.
func (s *scene) claims() *scene {
	s.t.Helper()
	if ready := s.target.ReadyAt(); ready.After(s.now) {
		s.now = ready
	}
	t, err := s.rules.Claim(s.target, scheduler.ClaimID(s.id()), "worker", false, s.now)
	if err != nil {
		s.t.Fatalf("claim: %v", err)
	}
	s.save(t, scheduler.Effects{})
	s.fence = t.Fence()
	return s
}

func reading(c scheduler.Content, at time.Time) scheduler.Reading {
	if c.State == scheduler.StateGone {
		return scheduler.Reading{Content: c}
	}
	return scheduler.Reading{
		Content: c, BaseSHA: c.BaseRef + "@1", MergeBase: "fork-" + c.Head, UpdatedAt: at.Truncate(time.Second),
	}
}

// resolves calls ResolveRun with a read that GitHub stamped now.
func (s *scene) resolves(c scheduler.Content) scheduler.Resolution {
	s.t.Helper()
	return s.resolvesRead(reading(c, s.now))
}

func (s *scene) resolvesRead(in scheduler.Reading) scheduler.Resolution {
	s.t.Helper()
	t, res, e, err := s.rules.Resolve(s.target, s.fence, in, s.runs, scheduler.RunID(s.id()), s.now)
	if err != nil {
		s.t.Fatalf("resolve: %v", err)
	}
	s.save(t, e)
	if res.Answer == scheduler.AnswerReview {
		s.fence.Run = res.Run.ID
	}
	return res
}

func (s *scene) run(id scheduler.RunID) scheduler.Run {
	for _, r := range s.runs {
		if r.ID == id {
			return r
		}
	}
	return scheduler.Run{}
}

func (s *scene) commits(o scheduler.Outcome) scheduler.Commitment {
	s.t.Helper()
	t, c, e, err := s.rules.Commit(s.target, s.fence, s.run(s.fence.Run), o, s.now)
	if err != nil {
		s.t.Fatalf("commit: %v", err)
	}
	s.save(t, e)
	return c
}

func (s *scene) releases(why scheduler.ReleaseReason, after time.Duration) error {
	t, e, refused := s.rules.Release(s.target, s.fence, why, "", after, s.now)
	s.save(t, e)
	return refused
}

// reviewed claims, reads and commits a result, and delivers what is said of it.
func (s *scene) reviewed(c scheduler.Content) *scene {
	s.t.Helper()
	s.claims()
	if res := s.resolves(c); res.Answer != scheduler.AnswerReview {
		s.t.Fatalf("%+v is %+v, not to be reviewed", c, res)
	}
	s.commits(accepted(1))
	return s.delivered()
}

func (s *scene) delivered() *scene {
	s.save(s.target.RecordPublication(scheduler.Publication{
		Lifecycle: s.target.Lifecycle, Epoch: s.target.Epoch, Delivery: scheduler.DeliveryDelivered,
	}, s.run(s.target.Page.Run), s.now))
	return s
}

func accepted(attempt byte) scheduler.Outcome {
	return scheduler.Outcome{Accepted: &scheduler.Result{Attempt: scheduler.AttemptID{attempt}, Verdict: scheduler.VerdictClean}}
}

func refused(reason string) scheduler.Outcome {
	return scheduler.Outcome{Refused: &scheduler.Refused{Reason: reason}}
}

func overBudget(after time.Duration) scheduler.Outcome {
	return scheduler.Outcome{OverBudget: &scheduler.OverBudget{Reason: "no_credit", RetryAfter: after}}
}

// starts renews right before the engine is called.
func (s *scene) starts() *scene {
	s.t.Helper()
	t, _, e, err := s.rules.Start(s.target, s.fence.Claim, s.run(s.target.Claim.Run), s.now)
	if err != nil {
		s.t.Fatalf("start: %v", err)
	}
	s.save(t, e)
	return s
}

// told is the progress that the last transition told the publisher of.
func (s *scene) told() scheduler.ProgressState {
	if s.last.Progress == nil {
		return scheduler.ProgressNone
	}
	return s.last.Progress.State
}

// decided are the kinds of the last transition's decisions.
func (s *scene) decided() []scheduler.DecisionKind {
	var kinds []scheduler.DecisionKind
	for _, d := range s.last.Decisions {
		kinds = append(kinds, d.Kind)
	}
	return kinds
}

// rings are how long from the start the last transition's rings are for.
func (s *scene) rings() []time.Duration {
	var at []time.Duration
	for _, r := range s.last.Rings {
		at = append(at, r.At.Sub(start))
	}
	return at
}

// said is what the last transition told the publisher.
func (s *scene) said() scheduler.PageKind {
	if s.last.Publish == nil {
		return scheduler.PageNone
	}
	return s.last.Publish.Page.Kind
}
