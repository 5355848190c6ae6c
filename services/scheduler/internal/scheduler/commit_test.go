package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

func TestCommit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		dry     bool
		outcome scheduler.Outcome
		answer  scheduler.Answer
		state   scheduler.RunState
		said    scheduler.PageKind
		due     bool
		receipt []scheduler.Receipt // of the run; Run is filled in
	}{
		{
			"a result", false, accepted(7), scheduler.AnswerAccepted, scheduler.RunDone, scheduler.PageResult, false,
			[]scheduler.Receipt{{Epoch: 1, Outcome: scheduler.ReceiptAccepted, Attempt: scheduler.AttemptID{7}}},
		},
		{
			"a dry run's result is kept and not shown", true, accepted(7), scheduler.AnswerAccepted, scheduler.RunDone, scheduler.PageNone, false,
			[]scheduler.Receipt{{Outcome: scheduler.ReceiptAccepted, Attempt: scheduler.AttemptID{7}}},
		},
		{
			"a refusal", false, refused("too_large"), scheduler.AnswerRefused, scheduler.RunRefused, scheduler.PageRefused, false,
			[]scheduler.Receipt{{Epoch: 1, Outcome: scheduler.ReceiptRefused}},
		},
		{
			"a dry run's refusal", true, refused("too_large"), scheduler.AnswerRefused, scheduler.RunRefused, scheduler.PageNone, false,
			[]scheduler.Receipt{{Outcome: scheduler.ReceiptRefused}},
		},
		{"an empty budget stays due", false, overBudget(0), scheduler.AnswerOverBudget, scheduler.RunOpen, scheduler.PageOverBudget, true, nil},
		{"a dry run's", true, overBudget(0), scheduler.AnswerOverBudget, scheduler.RunOpen, scheduler.PageNone, true, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t).request(scheduler.Request{ID: "r", Dry: tt.dry}).claims()
			run := s.resolves(open1).Run.ID
			c := s.commits(tt.outcome)
			if c.Answer != tt.answer || c.Run != run || c.Epoch != s.target.Epoch {
				t.Errorf("committed %+v at epoch %d", c, s.target.Epoch)
			}
			if got := s.run(run).State; got != tt.state {
				t.Errorf("the run is %s, want %s", got, tt.state)
			}
			if s.said() != tt.said {
				t.Errorf("said %q, want %q", s.said(), tt.said)
			}
			if s.target.Claim.Held() || s.target.Resolved != s.target.Generation || s.target.Due() != tt.due || len(s.last.Rings) > 0 != tt.due {
				t.Errorf("left %+v, rings %v", s.target, s.last.Rings)
			}
			for i := range tt.receipt {
				tt.receipt[i].Run = run
			}
			if diff := cmp.Diff(tt.receipt, s.last.Receipts); diff != "" {
				t.Errorf("receipts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCommitKeepsWhoseResultItIs(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).claims()
	run := s.resolves(open1).Run.ID
	fence := s.fence
	s.commits(accepted(7))
	got := s.run(run).Result
	if got.Attempt != (scheduler.AttemptID{7}) || got.Claim != fence.Claim || got.Generation != fence.Generation {
		t.Errorf("result %+v under fence %+v", got, fence)
	}
	if s.run(run).Delivery != scheduler.DeliveryPending || s.delivered().run(run).Delivery != scheduler.DeliveryDelivered {
		t.Errorf("delivery of %+v", s.run(run))
	}
}

func TestCommitRefusesNonsense(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).claims()
	s.resolves(open1)
	both := accepted(7)
	both.Refused = &scheduler.Refused{Reason: "too_large"}
	run := s.run(s.fence.Run)
	for name, tt := range map[string]struct {
		outcome scheduler.Outcome
		run     scheduler.Run
		err     error
	}{
		"no outcome":                   {scheduler.Outcome{}, run, scheduler.ErrInvalidOutcome},
		"two outcomes":                 {both, run, scheduler.ErrInvalidOutcome},
		"a result without its attempt": {accepted(0), run, scheduler.ErrInvalidOutcome},
		"another run":                  {accepted(7), scheduler.Run{ID: scheduler.RunID{99}}, scheduler.ErrWrongRun},
	} {
		_, _, e, err := s.rules.Commit(s.target, s.fence, tt.run, tt.outcome, s.now)
		if !errors.Is(err, tt.err) || len(e.Decisions) > 0 {
			t.Errorf("%s: %v, effects %+v", name, err, e)
		}
	}
	s = newScene(t).webhook(open1).claims()
	if _, _, _, err := s.rules.Commit(s.target, s.fence, scheduler.Run{}, accepted(7), s.now); !errors.Is(err, scheduler.ErrWrongRun) {
		t.Errorf("before ResolveRun: %v", err)
	}
}

func TestOverBudget(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).claims()
	s.resolves(open1)
	s.commits(overBudget(20 * time.Minute))
	if got := s.target.ReadyAt().Sub(s.now); got != 20*time.Minute {
		t.Errorf("tried again after %s", got)
	}
	// What says nothing new doesn't disturb it; a manual request tries at once.
	s.delivered().webhook(open1)
	if diff := cmp.Diff([]scheduler.DecisionKind{scheduler.DecisionAlreadySeen}, s.decided()); diff != "" {
		t.Errorf("decided (-want +got):\n%s", diff)
	}
	s.after(time.Minute).request(scheduler.Request{ID: "r"})
	if s.target.ReadyAt().After(s.now) {
		t.Errorf("a request waits until %s", s.target.ReadyAt())
	}
	// Page and record are told once per comparison, also when the base has moved under it.
	s.claims()
	s.resolvesRead(baseAt(open1, "b9", s.now))
	c := s.commits(overBudget(48 * time.Hour))
	if s.said() != scheduler.PageNone || c.Epoch != 0 || len(s.last.Decisions) > 0 {
		t.Errorf("told again: %q, %+v", s.said(), s.last.Decisions)
	}
	if got := s.target.ReadyAt().Sub(s.now); got != time.Hour {
		t.Errorf("tried again after %s, want the bound", got)
	}
	// The money comes, and the first activity's wish is still known.
	s.claims()
	s.resolves(open1)
	s.commits(accepted(7))
	if s.said() != scheduler.PageResult || s.target.Due() {
		t.Errorf("at last said %q, due %t", s.said(), s.target.Due())
	}
}

