package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

func TestRecordSetsDue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		play func(s *scene)
		due  time.Duration // from the start
		kind scheduler.DecisionKind
	}{
		{"the first activity waits for quiet", func(s *scene) { s.webhook(open1) }, 30 * time.Second, scheduler.DecisionDue},
		{"each further one pushes", func(s *scene) {
			s.webhook(open1).after(20 * time.Second).webhook(open2)
		}, 50 * time.Second, scheduler.DecisionCoalesced},
		{"but not beyond the maximum wait from the first", func(s *scene) {
			s.webhook(open1)
			for range 20 {
				s.after(20 * time.Second).webhook(open2)
			}
		}, 5 * time.Minute, scheduler.DecisionCoalesced},
		{"the maximum wait counts from the first after the last claim", func(s *scene) {
			s.webhook(open1).claims().after(10 * time.Second).webhook(open2) // at 40 s
			for range 20 {
				s.after(20 * time.Second).webhook(open2)
			}
		}, 40*time.Second + 5*time.Minute, scheduler.DecisionDue},
		{"a request is due at once", func(s *scene) {
			s.webhook(open1).after(time.Second).request(scheduler.Request{ID: "r"})
		}, time.Second, scheduler.DecisionCoalesced},
		{"a request puts nothing off", func(s *scene) {
			s.webhook(open1).after(time.Minute).request(scheduler.Request{ID: "r"})
		}, 30 * time.Second, scheduler.DecisionCoalesced},
		{"while a request waits, nothing pushes", func(s *scene) {
			s.request(scheduler.Request{ID: "r"}).after(time.Second).webhook(open2)
		}, 0, scheduler.DecisionCoalesced},
		{"closing makes due, and clears nothing", func(s *scene) {
			s.webhook(open1).after(time.Second).webhook(in(open1, scheduler.StateClosed))
		}, 31 * time.Second, scheduler.DecisionCoalesced},
		{"during a claim the target is due anew", func(s *scene) {
			s.webhook(open1).claims().webhook(open2)
		}, time.Minute, scheduler.DecisionDue},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.play(s)
			if got := s.target.DueAt.Sub(start); got != tt.due {
				t.Errorf("due after %s, want %s", got, tt.due)
			}
			if diff := cmp.Diff([]scheduler.DecisionKind{tt.kind}, s.decided()); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
			if len(s.last.Rings) != 1 {
				t.Errorf("%d rings, want 1", len(s.last.Rings))
			}
		})
	}
}

func TestRecordDoublesQuiet(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1)
	// Each claim in a row that the target moves away from doubles the quiet time, up to the maximum wait.
	for i, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		s.claims().webhook(scheduler.Content{State: scheduler.StateOpen, Head: fmt.Sprint("h", i+2), BaseRef: "main"})
		if got := s.target.DueAt.Sub(s.now); got != want {
			t.Errorf("after %d superseded claims quiet is %s, want %s", i, got, want)
		}
		if res := s.resolves(open1); res.Refused == nil {
			t.Fatalf("resolved %+v, want a stale claim", res)
		}
	}
	// A release is no decision, and leaves it so.
	s.claims()
	if err := s.releases(scheduler.ReleaseAttemptFailed, 0); err != nil || s.target.SupersededInRow != 6 {
		t.Errorf("after a release %d in a row, %v", s.target.SupersededInRow, err)
	}
	s.claims()
	s.resolves(in(open1, scheduler.StateClosed))
	s.webhook(open1)
	if got, want := s.target.DueAt.Sub(s.now), s.rules.Quiet; got != want {
		t.Errorf("after a decision quiet is %s, want %s", got, want)
	}
}

