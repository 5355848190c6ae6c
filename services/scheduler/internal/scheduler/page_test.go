package scheduler_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

func TestCheckCurrent(t *testing.T) {
	t.Parallel()
	shown := func(s *scene) {
		s.webhook(open1).claims()
		s.resolves(open1)
		s.commits(accepted(7))
	}
	taken := func(s *scene) { s.webhook(open1).reviewed(open1).webhook(open2) }
	pause := func(until time.Duration) []scheduler.Pause {
		p := scheduler.Pause{Scope: scheduler.ScopeInstallation, Host: "github.com", Installation: 7, Reason: "throttled"}
		if until > 0 {
			p.Until = start.Add(until)
		}
		return []scheduler.Pause{p}
	}
	tests := []struct {
		name      string
		play      func(s *scene)
		lifecycle scheduler.Lifecycle
		epoch     scheduler.Epoch
		pauses    []scheduler.Pause
		want      scheduler.Currency
		until     time.Time
	}{
		{"a result that answers all that was heard", shown, 1, 1, nil, scheduler.Current, time.Time{}},
		{"a result while something newer waits for its answer", func(s *scene) {
			shown(s)
			s.hears(scheduler.CauseReplay, open1)
		}, 1, 1, nil, scheduler.Wait, time.Time{}},
		{"what takes back needs to be the last, nothing more", taken, 1, 2, nil, scheduler.Current, time.Time{}},
		{"an earlier epoch", taken, 1, 1, nil, scheduler.Superseded, time.Time{}},
		{"an earlier lifecycle", func(s *scene) {
			s.webhook(open1).reviewed(open1).after(s.rules.Retention).ends()
		}, 1, 1, nil, scheduler.Superseded, time.Time{}},
		{"an epoch of the future", shown, 1, 2, nil, scheduler.Wait, time.Time{}},
		{"paused", shown, 1, 1, pause(time.Hour), scheduler.Wait, start.Add(time.Hour)},
		{"paused without end", shown, 1, 1, pause(0), scheduler.Wait, time.Time{}},
		{"paused once", shown, 1, 1, pause(time.Second), scheduler.Current, time.Time{}},
		{"superseded, paused or not", taken, 1, 1, pause(time.Hour), scheduler.Superseded, time.Time{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.play(s)
			got, until := s.target.CheckCurrent(scheduler.Check{Lifecycle: tt.lifecycle, Epoch: tt.epoch}, tt.pauses, s.now)
			if got != tt.want || !until.Equal(tt.until) {
				t.Errorf("%s until %s, want %s until %s", got, until, tt.want, tt.until)
			}
		})
	}
}

