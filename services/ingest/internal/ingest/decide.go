package ingest

// Kind is what a delivery leads to.
type Kind string

// The kinds of decisions on a delivery.
const (
	TriggerReview     Kind = "trigger_review"
	UpdateTarget      Kind = "update_target"
	IntegrationChange Kind = "integration_change"
	Ignore            Kind = "ignore"
)

// Decision is what a delivery leads to, and why, as a stable word.
type Decision struct {
	Kind   Kind
	Reason string
}

// Foreign reports whether a delivery was ignored because it names what belongs to somebody else.
func (d Decision) Foreign() bool {
	return d.Reason == "installation_mismatch" || d.Reason == "project_of_another_tenant"
}

// Activity reports whether the decision tells the scheduler that a pull request may have changed.
func (d Decision) Activity() bool { return d.Kind == TriggerReview || d.Kind == UpdateTarget }

// Decide says what an event means by itself, before anybody asks whose it is. Events and actions that
// GitHub adds later are ignored, on record.
func Decide(e Event) Decision {
	switch e.Name {
	case "pull_request":
		return decidePullRequest(e)
	case "installation":
		switch e.Action {
		case "created", "deleted", "suspend", "unsuspend", "new_permissions_accepted":
			return Decision{IntegrationChange, "installation_" + e.Action}
		}
		return Decision{Ignore, "action_ignored"}
	case "installation_repositories":
		switch e.Action {
		case "added", "removed":
			return Decision{IntegrationChange, "repositories_" + e.Action}
		}
		return Decision{Ignore, "action_ignored"}
	case "ping":
		return Decision{Ignore, "ping"}
	}
	return Decision{Ignore, "event_ignored"}
}

// decidePullRequest: what can change or end the comparison is told to the scheduler; the read decides.
func decidePullRequest(e Event) Decision {
	switch e.Action {
	case "opened", "synchronize", "reopened", "ready_for_review":
		if e.PullRequest.Draft {
			return Decision{UpdateTarget, "draft"}
		}
		return Decision{TriggerReview, "revision"}
	case "edited":
		if e.BaseChanged {
			return Decision{TriggerReview, "base_changed"}
		}
		return Decision{Ignore, "no_revision_change"}
	case "converted_to_draft":
		return Decision{UpdateTarget, "draft"}
	case "closed":
		return Decision{UpdateTarget, "closed"}
	}
	return Decision{Ignore, "action_ignored"}
}

// Integration is what is stored of whom an event belongs to. Zero values mean: not known.
type Integration struct {
	Tenant            TenantID
	AccountID         int64
	InstallationState InstallationState
	Project           ProjectID
	ProjectTenant     TenantID
	ProjectState      ProjectState
}

// InstallationState is where an installation stands.
type InstallationState string

// The states of an installation.
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
)

// Policy is what the deployment's settings say of accounts and repositories.
type Policy struct {
	Accounts       map[int64]bool // account ids that bind by themselves; nil: every account ("*")
	ExplicitEnroll bool           // repositories are enrolled by call only
	Hook           string         // "integration/424242": our App's own hook
}

// Binds reports whether an account binds by itself.
func (p Policy) Binds(account int64) bool { return p.Accounts == nil || p.Accounts[account] }

// Decide is Decide for our App's own deliveries; any other hook's are acknowledged, on record, since
// they come with no credential and no tenant.
func (p Policy) Decide(src Source, e Event) Decision {
	d := Decide(e)
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
	case known.InstallationState == InstallationDeleted:
		return Decision{Ignore, "installation_deleted"}, false
	case known.AccountID != 0 && known.AccountID != e.Repository.Owner.ID:
		return Decision{Ignore, "installation_mismatch"}, false
	case known.Tenant == (TenantID{}) && !p.Binds(e.Repository.Owner.ID):
		return Decision{Ignore, "account_not_bound"}, false
	case known.Project == (ProjectID{}) && p.ExplicitEnroll:
		return Decision{Ignore, "project_not_enrolled"}, false
	case known.ProjectState == ProjectRemoved:
		return Decision{Ignore, "project_removed"}, false
	case known.Project != (ProjectID{}) && known.ProjectTenant != known.Tenant:
		return Decision{Ignore, "project_of_another_tenant"}, false
	}
	return d, known.Tenant == (TenantID{}) || known.Project == (ProjectID{}) || known.InstallationState == ""
}
