package scheduler_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

func (s *scene) departs() *scene {
	s.save(s.rules.Depart(s.target, "departure", s.runs, s.now))
	return s
}

// TestDepart: wherever a target stands when its repository goes to somebody else, it ends as gone by a
// decision, at rest, and no worker's write lands any more.
func TestDepart(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*scene){
		"never read": func(s *scene) { s.webhook(open1) },
		"at work": func(s *scene) {
			s.webhook(open1).claims().resolves(open1)
		},
		"claimed, not read": func(s *scene) { s.webhook(open1).claims() },
		"asked for":         func(s *scene) { s.webhook(open1).reviewed(open1).request(scheduler.Request{ID: "r1"}) },
		"published":         func(s *scene) { s.webhook(open1).reviewed(open1) },
		"lapsed": func(s *scene) {
			s.webhook(open1).claims()
			s.after(time.Hour).save(s.rules.Lapse(s.target, s.now))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			before(s)
			fence, generation, asked := s.fence, s.target.Generation, len(s.target.Requests)
			s.departs()
			if got := s.target; got.State != scheduler.StateGone || got.Due() || got.Claim.Held() || !got.InWork.IsZero() ||
				got.Generation <= generation || got.Generation != got.Resolved || len(got.Requests) != 0 || len(s.last.Rings) != 0 {
				t.Fatalf("not at rest: %+v", got)
			}
			kinds := s.decided()
			if kinds[0] != scheduler.DecisionDeparted || !slices.Contains(kinds, scheduler.DecisionSkipped) {
				t.Errorf("decided %v", kinds)
			}
			if asked > 0 && s.last.Decisions[1].Request != "r1" {
				t.Errorf("the request was not answered: %+v", s.last.Decisions)
			}
			for _, r := range s.last.Runs {
				if r.State == scheduler.RunOpen && !r.Receipted {
					t.Errorf("run %s is open without a receipt", r.ID)
				}
			}
			if !fence.Claim.IsZero() {
				if err := fence.Verdict(s.target, s.now); !errors.Is(err, scheduler.ErrClaimLost) {
					t.Errorf("a worker's write: %v", err)
				}
			}
			if s.departs(); len(s.last.Decisions) != 0 {
				t.Errorf("again: %+v", s.last.Decisions)
			}
			if s.hears(scheduler.CauseSweep, gone); s.decided()[0] != scheduler.DecisionAlreadySeen {
				t.Errorf("a sweep that finds it gone: %v", s.decided())
			}
			if s.after(time.Minute).webhook(open2); !s.target.Due() {
				t.Error("what comes later does not make it due")
			}
		})
	}
}

// TestComesBack: the target of a repository that returns under a new project belongs to that.
func TestComesBack(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).reviewed(open1).departs().after(time.Hour)
	pr := s.target.PullRequest
	pr.Project = scheduler.ProjectID{9}
	s.hearsActivity(scheduler.Activity{Cause: scheduler.CauseSweep, PullRequest: pr, Hint: scheduler.Hint{Content: open1, UpdatedAt: s.now}})
	if s.target.Project != pr.Project || !s.target.Due() {
		t.Errorf("%+v", s.target)
	}
}

func TestArchivePauses(t *testing.T) {
	t.Parallel()
	c := scheduler.IntegrationChange{Kind: scheduler.ChangeArchived, Projects: []scheduler.ProjectID{{2}}}
	set, _ := c.Pauses(start)
	if len(set) != 1 || set[0].Cause != scheduler.PauseArchive || !set[0].Until.Equal(start.Add(scheduler.ArchivePause)) {
		t.Fatalf("archived: %+v", set)
	}
	c.Kind = scheduler.ChangeUnarchived
	if _, clear := c.Pauses(start); len(clear) != 1 || clear[0].Cause != scheduler.PauseArchive {
		t.Fatalf("unarchived: %+v", clear)
	}
	for _, kind := range []scheduler.ChangeKind{scheduler.ChangeGone, scheduler.ChangeRenamed} {
		c.Kind = kind
		if set, clear := c.Pauses(start); len(set)+len(clear) != 0 {
			t.Errorf("%s: %v %v", kind, set, clear)
		}
	}
}