func TestRecordAlreadySeen(t *testing.T) {
	t.Parallel()
	draft := in(open1, scheduler.StateDraft)
	tests := []struct {
		name string
		play func(s *scene)
		seen bool
	}{
		{"the same as was read", func(s *scene) { s.webhook(open1).reviewed(open1).webhook(open1) }, true},
		{"by a sweep", func(s *scene) { s.webhook(open1).reviewed(open1).hears(scheduler.CauseSweep, open1) }, true},
		{"by a sweep, while the review of it waits", func(s *scene) { s.webhook(open1).hears(scheduler.CauseSweep, open1) }, true},
		{"by a sweep, while something else waits", func(s *scene) { s.webhook(open1).hears(scheduler.CauseSweep, open2) }, false},
		{"by a sweep, while only a dry run waits", func(s *scene) {
			s.request(scheduler.Request{ID: "r", Dry: true}).hears(scheduler.CauseSweep, open1)
		}, false},
		{"an operator's replay never is", func(s *scene) { s.webhook(open1).reviewed(open1).hears(scheduler.CauseReplay, open1) }, false},
		{"a request never is", func(s *scene) { s.webhook(open1).reviewed(open1).request(scheduler.Request{ID: "r"}) }, false},
		{"another head", func(s *scene) { s.webhook(open1).reviewed(open1).webhook(open2) }, false},
		{"another base", func(s *scene) { s.webhook(open1).reviewed(open1).webhook(retargeted(open1)) }, false},
		{"another state", func(s *scene) { s.webhook(open1).reviewed(open1).webhook(draft) }, false},
		{"something older than the read", func(s *scene) {
			s.webhook(open1).reviewed(open1).hearsOf(scheduler.CauseWebhook, open2, s.now.Add(-time.Minute))
		}, true},
		{"something else of the same second", func(s *scene) {
			s.webhook(open1).reviewed(open1).hearsOf(scheduler.CauseWebhook, open2, s.target.Read.UpdatedAt)
		}, false},
		{"a 404 has no age", func(s *scene) {
			s.webhook(open1).reviewed(open1).hearsOf(scheduler.CauseSweep, gone, time.Time{})
		}, false},
		{"before anything was read", func(s *scene) { s.webhook(open1).webhook(open1) }, false},
		{"the same again, while a push is pending: the two must not cancel out", func(s *scene) {
			s.webhook(open1).reviewed(open1).webhook(open2).webhook(open1)
		}, false},
		{"during a claim, what its read has answered", func(s *scene) {
			s.webhook(open1).claims()
			s.resolves(open1)
			s.webhook(open1)
		}, true},
		{"what was read for a dry run alone, and not published", func(s *scene) {
			s.request(scheduler.Request{ID: "r", Dry: true}).reviewed(open1).webhook(open1)
		}, false},
		{"in the next lifecycle", func(s *scene) {
			s.webhook(open1).reviewed(open1).after(s.rules.Retention).ends().webhook(open1)
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.play(s)
			got := s.decided()[0] == scheduler.DecisionAlreadySeen
			if got != tt.seen {
				t.Fatalf("decisions %v, want already_seen: %t", s.decided(), tt.seen)
			}
			if tt.seen && len(s.last.Rings) > 0 {
				t.Errorf("what was seen rings: %v", s.last.Rings)
			}
		})
	}
}

// TestSweepFollowsAReinstallation: what waits under an installation that is no more goes on under the one that a sweep
// has listed, and so does what was read; an older listing moves nothing back.
func TestSweepFollowsAReinstallation(t *testing.T) {
	t.Parallel()
	again := func(s *scene, at time.Time, installation int64, project scheduler.ProjectID) *scene {
		return s.hearsActivity(scheduler.Activity{
			Cause: scheduler.CauseSweep, Hint: scheduler.Hint{Content: open1, UpdatedAt: at.Truncate(time.Second)},
			PullRequest: scheduler.PullRequest{Installation: installation, Project: project},
		})
	}
	for what, tc := range map[string]struct {
		play func(s *scene)
		want int64
	}{
		"while the review waits": {func(s *scene) { again(s.webhook(open1), s.now, 71, scheduler.ProjectID{}) }, 71},
		"at rest":                {func(s *scene) { again(s.webhook(open1).reviewed(open1), s.now, 71, scheduler.ProjectID{}) }, 71},
		"enrolled anew":          {func(s *scene) { again(s.webhook(open1), s.now, 0, scheduler.ProjectID{9}) }, 0},
		"an older listing":       {func(s *scene) { again(s.webhook(open1), s.now.Add(-time.Hour), 71, scheduler.ProjectID{}) }, 0},
	} {
		s := newScene(t)
		was := s.target.Installation
		tc.play(s)
		if got := s.target.Installation; got != tc.want && (tc.want != 0 || got != was) || !s.target.Due() {
			t.Errorf("%s: under installation %d, due: %t", what, got, s.target.Due())
		}
		if what == "enrolled anew" && s.target.Project != (scheduler.ProjectID{9}) {
			t.Errorf("%s: of project %v", what, s.target.Project)
		}
	}
}

