package scheduler_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// baseAt is a read of a base branch that has moved on; the merge base stays.
func baseAt(c scheduler.Content, sha string, at time.Time) scheduler.Reading {
	in := reading(c, at)
	in.BaseSHA = sha
	return in
}

func TestResolveChoosesTheRun(t *testing.T) {
	t.Parallel()
	rerun := scheduler.Request{ID: "r", Rerun: true}
	read := func(s *scene, base string) scheduler.Resolution { return s.resolvesRead(baseAt(open1, base, s.now)) }
	tests := []struct {
		name    string
		play    func(s *scene) scheduler.Resolution
		answer  scheduler.Answer
		ordinal int
		base    string
		reason  string
	}{
		{"a new comparison", func(s *scene) scheduler.Resolution {
			s.webhook(open1).claims()
			return read(s, "b1")
		}, scheduler.AnswerReview, 0, "b1", ""},
		{"one that is open", func(s *scene) scheduler.Resolution {
			s.webhook(open1).claims()
			read(s, "b1")
			_ = s.releases(scheduler.ReleaseAttemptFailed, 0)
			s.claims()
			return read(s, "b1")
		}, scheduler.AnswerReview, 0, "b1", ""},
		{"one that has its result", func(s *scene) scheduler.Resolution {
			s.done().hears(scheduler.CauseReplay, open1).claims()
			return read(s, "b1")
		}, scheduler.AnswerReused, 0, "b1", "same_comparison"},
		{"the same diff on another base commit", func(s *scene) scheduler.Resolution {
			s.done().hears(scheduler.CauseReplay, open1).claims()
			return read(s, "b2")
		}, scheduler.AnswerReused, 0, "b2", "same_diff"},
		{"a re-run", func(s *scene) scheduler.Resolution {
			s.done().request(rerun).claims()
			return read(s, "b1")
		}, scheduler.AnswerReview, 1, "b1", ""},
		{"a re-run of the same diff on another base commit", func(s *scene) scheduler.Resolution {
			s.done().request(rerun).claims()
			return read(s, "b2")
		}, scheduler.AnswerReview, 1, "b2", ""},
		{"a re-run of what was never reviewed", func(s *scene) scheduler.Resolution {
			s.request(rerun).claims()
			return read(s, "b1")
		}, scheduler.AnswerReview, 0, "b1", ""},
		{"after its request is consumed, an open re-run goes on", func(s *scene) scheduler.Resolution {
			s.done().request(rerun).claims()
			read(s, "b1")
			_ = s.releases(scheduler.ReleaseAttemptFailed, 0)
			s.claims()
			return read(s, "b1")
		}, scheduler.AnswerReview, 1, "b1", ""},
		{"and follows the base", func(s *scene) scheduler.Resolution {
			s.done().request(rerun).claims()
			read(s, "b1")
			_ = s.releases(scheduler.ReleaseAttemptFailed, 0)
			s.claims()
			return read(s, "b2")
		}, scheduler.AnswerReview, 1, "b2", ""},
		{"a finished re-run stands for its comparison", func(s *scene) scheduler.Resolution {
			s.done().request(rerun).claims()
			read(s, "b1")
			s.commits(accepted(9))
			s.hears(scheduler.CauseReplay, open1).claims()
			return read(s, "b2")
		}, scheduler.AnswerReused, 1, "b2", "same_diff"},
		{"a refused re-run leaves the result it was to replace", func(s *scene) scheduler.Resolution {
			s.done().request(rerun).claims()
			read(s, "b1")
			s.commits(refused("engine_refused"))
			s.hears(scheduler.CauseReplay, open1).claims()
			return read(s, "b1")
		}, scheduler.AnswerReused, 0, "b1", "same_comparison"},
		{"refused for good is refused again", func(s *scene) scheduler.Resolution {
			s.webhook(open1).claims()
			read(s, "b1")
			s.commits(refused("too_large"))
			s.hears(scheduler.CauseReplay, open1).claims()
			return read(s, "b1")
		}, scheduler.AnswerRefused, 0, "b1", "too_large"},
		{"so is the same diff on another base commit", func(s *scene) scheduler.Resolution {
			s.webhook(open1).claims()
			read(s, "b1")
			s.commits(refused("too_large"))
			s.hears(scheduler.CauseReplay, open1).claims()
			return read(s, "b2")
		}, scheduler.AnswerRefused, 0, "b1", "too_large"},
		{"unless a re-run asks", func(s *scene) scheduler.Resolution {
			s.webhook(open1).claims()
			read(s, "b1")
			s.commits(refused("too_large"))
			s.request(rerun).claims()
			return read(s, "b1")
		}, scheduler.AnswerReview, 1, "b1", ""},
		{"the next lifecycle knows nothing of the last", func(s *scene) scheduler.Resolution {
			s.done().after(s.rules.Retention).ends().webhook(open1).claims()
			return read(s, "b1")
		}, scheduler.AnswerReview, 0, "b1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := tt.play(newScene(t))
			if res.Answer != tt.answer || res.Run.Ordinal != tt.ordinal || res.Run.BaseSHA != tt.base || res.Reason != tt.reason {
				t.Errorf("resolved %+v, want %s of ordinal %d on %s (%s)", res, tt.answer, tt.ordinal, tt.base, tt.reason)
			}
		})
	}
}

