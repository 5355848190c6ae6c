package ingest

// ChangeKind is what the scheduler is told of an installation.
type ChangeKind string

// The kinds of changes. A change without a kind is told to nobody.
const (
	ChangeCreated     ChangeKind = "created"
	ChangeDeleted     ChangeKind = "deleted"
	ChangeSuspended   ChangeKind = "suspended"
	ChangeUnsuspended ChangeKind = "unsuspended"
	ChangeAdded       ChangeKind = "repositories_added"
	ChangeRemoved     ChangeKind = "repositories_removed"
	ChangeGone        ChangeKind = "repositories_gone" // another account's, or nobody's that we know
	ChangeRenamed     ChangeKind = "repositories_renamed"
	ChangeArchived    ChangeKind = "repositories_archived"
	ChangeUnarchived  ChangeKind = "repositories_unarchived"
)

// Change is what an admitted event of an installation does.
type Change struct {
	Kind    ChangeKind
	State   InstallationState // to set; empty: as it is
	Adds    []Repository      // to enrol
	Removes []Repository
	Lists   bool // all projects of the installation are to be listed at once
}

// ChangeOf returns what an admitted event does. A payload lists repositories with other actions, too, as
// with a deletion: those add none.
func ChangeOf(e Event, known Integration, p Policy) Change {
	var c Change
	switch e.Name + "." + e.Action {
	case "installation.created":
		// Comes first and sets nothing: an installation that is heard of for the first time is active.
		c.Adds = e.Added
		if !e.InstalledAt.Before(known.InstallationChanged) {
			c.Kind = ChangeCreated
		}
	case "installation.deleted":
		c.Kind, c.State = ChangeDeleted, InstallationDeleted
	case "installation.suspend":
		c.Kind, c.State = ChangeSuspended, InstallationSuspended
	case "installation.unsuspend":
		c.Kind, c.State, c.Lists = ChangeUnsuspended, InstallationActive, true
	case "installation.new_permissions_accepted", "organization.renamed", "installation_target.renamed":
		c.Lists = true
	case "installation_repositories.added":
		c.Kind, c.Adds = ChangeAdded, e.Added
	case "installation_repositories.removed":
		c.Kind, c.Removes = ChangeRemoved, e.Removed
	}
	if p.ExplicitEnroll {
		c.Adds = nil
	}
	return c
}