func TestOverBudgetSpeaksOfAnotherComparison(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).claims()
	s.resolves(open1)
	s.commits(overBudget(0))
	s.delivered().after(time.Second).webhook(open2)
	if s.said() != scheduler.PageSuperseded {
		t.Errorf("a push says %q", s.said())
	}
	s.claims().resolves(open2)
	s.commits(overBudget(0))
	if s.said() != scheduler.PageOverBudget || s.target.Page.Head != "h2" {
		t.Errorf("said %q of %s", s.said(), s.target.Page.Head)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		why   scheduler.ReleaseReason
		after time.Duration
		ready time.Duration
	}{
		{"the usual pause", scheduler.ReleaseDependencyAway, 0, 10 * time.Second},
		{"the one asked for", scheduler.ReleaseThrottled, 5 * time.Minute, 5 * time.Minute},
		{"bounded", scheduler.ReleaseThrottled, 24 * time.Hour, time.Hour},
		{"a worker that shuts down has nothing against the target", scheduler.ReleaseShuttingDown, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t).webhook(open1).claims()
			s.resolves(open1)
			if err := s.releases(tt.why, tt.after); err != nil {
				t.Fatal(err)
			}
			if got := s.target.ReadyAt().Sub(s.now); got != tt.ready || s.target.Claim.Held() || s.target.Resolved != 0 {
				t.Errorf("ready after %s, want %s; %+v", got, tt.ready, s.target)
			}
			if len(s.last.Rings) != 1 || s.last.Rings[0].At.Sub(s.now) != tt.ready {
				t.Errorf("rings %v", s.last.Rings)
			}
			if diff := cmp.Diff([]scheduler.DecisionKind{scheduler.DecisionReleased}, s.decided()); diff != "" {
				t.Errorf("decided (-want +got):\n%s", diff)
			}
		})
	}
}