// done has the first head reviewed on base commit b1, and shown.
func (s *scene) done() *scene {
	s.t.Helper()
	s.webhook(open1).claims()
	if res := s.resolvesRead(baseAt(open1, "b1", s.now)); res.Answer != scheduler.AnswerReview {
		s.t.Fatalf("resolved %+v", res)
	}
	s.commits(accepted(1))
	return s.delivered()
}

func TestResolveTakesAResultOver(t *testing.T) {
	t.Parallel()
	s := newScene(t).done()
	first := s.runs[0]
	s.hears(scheduler.CauseReplay, open1).claims()
	run := s.resolvesRead(baseAt(open1, "b2", s.now)).Run
	if run.ID == first.ID || run.State != scheduler.RunDone || run.TakenFrom != first.ID || run.Result != first.Result {
		t.Errorf("took over %+v from %+v", run, first)
	}
	if p := s.last.Publish; p == nil || p.Page.Run != run.ID || p.Run.Result != first.Result {
		t.Errorf("published %+v", p)
	}
	if len(s.last.Receipts) != 0 {
		t.Errorf("a run that never held money has receipts: %v", s.last.Receipts)
	}
}

func TestResolveSaysWhatChanges(t *testing.T) {
	t.Parallel()
	closed, draft := in(open1, scheduler.StateClosed), in(open1, scheduler.StateDraft)
	tests := []struct {
		name string
		play func(s *scene)
		said scheduler.PageKind
	}{
		{"a review of the same again says nothing yet", func(s *scene) {
			s.done().request(scheduler.Request{ID: "r", Rerun: true}).claims()
			s.resolves(open1)
		}, scheduler.PageNone},
		{"a review of another head takes the old result back at once", func(s *scene) {
			s.done().request(scheduler.Request{ID: "r"}).claims()
			s.resolves(open2)
		}, scheduler.PageSuperseded},
		{"so does a dry one", func(s *scene) {
			s.done().request(scheduler.Request{ID: "r", Dry: true}).claims()
			s.resolves(open2)
		}, scheduler.PageSuperseded},
		{"a result that is shown is not shown again", func(s *scene) {
			s.webhook(open1).reviewed(open1).hears(scheduler.CauseReplay, open1).claims()
			s.resolves(open1)
		}, scheduler.PageNone},
		{"unless it may not have arrived", func(s *scene) {
			s.webhook(open1).reviewed(open1)
			s.target.Page.Delivery = scheduler.DeliveryEnded
			s.hears(scheduler.CauseReplay, open1).claims()
			s.resolves(open1)
		}, scheduler.PageResult},
		{"a result that was taken back is shown again: there and back", func(s *scene) {
			s.webhook(open1).reviewed(open1).after(time.Second).webhook(open2).after(time.Second).webhook(open1).claims()
			s.resolves(open1)
		}, scheduler.PageResult},
		{"onto another base of the same commit", func(s *scene) {
			s.done().after(time.Second).webhook(retargeted(open1)).claims()
			s.resolvesRead(baseAt(retargeted(open1), "b1", s.now))
		}, scheduler.PageResult},
		{"a dry run's result is shown by the first activity that isn't dry", func(s *scene) {
			s.request(scheduler.Request{ID: "r", Dry: true}).reviewed(open1).webhook(open1).claims()
			s.resolves(open1)
		}, scheduler.PageResult},
		{"and by none that is", func(s *scene) {
			s.request(scheduler.Request{ID: "r", Dry: true}).reviewed(open1).request(scheduler.Request{ID: "r2", Dry: true}).claims()
			s.resolves(open1)
		}, scheduler.PageNone},
		{"closed leaves a delivered result alone", func(s *scene) {
			s.webhook(open1).reviewed(open1).webhook(closed).claims()
			s.resolves(closed)
		}, scheduler.PageNone},
		{"closed ends a result that was not delivered and can't be any more", func(s *scene) {
			s.webhook(open1).claims()
			s.resolves(open1)
			s.commits(accepted(7))
			s.webhook(closed).claims()
			s.resolves(closed)
		}, scheduler.PageSkipped},
		{"closed after a push nobody heard of", func(s *scene) {
			s.webhook(open1).reviewed(open1).request(scheduler.Request{ID: "r"}).claims()
			s.resolves(in(open2, scheduler.StateClosed))
		}, scheduler.PageSkipped},
		{"and found by a dry run", func(s *scene) {
			s.webhook(open1).reviewed(open1).request(scheduler.Request{ID: "r", Dry: true}).claims()
			s.resolves(in(open2, scheduler.StateClosed))
		}, scheduler.PageSuperseded},
		{"a draft that was never reviewed", func(s *scene) {
			s.webhook(draft).claims()
			s.resolves(draft)
		}, scheduler.PageNone},
		{"back to draft leaves the result that still holds", func(s *scene) {
			s.webhook(open1).reviewed(open1).webhook(draft).claims()
			s.resolves(draft)
		}, scheduler.PageNone},
		{"gone leaves everything", func(s *scene) {
			s.webhook(open1).reviewed(open1).after(time.Hour).request(scheduler.Request{ID: "r"}).claims()
			s.resolves(gone)
		}, scheduler.PageNone},
		{"refused again, as the page says", func(s *scene) {
			s.webhook(open1).claims()
			s.resolves(open1)
			s.commits(refused("too_large"))
			s.delivered().hears(scheduler.CauseReplay, open1).claims()
			s.resolves(open1)
		}, scheduler.PageNone},
		{"refused again, which the page doesn't say any more", func(s *scene) {
			s.webhook(open1).claims()
			s.resolves(open1)
			s.commits(refused("too_large"))
			s.delivered().after(time.Second).webhook(open2).after(time.Second).webhook(open1).claims()
			s.resolves(open1)
		}, scheduler.PageRefused},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.play(s)
			if s.said() != tt.said {
				t.Errorf("said %q, want %q", s.said(), tt.said)
			}
			if s.last.Publish != nil && (s.last.Publish.Epoch != s.target.Epoch || s.target.Page.Delivery != scheduler.DeliveryPending) {
				t.Errorf("epoch %d is %+v, published %+v", s.target.Epoch, s.target.Page, s.last.Publish)
			}
		})
	}
}

