package scheduler

import "time"

// SuspensionPause is how long a suspension holds by itself; a refused token renews it.
const SuspensionPause = 10 * time.Minute

// ArchivePause is how long an archive holds by itself; ingest tells it again while it lasts.
const ArchivePause = 24 * time.Hour

// ChangeKind is what happened to an installation.
type ChangeKind string

const (
	ChangeSuspended   ChangeKind = "suspended"
	ChangeUnsuspended ChangeKind = "unsuspended"
	ChangeDeleted     ChangeKind = "deleted"
	ChangeCreated     ChangeKind = "created"
	ChangeRemoved     ChangeKind = "repositories_removed"
	ChangeAdded       ChangeKind = "repositories_added"
	ChangeGone        ChangeKind = "repositories_gone" // another account's, or out of reach
	ChangeRenamed     ChangeKind = "repositories_renamed"
	ChangeArchived    ChangeKind = "repositories_archived"
	ChangeUnarchived  ChangeKind = "repositories_unarchived"
)

// IntegrationChange is a change of an installation, as ingest heard it.
type IntegrationChange struct {
	Event        ActivityID
	Kind         ChangeKind
	Host         string
	Installation int64
	Projects     []ProjectID // with those of repositories
	FullName     string      // with ChangeRenamed
	Recorded     time.Time   // when ingest recorded it, by its database's clock; zero: not known
}

// Pauses returns what the change pauses and what it clears. Suspension is a pause and nothing else:
// nothing is cleared or cancelled, and work goes on where it was. A removed repository is paused as long: what is then
// read of one that is really gone ends its targets. Messages have no order: of two about one pause the one that was
// recorded later stands. A deleted installation stays paused: its id never
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
	case ChangeRemoved, ChangeAdded, ChangeArchived, ChangeUnarchived, ChangeGone, ChangeRenamed:
	}
	for _, project := range c.Projects {
		removed := Pause{Scope: ScopeProject, Project: project, Cause: PauseSuspension, Reason: "repository_removed", Until: now.Add(SuspensionPause)}
		archived := Pause{Scope: ScopeProject, Project: project, Cause: PauseArchive, Reason: "repository_archived", Until: now.Add(ArchivePause)}
		switch c.Kind {
		case ChangeRemoved:
			set = append(set, removed)
		case ChangeAdded:
			clear = append(clear, removed)
		case ChangeArchived:
			set = append(set, archived)
		case ChangeUnarchived:
			clear = append(clear, archived)
		default:
		}
	}
	return set, clear
}

// Depart ends a target whose repository is not for its tenant to review any more, by a decision: nobody reads
// it again, since a public one could still be read. Live work loses its claim, and waiting requests are
// answered. What comes later on the same pull request makes it due again, and then the read decides.
func (r Rules) Depart(t Target, event ActivityID, known []Run, now time.Time) (Target, Effects) {
	var e Effects
	if t.State == StateGone && !t.Due() && !t.Claim.Held() {
		return t, e
	}
	last, held := t.LastEnd, t.Claim.Held()
	t.Activities++
	t.Generation++
	t.State = StateGone
	t.Read = Read{Content: Content{State: StateGone}, At: now, Generation: t.Generation, ServedNotDry: true}
	t.Hint = Hint{Content: t.Read.Content, HeardAt: now}
	t.Claim.Activities = t.Activities
	t.FirstActivityAt = time.Time{}
	e.decide(t, Decision{Kind: DecisionDeparted, Activity: event, Claim: t.Claim.ID, Run: t.Claim.Run})
	t.skip(string(StateGone), known, &e, now)
	if !held {
		t.LastEnd = last // a call that is repeated after a lost answer is answered as it was
	}
	return t, e
}
