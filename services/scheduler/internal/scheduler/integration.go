package scheduler

import "time"

// SuspensionPause is how long a suspension holds by itself; a refused token renews it.
const SuspensionPause = 10 * time.Minute

// ChangeKind is what happened to an installation.
type ChangeKind string

const (
	ChangeSuspended   ChangeKind = "suspended"
	ChangeUnsuspended ChangeKind = "unsuspended"
	ChangeDeleted     ChangeKind = "deleted"
	ChangeCreated     ChangeKind = "created"
	ChangeRemoved     ChangeKind = "repositories_removed"
	ChangeAdded       ChangeKind = "repositories_added"
)

// IntegrationChange is a change of an installation, as ingest heard it.
type IntegrationChange struct {
	Event        ActivityID
	Kind         ChangeKind
	Host         string
	Installation int64
	Projects     []ProjectID // with the two of repositories
}

// Pauses returns what the change pauses and what it clears. Suspension is a pause and nothing else:
// nothing is cleared or cancelled, and work goes on where it was. A removed repository is paused as long:
// messages have no order, so an addition that was overtaken must not leave it paused for ever; what is then
// read of one that is really gone ends its targets. A deleted installation stays paused: its id never
// comes back.
func (c IntegrationChange) Pauses(now time.Time) (set, clear []Pause) {
	installation := Pause{Scope: ScopeInstallation, Host: c.Host, Installation: c.Installation, Cause: PauseSuspension}
	switch c.Kind {
	case ChangeSuspended:
		installation.Reason, installation.Until = "installation_suspended", now.Add(SuspensionPause)
		return []Pause{installation}, nil
	case ChangeUnsuspended, ChangeCreated:
		return nil, []Pause{installation}
	case ChangeDeleted:
		installation.Cause, installation.Reason = PauseOperator, "installation_deleted"
		return []Pause{installation}, nil
	case ChangeRemoved, ChangeAdded:
	}
	for _, project := range c.Projects {
		p := Pause{Scope: ScopeProject, Project: project, Cause: PauseSuspension, Reason: "repository_removed", Until: now.Add(SuspensionPause)}
		if c.Kind == ChangeRemoved {
			set = append(set, p)
		} else {
			clear = append(clear, p)
		}
	}
	return set, clear
}
