package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

func TestPaused(t *testing.T) {
	t.Parallel()
	target := newScene(t).target
	at := func(d time.Duration) time.Time { return start.Add(d) }
	tests := []struct {
		name   string
		pauses []scheduler.Pause
		held   bool
		until  time.Time
	}{
		{"none", nil, false, time.Time{}},
		{"its host", []scheduler.Pause{{Scope: scheduler.ScopeHost, Host: "github.com", Until: at(1)}}, true, at(1)},
		{"another host", []scheduler.Pause{{Scope: scheduler.ScopeHost, Host: "github.example", Until: at(1)}}, false, time.Time{}},
		{"its installation", []scheduler.Pause{{Scope: scheduler.ScopeInstallation, Host: "github.com", Installation: 7, Until: at(1)}}, true, at(1)},
		{"the same number on another host", []scheduler.Pause{{Scope: scheduler.ScopeInstallation, Host: "github.example", Installation: 7, Until: at(1)}}, false, time.Time{}},
		{"its project", []scheduler.Pause{{Scope: scheduler.ScopeProject, Project: target.Project, Until: at(1)}}, true, at(1)},
		{"itself", []scheduler.Pause{{Scope: scheduler.ScopeTarget, Target: target.ID, Until: at(1)}}, true, at(1)},
		{"another", []scheduler.Pause{{Scope: scheduler.ScopeTarget, Target: scheduler.TargetID{9}, Until: at(1)}}, false, time.Time{}},
		{"one that is over", []scheduler.Pause{{Scope: scheduler.ScopeTarget, Target: target.ID, Until: start}}, false, time.Time{}},
		{"the longest counts", []scheduler.Pause{
			{Scope: scheduler.ScopeTarget, Target: target.ID, Until: at(2)},
			{Scope: scheduler.ScopeHost, Host: "github.com", Until: at(3)},
			{Scope: scheduler.ScopeProject, Project: target.Project, Until: at(1)},
		}, true, at(3)},
		{"one without end is the longest", []scheduler.Pause{
			{Scope: scheduler.ScopeTarget, Target: target.ID},
			{Scope: scheduler.ScopeHost, Host: "github.com", Until: at(3)},
		}, true, time.Time{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, held := scheduler.Paused(tt.pauses, target, start)
			if held != tt.held || !p.Until.Equal(tt.until) {
				t.Errorf("held %t until %s, want %t until %s", held, p.Until, tt.held, tt.until)
			}
		})
	}
}

func TestPauseValidate(t *testing.T) {
	t.Parallel()
	valid := scheduler.Pause{Scope: scheduler.ScopeTarget, Target: scheduler.TargetID{1}, Cause: scheduler.PauseOperator, Reason: "incident"}
	if err := valid.Validate(); err != nil {
		t.Errorf("an operator's, without end: %v", err)
	}
	for name, spoil := range map[string]func(*scheduler.Pause){
		"throttling without end": func(p *scheduler.Pause) { p.Cause = scheduler.PauseThrottled },
		"suspension without end": func(p *scheduler.Pause) { p.Cause = scheduler.PauseSuspension },
		"no reason":              func(p *scheduler.Pause) { p.Reason = "" },
		"no scope":               func(p *scheduler.Pause) { p.Scope = "" },
		"no target":              func(p *scheduler.Pause) { p.Target = scheduler.TargetID{} },
		"no host":                func(p *scheduler.Pause) { p.Scope = scheduler.ScopeHost },
		"no installation":        func(p *scheduler.Pause) { p.Scope, p.Host = scheduler.ScopeInstallation, "github.com" },
		"no project":             func(p *scheduler.Pause) { p.Scope = scheduler.ScopeProject },
	} {
		p := valid
		spoil(&p)
		if err := p.Validate(); !errors.Is(err, scheduler.ErrInvalidPause) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRulesValidate(t *testing.T) {
	t.Parallel()
	if err := scheduler.Defaults().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	err := scheduler.Rules{Quiet: time.Hour, MaxWait: time.Minute, Lease: time.Minute}.Validate()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 11 {
		t.Errorf("not everything at once: %v", err)
	}
}

func TestIDsRead(t *testing.T) {
	t.Parallel()
	id := scheduler.RunID{0x01, 0x8f, 0x3a, 0x5b, 0x6c, 0x7d, 0x70, 0x12, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67}
	if got, want := id.String(), "018f3a5b-6c7d-7012-89ab-cdef01234567"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