func TestResolveSkips(t *testing.T) {
	t.Parallel()
	filtered := reading(open1, start)
	filtered.Filtered = "fork"
	tests := []struct {
		read   scheduler.Reading
		reason string
	}{
		{reading(in(open1, scheduler.StateClosed), start), "closed"},
		{reading(in(open1, scheduler.StateDraft), start), "draft"},
		{reading(gone, start), "gone"},
		{filtered, "fork"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			s := newScene(t).request(scheduler.Request{ID: "r"}).claims()
			res := s.resolvesRead(tt.read)
			if res.Answer != scheduler.AnswerSkipped || res.Reason != tt.reason || s.target.State != tt.read.State {
				t.Errorf("resolved %+v, state %s", res, s.target.State)
			}
			if s.target.Claim.Held() || s.target.Due() || s.target.Resolved != s.target.Generation || len(s.last.Rings) > 0 {
				t.Errorf("a skip leaves %+v", s.target)
			}
			if d := s.last.Decisions; len(d) != 1 || d[0].Request != "r" || d[0].Reason != tt.reason {
				t.Errorf("decided %+v", d)
			}
		})
	}
}

func TestResolveAnswersEveryRequest(t *testing.T) {
	t.Parallel()
	s := newScene(t).request(scheduler.Request{ID: "r1"}).request(scheduler.Request{ID: "r2", Dry: true}).claims()
	run := s.resolves(open1).Run
	var got []scheduler.RequestID
	for _, d := range s.last.Decisions {
		if d.Kind == scheduler.DecisionReview && d.Run == run.ID {
			got = append(got, d.Request)
		}
	}
	if diff := cmp.Diff([]scheduler.RequestID{"r1", "r2"}, got); diff != "" || len(s.target.Requests) > 0 {
		t.Errorf("answered (-want +got):\n%s%d still wait", diff, len(s.target.Requests))
	}
}

func TestResolveEndsTheRunItLeaves(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]scheduler.Content{"for another": open2, "for none": in(open2, scheduler.StateClosed)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t).webhook(open1).claims()
			left := s.resolves(open1).Run
			_ = s.releases(scheduler.ReleaseAttemptFailed, 0)
			s.after(time.Second).webhook(then).claims()
			s.resolves(then)
			// That it is left for none has to be said: its check run stands open.
			want := []scheduler.Receipt{{Run: left.ID, Epoch: s.target.Epoch, Outcome: scheduler.ReceiptSuperseded}}
			if diff := cmp.Diff(want, s.last.Receipts); diff != "" {
				t.Errorf("receipts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReceiptsSayOneThingPerEpoch(t *testing.T) {
	t.Parallel()
	s := newScene(t).request(scheduler.Request{ID: "r", Dry: true}).claims()
	run := s.resolves(open1).Run
	_ = s.releases(scheduler.ReleaseAttemptFailed, 0)
	s.claims().resolves(open2) // which leaves the first
	_ = s.releases(scheduler.ReleaseAttemptFailed, 0)
	s.claims()
	if got := s.resolves(open1).Run.ID; got != run.ID {
		t.Fatalf("resolved %s, want %s again", got, run.ID)
	}
	s.commits(accepted(7))
	if len(s.last.Receipts) != 0 {
		t.Errorf("epoch 0 has ended the run before, and now says %v", s.last.Receipts)
	}
}
