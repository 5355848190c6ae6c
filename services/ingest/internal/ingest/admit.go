package ingest

import "time"

// Integration is what is stored of whom an event belongs to: its account, its installation, and its
// repository's project. Zero values mean: not known.
type Integration struct {
	Tenant TenantID // the account's

	InstallationState   InstallationState
	InstallationTenant  TenantID
	InstalledBy         int64     // account id
	InstallationChanged time.Time // GitHub's time of the event that set the state

	Project             ProjectID
	ProjectTenant       TenantID
	ProjectState        ProjectState
	ProjectInstallation int64
	RemovedAt           time.Time // when the removal was received
}

// InstallationState is where an installation stands.
type InstallationState string

// The states of an installation. Deleted is final: GitHub gives the next installation another id.
const (
	InstallationActive    InstallationState = "active"
	InstallationSuspended InstallationState = "suspended"
	InstallationDeleted   InstallationState = "deleted"
)

// ProjectState is where a project stands.
type ProjectState string

// The states of a project.
const (
	ProjectEnrolled ProjectState = "enrolled"
	ProjectRemoved  ProjectState = "removed"
	ProjectMoved    ProjectState = "moved" // to another tenant's account, for good
)

// Policy is what the deployment's settings say of accounts and repositories.
type Policy struct {
	Accounts       map[int64]bool // account ids that bind by themselves; nil: every account ("*")
	ExplicitEnroll bool           // repositories are enrolled by call only
	Hook           string         // "integration/424242": our App's own hook
	App            int64          // our App's id
	Host           string         // whose API we can ask; commands of other hosts are ignored. Empty: every one
	ShortCommands  bool           // "/review" is a command like "/fenceline review"
}

// Binds reports whether an account binds by itself.
func (p Policy) Binds(account int64) bool { return p.Accounts == nil || p.Accounts[account] }

// Decide is Decide for our App's own deliveries; any other hook's are acknowledged, on record, since
// they come with no credential and no tenant.
func (p Policy) Decide(src Source, e Event) Decision {
	d, asks := p.asks(src, e)
	if !asks {
		d = Decide(e)
	}
	if d.Kind != Ignore && src.Hook != p.Hook {
		return Decision{Ignore, "hook_not_ours"}
	}
	return d
}

// Admit says whose a pull request's event is: an ignoring decision with its reason, or the decision as
// it was. enroll asks for the account to be bound and the repository enrolled first.
func Admit(d Decision, e Event, known Integration, p Policy) (admitted Decision, enroll bool) {
	switch {
	case !d.Activity():
		return d, false
	case e.InstallationID == 0:
		return Decision{Ignore, "no_installation"}, false
	}
	if refused := refuse(e.Repository.Owner.ID, known, p); refused.Kind != "" {
		return refused, false
	}
	switch {
	case known.Project != (ProjectID{}) && known.ProjectTenant != known.Tenant:
		return Decision{Ignore, "project_of_another_tenant"}, false
	case known.Project == (ProjectID{}) && p.ExplicitEnroll:
		return Decision{Ignore, "project_not_enrolled"}, false
	case known.ProjectState == ProjectRemoved && (p.ExplicitEnroll || !e.PullRequest.UpdatedAt.After(known.RemovedAt)):
		return Decision{Ignore, "project_removed"}, false
	}
	// A removed project that was heard of later is there again, whether or not the event that says so came.
	return d, known.Tenant == (TenantID{}) || known.InstallationState == "" || known.Project == (ProjectID{}) ||
		known.ProjectState == ProjectRemoved || known.ProjectInstallation != e.InstallationID
}

// AdmitIntegration says whose an installation's event is, and whether it still says something new. Events
// come in any order: what is older than the state that is stored can't set it.
func AdmitIntegration(d Decision, e Event, known Integration, p Policy) Decision {
	if e.InstallationID == 0 {
		return Decision{Ignore, "no_installation"}
	}
	if refused := refuse(e.Installer.ID, known, p); refused.Kind != "" {
		return refused
	}
	if e.Name == "installation" && (e.Action == "suspend" || e.Action == "unsuspend") && e.InstalledAt.Before(known.InstallationChanged) {
		return Decision{Ignore, "installation_event_outdated"}
	}
	return d
}

// refuse is what both kinds of events are ignored for; account is the one that the payload names.
func refuse(account int64, known Integration, p Policy) Decision {
	switch {
	case known.InstalledBy != 0 && known.InstalledBy != account:
		return Decision{Ignore, "installation_mismatch"}
	case known.InstallationState == InstallationDeleted:
		return Decision{Ignore, "installation_deleted"}
	case known.Tenant == (TenantID{}) && !p.Binds(account):
		return Decision{Ignore, "account_not_bound"}
	}
	return Decision{}
}