func TestRecordPublication(t *testing.T) {
	t.Parallel()
	report := func(l scheduler.Lifecycle, e scheduler.Epoch, d scheduler.Delivery) scheduler.Publication {
		return scheduler.Publication{Lifecycle: l, Epoch: e, Delivery: d, CommentURL: "https://github.com/acme/widgets/pull/12#issuecomment-1"}
	}
	tests := []struct {
		name    string
		reports []scheduler.Publication
		want    scheduler.Delivery
		decided []scheduler.DecisionKind // by the last report
	}{
		{"delivered", []scheduler.Publication{report(1, 1, scheduler.DeliveryDelivered)}, scheduler.DeliveryDelivered, []scheduler.DecisionKind{scheduler.DecisionPublished}},
		{"ended otherwise", []scheduler.Publication{report(1, 1, scheduler.DeliveryEnded)}, scheduler.DeliveryEnded, []scheduler.DecisionKind{scheduler.DecisionNotPublished}},
		{"twice", []scheduler.Publication{report(1, 1, scheduler.DeliveryDelivered), report(1, 1, scheduler.DeliveryDelivered)}, scheduler.DeliveryDelivered, nil},
		{"what was delivered stays so", []scheduler.Publication{report(1, 1, scheduler.DeliveryDelivered), report(1, 1, scheduler.DeliveryEnded)}, scheduler.DeliveryDelivered, nil},
		{"what ended may turn out to have arrived", []scheduler.Publication{report(1, 1, scheduler.DeliveryEnded), report(1, 1, scheduler.DeliveryDelivered)}, scheduler.DeliveryDelivered, []scheduler.DecisionKind{scheduler.DecisionPublished}},
		{"an epoch that isn't the last", []scheduler.Publication{report(1, 0, scheduler.DeliveryDelivered)}, scheduler.DeliveryPending, nil},
		{"another lifecycle", []scheduler.Publication{report(2, 1, scheduler.DeliveryDelivered)}, scheduler.DeliveryPending, nil},
		{"neither", []scheduler.Publication{report(1, 1, scheduler.DeliveryPending)}, scheduler.DeliveryPending, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t).webhook(open1).claims()
			s.resolves(open1)
			s.commits(accepted(7))
			for _, p := range tt.reports {
				s.save(s.target.RecordPublication(p, s.run(s.target.Page.Run), s.now))
			}
			if got := s.target.Page.Delivery; got != tt.want || s.runs[0].Delivery != tt.want {
				t.Errorf("the page is %s and the run %s, want %s", got, s.runs[0].Delivery, tt.want)
			}
			if diff := cmp.Diff(tt.decided, s.decided()); diff != "" {
				t.Errorf("decided (-want +got):\n%s", diff)
			}
			if (s.target.CommentURL != "") != (tt.want != scheduler.DeliveryPending) {
				t.Errorf("the comment is %q", s.target.CommentURL)
			}
		})
	}
}

func TestEndLifecycle(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		play   func(s *scene)
		paused bool
		ends   bool
	}{
		{"at rest past retention", func(s *scene) { s.webhook(open1).reviewed(open1).after(s.rules.Retention) }, false, true},
		{"too young", func(s *scene) { s.webhook(open1).reviewed(open1).after(s.rules.Retention - 1) }, false, false},
		{"due", func(s *scene) { s.webhook(open1).after(s.rules.Retention) }, false, false},
		{"claimed", func(s *scene) { s.webhook(open1).claims().after(s.rules.Retention) }, false, false},
		{"with an epoch on its way", func(s *scene) {
			s.webhook(open1).claims()
			s.resolves(open1)
			s.commits(accepted(7))
			s.after(s.rules.Retention)
		}, false, false},
		{"that has been paused for all that time", func(s *scene) {
			s.webhook(open1).claims()
			s.resolves(open1)
			s.commits(accepted(7))
			s.after(s.rules.Retention)
		}, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.play(s)
			before := s.target
			got, e, err := s.rules.EndLifecycle(s.target, tt.paused, s.now)
			if ended := err == nil; ended != tt.ends {
				t.Fatalf("ends: %v, want %t", err, tt.ends)
			}
			if !tt.ends {
				return
			}
			if got.Lifecycle != 2 || !got.Read.At.IsZero() || !got.Hint.Empty() || got.State != scheduler.StateUnknown {
				t.Errorf("began the next as %+v", got)
			}
			if got.Generation != before.Generation || got.Epoch != before.Epoch || got.Activities != before.Activities {
				t.Errorf("counters went from %+v to %+v", before, got)
			}
			if got.Page.Run != before.Page.Run || got.Page.Delivery == scheduler.DeliveryPending {
				t.Errorf("the page is %+v, and was %+v", got.Page, before.Page)
			}
			if diff := cmp.Diff(&scheduler.Purge{Target: got.ID, Lifecycle: 1}, e.Purge); diff != "" {
				t.Errorf("purge (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPageOfAnEndedLifecycleIsStillTakenBack(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).reviewed(open1).after(s90).ends().webhook(open2)
	if s.said() != scheduler.PageSuperseded || s.last.Publish.Lifecycle != 2 {
		t.Errorf("said %q: %+v", s.said(), s.last.Publish)
	}
}

const s90 = 90 * 24 * time.Hour
