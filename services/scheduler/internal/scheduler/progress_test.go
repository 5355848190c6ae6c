package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	waits := func(s *scene) { s.webhook(open1).claims().resolves(open1) }
	tests := []struct {
		name string
		play func(s *scene)
		want scheduler.ProgressState // told by the last transition
	}{
		{"a run is given out", waits, scheduler.ProgressQueued},
		{"its engine is called", func(s *scene) { waits(s); s.starts() }, scheduler.ProgressStarted},
		{"the call is repeated after a lost answer", func(s *scene) { waits(s); s.starts().starts() }, scheduler.ProgressNone},
		{"a dry run is given out", func(s *scene) {
			s.request(scheduler.Request{ID: "r", Dry: true}).claims().resolves(open1)
		}, scheduler.ProgressNone},
		{"a dry run's engine is called", func(s *scene) {
			s.request(scheduler.Request{ID: "r", Dry: true}).claims().resolves(open1)
			s.starts()
		}, scheduler.ProgressNone},
		{"a dry run's engine is called, and somebody wants to see it by now", func(s *scene) {
			s.request(scheduler.Request{ID: "r", Dry: true}).claims().resolves(open1)
			s.hears(scheduler.CauseReplay, open1).starts()
		}, scheduler.ProgressStarted},
		{"before a run is given out", func(s *scene) { s.webhook(open1).claims().starts() }, scheduler.ProgressNone},
		{"a worker that is asked to stop", func(s *scene) { waits(s); s.webhook(open2).starts() }, scheduler.ProgressNone},
		{"an earlier result stands", func(s *scene) {
			s.webhook(open1).reviewed(open1).hears(scheduler.CauseReplay, open1).claims().resolves(open1)
		}, scheduler.ProgressNone},
		{"a second claim on a run that waits", func(s *scene) {
			waits(s)
			_ = s.releases(scheduler.ReleaseDependencyAway, 0)
			s.claims().resolves(open1)
		}, scheduler.ProgressNone},
		{"a second claim on a run whose engine failed", func(s *scene) {
			waits(s)
			s.starts()
			_ = s.releases(scheduler.ReleaseAttemptFailed, 0)
			s.claims().resolves(open1)
			s.starts()
		}, scheduler.ProgressNone},
		{"another base commit of the same generation waits", func(s *scene) {
			waits(s)
			_ = s.releases(scheduler.ReleaseDependencyAway, 0)
			s.claims()
			moved := reading(open1, s.now)
			moved.BaseSHA = "main@2"
			s.resolvesRead(moved)
		}, scheduler.ProgressNone},
		{"a later generation waits", func(s *scene) {
			waits(s)
			s.starts()
			_ = s.releases(scheduler.ReleaseAttemptFailed, 0)
			s.webhook(open2).claims().resolves(open2)
		}, scheduler.ProgressQueued},
		{"it is on the page that there was no money", func(s *scene) {
			waits(s)
			s.commits(overBudget(0))
			s.delivered().claims().resolves(open1)
		}, scheduler.ProgressNone},
		{"there is money again", func(s *scene) {
			waits(s)
			s.commits(overBudget(0))
			s.delivered().claims().resolves(open1)
			s.starts()
		}, scheduler.ProgressStarted},
		{"a re-run waits", func(s *scene) {
			s.webhook(open1).reviewed(open1).request(scheduler.Request{ID: "r", Rerun: true}).claims().resolves(open1)
		}, scheduler.ProgressQueued},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.play(s)
			if got := s.told(); got != tt.want {
				t.Fatalf("told %q, want %q", got, tt.want)
			}
			if tt.want == scheduler.ProgressNone {
				return
			}
			want := &scheduler.Progress{
				Told:   scheduler.Told{Epoch: s.target.Epoch, Generation: s.target.Generation, State: tt.want},
				Target: s.target.ID, Lifecycle: 1, Run: s.run(s.target.InWork),
			}
			if diff := cmp.Diff(want, s.last.Progress); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

// What takes an older comparison back speaks first, and the progress follows it.
func TestProgressFollowsWhatIsTakenBack(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).reviewed(open1)
	s.request(scheduler.Request{ID: "r"}).claims().resolves(open2)
	if s.said() != scheduler.PageSuperseded || s.last.Publish.Epoch != 2 || s.told() != scheduler.ProgressQueued || s.last.Progress.Epoch != 2 {
		t.Errorf("said %+v, told %+v", s.last.Publish, s.last.Progress)
	}
}

