package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

func TestClaim(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		play   func(s *scene)
		paused bool
		ok     bool
	}{
		{"nothing is due", func(*scene) {}, false, false},
		{"not yet due", func(s *scene) { s.webhook(open1).after(29 * time.Second) }, false, false},
		{"due", func(s *scene) { s.webhook(open1).after(30 * time.Second) }, false, true},
		{"due and paused", func(s *scene) { s.webhook(open1).after(30 * time.Second) }, true, false},
		{"claimed", func(s *scene) { s.webhook(open1).claims() }, false, false},
		{"claimed, and the claim has lapsed but nobody ended it", func(s *scene) { s.webhook(open1).claims().after(time.Hour) }, false, false},
		{"released, and its pause runs", func(s *scene) {
			s.webhook(open1).claims()
			_ = s.releases(scheduler.ReleaseThrottled, time.Minute)
			s.after(59 * time.Second)
		}, false, false},
		{"released, and its pause is over", func(s *scene) {
			s.webhook(open1).claims()
			_ = s.releases(scheduler.ReleaseThrottled, time.Minute)
			s.after(time.Minute)
		}, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.play(s)
			got, err := s.rules.Claim(s.target, scheduler.ClaimID{9}, "worker", tt.paused, s.now)
			if ok := err == nil; ok != tt.ok || !tt.ok && !errors.Is(err, scheduler.ErrNotClaimable) {
				t.Fatalf("claim: %v, want ok %t", err, tt.ok)
			}
			if !tt.ok {
				return
			}
			want := scheduler.Claim{
				ID: scheduler.ClaimID{9}, Worker: "worker", ClaimedAt: s.now, LeaseUntil: s.now.Add(time.Minute), Activities: 1,
			}
			if diff := cmp.Diff(want, got.Claim); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
			if !got.Due() {
				t.Error("a claim must not clear what is due: its worker may die")
			}
		})
	}
}

func TestLapse(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1)
	// 1 min, four times that each, at most 1 h; an alert from the third on.
	for i, want := range []time.Duration{time.Minute, 4 * time.Minute, 16 * time.Minute, time.Hour, time.Hour} {
		s.claims()
		s.save(s.rules.Lapse(s.target, s.now.Add(s.rules.Lease-1)))
		if !s.target.Claim.Held() {
			t.Fatal("a claim with a live lease was ended")
		}
		s.after(s.rules.Lease)
		s.save(s.rules.Lapse(s.target, s.now))
		if s.target.Claim.Held() || !s.target.Due() {
			t.Fatalf("after a lapse %+v", s.target)
		}
		if got := s.target.NotBefore.Sub(s.now); got != want {
			t.Errorf("lapse %d waits %s, want %s", i+1, got, want)
		}
		if d := s.last.Decisions[0]; d.Kind != scheduler.DecisionLapsed || d.Alert != (i >= 2) {
			t.Errorf("lapse %d decides %+v", i+1, d)
		}
		if len(s.last.Rings) != 1 || !s.last.Rings[0].At.Equal(s.target.NotBefore) {
			t.Errorf("lapse %d rings %v", i+1, s.last.Rings)
		}
	}
	s.claims()
	s.resolves(in(open1, scheduler.StateClosed))
	if s.target.Lapses != 0 || !s.target.NotBefore.IsZero() || s.target.NotBeforeLapsed {
		t.Errorf("a decision leaves %d lapses, not before %s", s.target.Lapses, s.target.NotBefore)
	}
}

func TestRenew(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).claims()
	claimed := s.now
	for s.now.Before(claimed.Add(s.rules.MaxClaim)) {
		next, renewal, err := s.rules.Renew(s.target, s.fence.Claim, s.now)
		if err != nil {
			t.Fatalf("after %s: %v", s.now.Sub(claimed), err)
		}
		want := s.now.Add(s.rules.Lease)
		if last := claimed.Add(s.rules.MaxClaim); want.After(last) {
			want = last
		}
		if !renewal.LeaseUntil.Equal(want) {
			t.Fatalf("after %s the lease lasts until %s, want %s", s.now.Sub(claimed), renewal.LeaseUntil, want)
		}
		s.save(next, scheduler.Effects{})
		s.after(15 * time.Second)
	}
	if _, _, err := s.rules.Renew(s.target, s.fence.Claim, s.now); !errors.Is(err, scheduler.ErrLeaseExpired) {
		t.Errorf("beyond the longest claim: %v", err)
	}
	if _, _, err := s.rules.Renew(s.target, scheduler.ClaimID{99}, s.now); !errors.Is(err, scheduler.ErrClaimLost) {
		t.Errorf("another's claim: %v", err)
	}
	if _, _, err := s.rules.Renew(newScene(t).target, scheduler.ClaimID{}, s.now); !errors.Is(err, scheduler.ErrClaimLost) {
		t.Errorf("no claim: %v", err)
	}
}

func TestRenewIsFencedByClaimAndLeaseAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).claims()
	s.resolves(open1)
	s.hears(scheduler.CauseReplay, open1)
	_, renewal, err := s.rules.Renew(s.target, s.fence.Claim, s.now)
	if err != nil || renewal.CancelRequested {
		t.Errorf("a newer generation of the same: %+v, %v", renewal, err)
	}
	s.webhook(open2)
	_, renewal, err = s.rules.Renew(s.target, s.fence.Claim, s.now)
	if err != nil || !renewal.CancelRequested {
		t.Errorf("a push: %+v, %v", renewal, err)
	}
}
