package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

func TestFenceNamesTheFirstReason(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).claims()
	s.resolves(open1)
	live := s.target
	wrong := scheduler.Fence{
		Target: live.ID, Claim: scheduler.ClaimID{99}, Generation: 99, Lifecycle: 99, Run: scheduler.RunID{99},
	}
	late := live.Claim.LeaseUntil
	// Each case mends the first thing that is wrong in the one before.
	for _, want := range []struct {
		err  error
		word string
		mend func(*scheduler.Fence)
	}{
		{scheduler.ErrClaimLost, "CLAIM_LOST", func(f *scheduler.Fence) { f.Claim = live.Claim.ID }},
		{scheduler.ErrStaleGeneration, "STALE_GENERATION", func(f *scheduler.Fence) { f.Generation = live.Generation }},
		{scheduler.ErrLifecycleEnded, "LIFECYCLE_ENDED", func(f *scheduler.Fence) { f.Lifecycle = live.Lifecycle }},
		{scheduler.ErrRunSuperseded, "RUN_SUPERSEDED", func(f *scheduler.Fence) { f.Run = live.Claim.Run }},
		{scheduler.ErrLeaseExpired, "LEASE_EXPIRED", func(*scheduler.Fence) { late = late.Add(-1) }},
	} {
		err := wrong.Verdict(live, late)
		if !errors.Is(err, want.err) || scheduler.Reason(err) != want.word || !errors.Is(scheduler.Refusal(want.word), want.err) {
			t.Errorf("verdict %v (%s), want %s", err, scheduler.Reason(err), want.word)
		}
		want.mend(&wrong)
	}
	if err := wrong.Verdict(live, late); err != nil {
		t.Errorf("the holder's own fence: %v", err)
	}
	if diff := cmp.Diff(live.Fence(), wrong); diff != "" {
		t.Errorf("the holder's fence (-want +got):\n%s", diff)
	}
	for _, f := range []scheduler.Fence{{}, {Target: scheduler.TargetID{77}, Claim: live.Claim.ID}} {
		if err := f.Verdict(live, start); !errors.Is(err, scheduler.ErrClaimLost) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if err := (scheduler.Fence{Target: live.ID}).Verdict(newScene(t).target, start); !errors.Is(err, scheduler.ErrClaimLost) {
		t.Errorf("no claim on an unclaimed target: %v", err)
	}
}

// The three calls that end a claim, by what they say when they are refused.
var endings = map[string]func(s *scene) error{
	"resolve": func(s *scene) error { return s.resolves(open1).Refused },
	"commit":  func(s *scene) error { return s.commits(accepted(7)).Refused },
	"release": func(s *scene) error { return s.releases(scheduler.ReleaseAttemptFailed, 0) },
}

