package scheduler

import (
	"fmt"
	"time"
)

// Scope is what a pause holds up.
type Scope string

const (
	ScopeHost         Scope = "host"
	ScopeInstallation Scope = "installation"
	ScopeProject      Scope = "project"
	ScopeTarget       Scope = "target"
)

// PauseCause is who set a pause.
type PauseCause string

const (
	PauseOperator   PauseCause = "operator"
	PauseThrottled  PauseCause = "throttled"
	PauseSuspension PauseCause = "suspension"
	PauseArchive    PauseCause = "archive"
)

// Pause is a row that claims and sends skip. It clears, advances and cancels nothing.
type Pause struct {
	ID           PauseID
	Scope        Scope
	Host         string    // with every scope
	Installation int64     // with ScopeInstallation
	Project      ProjectID // with ScopeProject
	Target       TargetID  // with ScopeTarget
	Cause        PauseCause
	Reason       string
	Until        time.Time // zero: until it is cleared, an operator's only
}

// Validate refuses what could hold up work for ever without anyone having meant it.
func (p Pause) Validate() error {
	switch {
	case p.Cause != PauseOperator && p.Until.IsZero():
		return fmt.Errorf("%w: %s needs an end", ErrInvalidPause, p.Cause)
	case p.Reason == "":
		return fmt.Errorf("%w: it names no reason", ErrInvalidPause)
	}
	named := false
	switch p.Scope {
	case ScopeHost:
		named = p.Host != ""
	case ScopeInstallation:
		named = p.Host != "" && p.Installation != 0
	case ScopeProject:
		named = p.Project != ProjectID{}
	case ScopeTarget:
		named = p.Target != TargetID{}
	}
	if !named {
		return fmt.Errorf("%w: scope %q is not named", ErrInvalidPause, p.Scope)
	}
	return nil
}

// Active says that the pause holds at now.
func (p Pause) Active(now time.Time) bool { return p.Until.IsZero() || p.Until.After(now) }

// Covers says that the target is in the pause's scope.
func (p Pause) Covers(t Target) bool {
	switch p.Scope {
	case ScopeHost:
		return p.Host == t.Host
	case ScopeInstallation:
		return p.Host == t.Host && p.Installation == t.Installation
	case ScopeProject:
		return p.Project == t.Project
	case ScopeTarget:
		return p.Target == t.ID
	}
	return false
}

// Paused returns the pause that holds the target up the longest, and whether any does.
func Paused(pauses []Pause, t Target, now time.Time) (Pause, bool) {
	var longest Pause
	held := false
	for _, p := range pauses {
		if !p.Active(now) || !p.Covers(t) {
			continue
		}
		if !held || p.Until.IsZero() || !longest.Until.IsZero() && p.Until.After(longest.Until) {
			longest, held = p, true
		}
	}
	return longest, held
}

// For names the pause's scope after a target: whoever meets a limit while working on one knows no more.
func (p Pause) For(t Target) Pause {
	p.Host = t.Host
	switch p.Scope {
	case ScopeHost:
	case ScopeInstallation:
		p.Installation = t.Installation
	case ScopeProject:
		p.Host, p.Project = "", t.Project
	case ScopeTarget:
		p.Host, p.Target = "", t.ID
	}
	return p
}
