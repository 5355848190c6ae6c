package scheduler_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

func TestHintNewer(t *testing.T) {
	t.Parallel()
	at := func(c scheduler.Content, updated, heard time.Duration) scheduler.Hint {
		return scheduler.Hint{Content: c, UpdatedAt: start.Add(updated), HeardAt: start.Add(heard)}
	}
	known := at(open1, 10*time.Second, 11*time.Second)
	tests := []struct {
		name  string
		heard scheduler.Hint
		newer bool
	}{
		{"a later one", at(open2, 11*time.Second, time.Minute), true},
		{"an earlier one, heard later", at(open2, 9*time.Second, time.Minute), false},
		{"another of the same second: the later heard", at(open2, 10*time.Second, time.Minute), true},
		{"the same again keeps when it was heard first", at(open1, 10*time.Second, time.Minute), false},
		{"the same content, changed in something else since", at(open1, 12*time.Second, time.Minute), true},
		{"nothing", at(scheduler.Content{}, 20*time.Second, time.Minute), false},
		{"a 404, which has no time", scheduler.Hint{Content: gone, HeardAt: start.Add(time.Minute)}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := known
			if tt.newer {
				want = tt.heard
			}
			if diff := cmp.Diff(want, known.Newer(tt.heard)); diff != "" {
				t.Errorf("believed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveLags(t *testing.T) {
	t.Parallel()
	push := scheduler.Hint{Content: open2, Before: "h1", UpdatedAt: start}
	opened := scheduler.Hint{Content: open1, UpdatedAt: start}
	edited := scheduler.Hint{Content: open2, UpdatedAt: start}
	tests := []struct {
		name   string
		hint   scheduler.Hint
		age    time.Duration // of the hint
		read   scheduler.Content
		stamp  time.Duration // of the read, from the hint's
		lags   bool
		kindly scheduler.DecisionKind // the first decision where it doesn't lag
	}{
		{"older and different", edited, 30 * time.Second, open1, -time.Second, true, ""},
		{"older and different, but the hint is old too", edited, 2 * time.Minute, open1, -time.Second, false, scheduler.DecisionReadBelieved},
		{"older and the same", opened, 30 * time.Second, open1, -time.Second, false, scheduler.DecisionReview},
		{"different of the same second", edited, 30 * time.Second, open1, 0, false, scheduler.DecisionReview},
		{"newer", edited, 30 * time.Second, open1, time.Second, false, scheduler.DecisionReview},
		{"the head before the push, whatever its time", push, 30 * time.Second, open1, time.Second, true, ""},
		{"the head before a push long heard of", push, 3 * time.Minute, open1, time.Second, false, scheduler.DecisionReadBelieved},
		{"404 for what was just heard of", opened, 30 * time.Second, gone, 0, true, ""},
		{"404 later", opened, 2 * time.Minute, gone, 0, false, scheduler.DecisionReadBelieved},
		{"404 where nothing was heard", scheduler.Hint{}, 30 * time.Second, gone, 0, false, scheduler.DecisionSkipped},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.hearsActivity(scheduler.Activity{Cause: scheduler.CauseWebhook, Hint: tt.hint})
			s.after(tt.age).claims()
			s.now = start.Add(tt.age)
			res := s.resolvesRead(reading(tt.read, start.Add(tt.stamp)))
			if got := res.Answer == scheduler.AnswerReadLags; got != tt.lags {
				t.Fatalf("answered %s, want read_lags: %t", res.Answer, tt.lags)
			}
			if !tt.lags {
				if got := s.decided()[0]; got != tt.kindly {
					t.Errorf("decided %s, want %s", got, tt.kindly)
				}
				if s.target.Hint.Content != tt.read {
					t.Errorf("an accepted read leaves the hint at %+v", s.target.Hint.Content)
				}
				return
			}
			if s.target.Claim.Held() || !s.target.Due() || s.target.Resolved != 0 {
				t.Errorf("a lagging read leaves %+v", s.target)
			}
			if diff := cmp.Diff([]time.Duration{tt.age + s.rules.ReadLag}, s.rings()); diff != "" {
				t.Errorf("rings (-want +got):\n%s", diff)
			}
			if s.target.Read.At != (time.Time{}) || s.target.Hint.Content != tt.hint.Content {
				t.Errorf("a lagging read is believed: %+v", s.target)
			}
		})
	}
}

func TestResolveRefusesAReadingOfNothing(t *testing.T) {
	t.Parallel()
	for _, in := range []scheduler.Reading{
		{},
		{Content: scheduler.Content{State: "merged", Head: "h1", BaseRef: "main"}},
		{Content: scheduler.Content{State: scheduler.StateOpen, BaseRef: "main"}, BaseSHA: "b"},
		{Content: scheduler.Content{State: scheduler.StateOpen, Head: "h1"}, BaseSHA: "b"},
		{Content: open1},
	} {
		if err := in.Validate(); err == nil {
			t.Errorf("%+v is valid", in)
		}
	}
	for _, in := range []scheduler.Reading{
		{Content: gone}, {Content: in(open1, scheduler.StateClosed)}, {Content: open1, BaseSHA: "b"}, {Content: open1, Filtered: "fork"},
	} {
		if err := in.Validate(); err != nil {
			t.Errorf("%+v: %v", in, err)
		}
	}
}