func TestARefusedCallEndsItsOwnClaim(t *testing.T) {
	t.Parallel()
	for name, call := range endings {
		t.Run(name+" after the target moved", func(t *testing.T) {
			t.Parallel()
			s := newScene(t).webhook(open1).claims()
			if name != "resolve" {
				s.resolves(open1)
			}
			s.webhook(open2)
			before := s.target
			if err := call(s); !errors.Is(err, scheduler.ErrStaleGeneration) {
				t.Fatalf("refused: %v", err)
			}
			s.endedAlone(before)
			if s.target.SupersededInRow != 1 || s.target.Lapses != 0 {
				t.Errorf("%d superseded in a row, %d lapses", s.target.SupersededInRow, s.target.Lapses)
			}
			if err := call(s); !errors.Is(err, scheduler.ErrStaleGeneration) || s.target.SupersededInRow != 1 {
				t.Errorf("asked again: %v, %d in a row", err, s.target.SupersededInRow)
			}
		})
		t.Run(name+" after the lease", func(t *testing.T) {
			t.Parallel()
			s := newScene(t).webhook(open1).claims()
			if name != "resolve" {
				s.resolves(open1)
			}
			s.after(s.rules.Lease)
			before := s.target
			if err := call(s); !errors.Is(err, scheduler.ErrLeaseExpired) {
				t.Fatalf("refused: %v", err)
			}
			s.endedAlone(before)
			if s.target.SupersededInRow != 0 || s.target.Lapses != 1 {
				t.Errorf("%d superseded in a row, %d lapses", s.target.SupersededInRow, s.target.Lapses)
			}
		})
		t.Run(name+" of another's claim", func(t *testing.T) {
			t.Parallel()
			s := newScene(t).webhook(open1).claims()
			if name != "resolve" {
				s.resolves(open1)
			}
			old := s.fence
			s.after(s.rules.Lease)
			s.save(s.rules.Lapse(s.target, s.now))
			s.claims()
			s.fence = old
			before := s.target
			if err := call(s); !errors.Is(err, scheduler.ErrClaimLost) {
				t.Fatalf("refused: %v", err)
			}
			if diff := cmp.Diff(before, s.target); diff != "" {
				t.Errorf("a lost claim has changed the target (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(scheduler.Effects{}, s.last); diff != "" {
				t.Errorf("and more (-want +got):\n%s", diff)
			}
		})
	}
}

// endedAlone holds the target to having lost its claim and nothing else.
func (s *scene) endedAlone(before scheduler.Target) {
	s.t.Helper()
	if s.target.Claim.Held() || !s.target.Due() || len(s.last.Rings) != 1 {
		s.t.Errorf("left standing: %+v, rings %v", s.target.Claim, s.last.Rings)
	}
	if s.last.Publish != nil || len(s.last.Runs)+len(s.last.Receipts) > 0 {
		s.t.Errorf("a refused call has effects: %+v", s.last)
	}
	only := cmpopts.IgnoreFields(scheduler.Target{}, "Claim", "LastEnd", "SupersededInRow", "Lapses", "NotBefore", "NotBeforeLapsed", "TouchedAt")
	if diff := cmp.Diff(before, s.target, only); diff != "" {
		s.t.Errorf("a refused call has changed (-before +after):\n%s", diff)
	}
}

func TestARepeatedCallIsAnsweredAsThen(t *testing.T) {
	t.Parallel()
	reviewing := func(s *scene) { s.webhook(open1).claims().resolves(open1) }
	tests := []struct {
		name  string
		until func(s *scene)
		call  func(s *scene) any
	}{
		{"resolve: review", func(s *scene) { s.webhook(open1).claims() }, func(s *scene) any {
			s.fence.Run = scheduler.RunID{}
			return s.resolves(open1)
		}},
		{"resolve: skipped", func(s *scene) { s.webhook(open1).claims() }, func(s *scene) any { return s.resolves(in(open1, scheduler.StateClosed)) }},
		{"resolve: reused", func(s *scene) {
			s.webhook(open1).reviewed(open1).hears(scheduler.CauseReplay, open1).claims()
		}, func(s *scene) any { return s.resolves(open1) }},
		{"resolve: read lags", func(s *scene) {
			s.webhook(open2).claims()
			s.target.Hint.HeardAt = s.now
		}, func(s *scene) any { return s.resolvesRead(reading(open1, start.Add(-time.Minute))) }},
		{"commit: accepted", reviewing, func(s *scene) any { return s.commits(accepted(7)) }},
		{"commit: refused", reviewing, func(s *scene) any { return s.commits(refused("too_large")) }},
		{"commit: over budget", reviewing, func(s *scene) any { return s.commits(overBudget(0)) }},
		{"release", reviewing, func(s *scene) any { return s.releases(scheduler.ReleaseThrottled, 0) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.until(s)
			first := tt.call(s)
			after := s.target
			again := tt.call(s)
			byIdentity := cmp.Comparer(func(a, b scheduler.Run) bool { return a.ID == b.ID })
			if diff := cmp.Diff(first, again, byIdentity, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("answered otherwise (-first +again):\n%s", diff)
			}
			if diff := cmp.Diff(after, s.target, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("changed something (-first +again):\n%s", diff)
			}
			if diff := cmp.Diff(scheduler.Effects{}, s.last); diff != "" {
				t.Errorf("has effects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnotherCallAfterTheEndIsLost(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).claims()
	s.resolves(open1)
	s.commits(accepted(7))
	for name, call := range map[string]func(*scene) error{
		"another attempt": func(s *scene) error { return s.commits(accepted(8)).Refused },
		"another outcome": func(s *scene) error { return s.commits(refused("too_large")).Refused },
		"a release":       func(s *scene) error { return s.releases(scheduler.ReleaseShuttingDown, 0) },
		"a resolve":       func(s *scene) error { return s.resolves(open1).Refused },
	} {
		if err := call(s); !errors.Is(err, scheduler.ErrClaimLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