// A start is a renewal: it is fenced by claim and lease alone, and changes nothing of the page.
func TestAStartIsARenewal(t *testing.T) {
	t.Parallel()
	s := newScene(t).webhook(open1).claims()
	s.resolves(open1)
	run := s.run(s.target.InWork)
	renewed, want, err := s.rules.Renew(s.target, s.fence.Claim, s.now)
	if err != nil {
		t.Fatal(err)
	}
	started, got, e, err := s.rules.Start(s.target, s.fence.Claim, run, s.now)
	if err != nil || got != want {
		t.Fatalf("started until %+v, %v; a renewal's is %+v", got, err, want)
	}
	renewed.Told = started.Told
	if diff := cmp.Diff(renewed, started); diff != "" {
		t.Errorf("a start changes more than a renewal (-renewal +start):\n%s", diff)
	}
	if diff := cmp.Diff(scheduler.Effects{Progress: e.Progress}, e); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	s.hears(scheduler.CauseReplay, open1)
	if s.starts(); s.told() != scheduler.ProgressStarted {
		t.Errorf("after news of the same told %q", s.told())
	}
	if _, _, e, err := s.rules.Start(s.target, scheduler.ClaimID{99}, run, s.now); !errors.Is(err, scheduler.ErrClaimLost) || e.Progress != nil {
		t.Errorf("another's claim: %v, %+v", err, e.Progress)
	}
	if _, _, e, err := s.rules.Start(s.target, s.fence.Claim, run, s.now.Add(time.Hour)); !errors.Is(err, scheduler.ErrLeaseExpired) || e.Progress != nil {
		t.Errorf("a lapsed claim: %v, %+v", err, e.Progress)
	}
}

// Whatever ends a run that the page may show has to say so, or its check run would stand open for ever.
func TestTheEndOfAShownRunIsSaid(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		play func(s *scene)
		want scheduler.PageKind
	}{
		{"it becomes a draft before anything was said", func(s *scene) {
			s.webhook(open1).claims().resolves(open1)
			_ = s.releases(scheduler.ReleaseAttemptFailed, 0)
			s.webhook(in(open1, scheduler.StateDraft)).claims().resolves(in(open1, scheduler.StateDraft))
		}, scheduler.PageSkipped},
		{"it is closed during a re-run", func(s *scene) {
			s.webhook(open1).reviewed(open1).request(scheduler.Request{ID: "r", Rerun: true}).claims().resolves(open1)
			_ = s.releases(scheduler.ReleaseAttemptFailed, 0)
			s.webhook(in(open1, scheduler.StateClosed)).claims().resolves(in(open1, scheduler.StateClosed))
		}, scheduler.PageSkipped},
		{"the base moves there and back", func(s *scene) {
			s.webhook(open1).reviewed(open1).hears(scheduler.CauseReplay, open1).claims()
			moved := reading(open1, s.now)
			moved.BaseSHA, moved.MergeBase = "main@2", "elsewhere"
			s.resolvesRead(moved)
			_ = s.releases(scheduler.ReleaseAttemptFailed, 0)
			s.claims().resolves(open1)
		}, scheduler.PageResult},
		{"the money is gone again after its engine failed", func(s *scene) {
			s.webhook(open1).claims().resolves(open1)
			s.commits(overBudget(0))
			s.delivered().claims().resolves(open1)
			s.starts()
			_ = s.releases(scheduler.ReleaseAttemptFailed, 0)
			s.claims().resolves(open1)
			s.commits(overBudget(0))
		}, scheduler.PageOverBudget},
		{"a dry run is closed", func(s *scene) {
			s.request(scheduler.Request{ID: "r", Dry: true}).claims().resolves(open1)
			_ = s.releases(scheduler.ReleaseAttemptFailed, 0)
			s.claims().resolves(in(open1, scheduler.StateClosed))
		}, scheduler.PageNone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.play(s)
			if s.said() != tt.want {
				t.Errorf("said %q, want %q", s.said(), tt.want)
			}
		})
	}
}