func TestRecordContradicts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		play   func(s *scene)
		said   scheduler.PageKind
		cancel bool
	}{
		{"a push takes the result back", func(s *scene) { s.webhook(open1).reviewed(open1).webhook(open2) }, scheduler.PageSuperseded, false},
		{"so does another base", func(s *scene) {
			s.webhook(open1).reviewed(open1).webhook(retargeted(open1))
		}, scheduler.PageSuperseded, false},
		{"once", func(s *scene) {
			s.webhook(open1).reviewed(open1).webhook(open2).after(time.Second).webhook(retargeted(open2))
		}, scheduler.PageNone, false},
		{"closing leaves the page alone", func(s *scene) {
			s.webhook(open1).reviewed(open1).webhook(in(open1, scheduler.StateClosed))
		}, scheduler.PageNone, false},
		{"a request says nothing of the head", func(s *scene) {
			s.webhook(open1).reviewed(open1).request(scheduler.Request{ID: "r"})
		}, scheduler.PageNone, false},
		{"an older payload is no news, even to a dry claim's read", func(s *scene) {
			s.request(scheduler.Request{ID: "r", Dry: true}).claims()
			s.resolves(open2)
			s.hearsOf(scheduler.CauseWebhook, open1, s.now.Add(-time.Minute))
		}, scheduler.PageNone, false},
		{"a push cancels the review of the old head", func(s *scene) {
			s.webhook(open1).claims()
			s.resolves(open1)
			s.webhook(open2)
		}, scheduler.PageNone, true},
		{"so does a close: nobody would read it", func(s *scene) {
			s.webhook(open1).claims()
			s.resolves(open1)
			s.webhook(in(open1, scheduler.StateClosed))
		}, scheduler.PageNone, true},
		{"a replay of the same doesn't: the attempt will be adopted", func(s *scene) {
			s.webhook(open1).claims()
			s.resolves(open1)
			s.hears(scheduler.CauseReplay, open1)
		}, scheduler.PageNone, false},
		{"before the claim's read there is nothing to cancel", func(s *scene) {
			s.webhook(open1).claims().webhook(open2)
		}, scheduler.PageNone, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.play(s)
			if s.said() != tt.said {
				t.Errorf("said %q, want %q", s.said(), tt.said)
			}
			if s.target.Claim.CancelRequested != tt.cancel {
				t.Errorf("cancel requested: %t, want %t", s.target.Claim.CancelRequested, tt.cancel)
			}
		})
	}
}

func TestRecordSupersedingEpochNamesBothHeads(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).reviewed(open1)
	shown := s.target.Page
	s.webhook(open2)
	p := s.last.Publish
	if p.Run.ID != shown.Run || p.Page.Head != "h1" || p.NewerHead != "h2" || p.Epoch != 2 {
		t.Errorf("published %+v after %+v", p, shown)
	}
}

func TestRecordNotBefore(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).claims()
	if err := s.releases(scheduler.ReleaseThrottled, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	s.webhook(open2)
	if got, want := s.target.ReadyAt(), s.now.Add(10*time.Minute); !got.Equal(want) {
		t.Errorf("an activity makes ready at %s, want %s", got, want)
	}
	s.request(scheduler.Request{ID: "r"})
	if got := s.target.ReadyAt(); got.After(s.target.DueAt) {
		t.Errorf("a request leaves it waiting until %s", got)
	}
	s.claims().after(s.rules.Lease)
	s.save(s.rules.Lapse(s.target, s.now))
	s.request(scheduler.Request{ID: "r2"})
	if got, want := s.target.ReadyAt(), s.now.Add(time.Minute); !got.Equal(want) {
		t.Errorf("a request cuts a lapse's pause short: ready at %s, want %s", got, want)
	}
}

func TestRecordFollowsTheLatestTrace(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for i := range 40 {
		s.hearsActivity(scheduler.Activity{Cause: scheduler.CauseWebhook, Trace: fmt.Sprint("trace-", i), Delivery: scheduler.DeliveryID(fmt.Sprint(i))})
	}
	if s.target.Trace != "trace-39" || s.target.LatestDelivery != "39" {
		t.Errorf("follows %s of %s", s.target.Trace, s.target.LatestDelivery)
	}
	if n := len(s.target.Links); n != 32 || s.target.Links[n-1] != "trace-38" || s.target.Links[0] != "trace-7" {
		t.Errorf("links %v", s.target.Links)
	}
	s.claims().hearsActivity(scheduler.Activity{Cause: scheduler.CauseWebhook, Trace: "next"})
	if s.target.Trace != "next" || len(s.target.Links) != 0 {
		t.Errorf("after a claim follows %s, links %v", s.target.Trace, s.target.Links)
	}
}

func TestRecordFollowsARename(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1)
	moved := scheduler.PullRequest{FullName: "acme/gadgets", Installation: 8}
	s.hearsActivity(scheduler.Activity{
		Cause: scheduler.CauseWebhook, PullRequest: moved, Hint: scheduler.Hint{Content: open2, UpdatedAt: start.Add(-time.Minute)},
	})
	if s.target.FullName != "acme/widgets" {
		t.Errorf("an older payload renames to %s", s.target.FullName)
	}
	s.hearsActivity(scheduler.Activity{
		Cause: scheduler.CauseWebhook, PullRequest: moved, Hint: scheduler.Hint{Content: open2, UpdatedAt: start.Add(time.Minute)},
	})
	if s.target.FullName != "acme/gadgets" || s.target.Installation != 8 || s.target.Repository != 42 {
		t.Errorf("renamed to %+v", s.target.PullRequest)
	}
}

func (s *scene) ends() *scene {
	s.t.Helper()
	t, e, err := s.rules.EndLifecycle(s.target, false, s.now)
	if err != nil {
		s.t.Fatalf("end lifecycle: %v", err)
	}
	s.save(t, e)
	return s
}
