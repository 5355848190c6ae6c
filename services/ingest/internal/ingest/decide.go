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
	case "repository":
		// All that a sweep then finds out from GitHub itself: a payload may be older than what it says.
		switch e.Action {
		case "renamed", "transferred", "archived", "unarchived", "deleted":
			return Decision{IntegrationChange, "repository_" + e.Action}
		}
		return Decision{Ignore, "action_ignored"}
	case "organization", "installation_target":
		if e.Action == "renamed" {
			return Decision{IntegrationChange, "account_renamed"}
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
		switch {
		case !e.BaseChanged:
			return Decision{Ignore, "no_revision_change"}
		case e.PullRequest.Draft:
			return Decision{UpdateTarget, "draft"}
		}
		return Decision{TriggerReview, "base_changed"}
	case "converted_to_draft":
		return Decision{UpdateTarget, "draft"}
	case "closed":
		return Decision{UpdateTarget, "closed"}
	}
	return Decision{Ignore, "action_ignored"}
}