func TestCheckCurrentOfProgress(t *testing.T) {
	t.Parallel()
	waits := func(s *scene) { s.webhook(open1).claims().resolves(open1) }
	throttled := []scheduler.Pause{{Scope: scheduler.ScopeInstallation, Host: "github.com", Installation: 7, Reason: "throttled", Until: start.Add(time.Hour)}}
	tests := []struct {
		name   string
		play   func(s *scene)
		then   func(s *scene) // after the progress was told
		pauses []scheduler.Pause
		want   scheduler.Currency
		until  time.Time
	}{
		{"of the run in work", waits, func(*scene) {}, nil, scheduler.Current, time.Time{}},
		{"whose engine is called", func(s *scene) { waits(s); s.starts() }, func(*scene) {}, nil, scheduler.Current, time.Time{}},
		{"after an epoch", func(s *scene) {
			s.webhook(open1).reviewed(open1).webhook(open2).claims().resolves(open2)
		}, func(*scene) {}, nil, scheduler.Current, time.Time{}},
		{"of a run that waits for another claim", waits, func(s *scene) { _ = s.releases(scheduler.ReleaseAttemptFailed, 0) }, nil, scheduler.Current, time.Time{}},
		{"and the same is heard again", waits, func(s *scene) { s.hears(scheduler.CauseReplay, open1) }, nil, scheduler.Current, time.Time{}},
		{"and a push is heard", waits, func(s *scene) { s.webhook(open2) }, nil, scheduler.Superseded, time.Time{}},
		{"and another base is heard", waits, func(s *scene) { s.webhook(retargeted(open1)) }, nil, scheduler.Superseded, time.Time{}},
		{"and its close is heard", waits, func(s *scene) { s.webhook(in(open1, scheduler.StateClosed)) }, nil, scheduler.Superseded, time.Time{}},
		{"and it has ended", waits, func(s *scene) { s.commits(accepted(1)) }, nil, scheduler.Superseded, time.Time{}},
		{"and there was no money", waits, func(s *scene) { s.commits(overBudget(0)) }, nil, scheduler.Superseded, time.Time{}},
		{"paused", waits, func(*scene) {}, throttled, scheduler.Wait, start.Add(time.Hour)},
		{"ended, paused or not", waits, func(s *scene) { s.commits(accepted(1)) }, throttled, scheduler.Superseded, time.Time{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.play(s)
			p := s.last.Progress
			tt.then(s)
			got, until := s.target.CheckCurrent(scheduler.Check{Lifecycle: p.Lifecycle, Epoch: p.Epoch, Progress: p.Run.ID}, tt.pauses, s.now)
			if got != tt.want || !until.Equal(tt.until) {
				t.Errorf("%s until %s, want %s until %s", got, until, tt.want, tt.until)
			}
		})
	}
	s := newScene(t)
	waits(s)
	for name, c := range map[string]scheduler.Check{
		"of another run":        {Lifecycle: 1, Progress: scheduler.RunID{9}},
		"of another lifecycle":  {Lifecycle: 2, Progress: s.target.InWork},
		"of an epoch not known": {Lifecycle: 1, Epoch: 1, Progress: s.target.InWork},
	} {
		if got, _ := s.target.CheckCurrent(c, nil, s.now); got != scheduler.Superseded {
			t.Errorf("%s: %s", name, got)
		}
	}
}
