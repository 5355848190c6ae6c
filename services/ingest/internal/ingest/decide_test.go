package ingest

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fenceline-dev/fenceline/pkg/deptest"
)

func TestDomainIsPure(t *testing.T) {
	t.Parallel()
	deptest.Check(t, ".", deptest.Domain)
}

func TestDecide(t *testing.T) {
	t.Parallel()
	pull := func(action string, draft, base bool) Event {
		return Event{Name: "pull_request", Action: action, PullRequest: PullRequest{Draft: draft}, BaseChanged: base}
	}
	for _, tc := range []struct {
		e    Event
		want Decision
	}{
		{pull("opened", false, false), Decision{TriggerReview, "revision"}},
		{pull("opened", true, false), Decision{UpdateTarget, "draft"}},
		{pull("synchronize", false, false), Decision{TriggerReview, "revision"}},
		{pull("synchronize", true, false), Decision{UpdateTarget, "draft"}},
		{pull("reopened", false, false), Decision{TriggerReview, "revision"}},
		{pull("reopened", true, false), Decision{UpdateTarget, "draft"}},
		{pull("ready_for_review", false, false), Decision{TriggerReview, "revision"}},
		{pull("edited", false, false), Decision{Ignore, "no_revision_change"}},
		{pull("edited", true, false), Decision{Ignore, "no_revision_change"}},
		{pull("edited", false, true), Decision{TriggerReview, "base_changed"}},
		{pull("edited", true, true), Decision{UpdateTarget, "draft"}},
		{pull("converted_to_draft", true, false), Decision{UpdateTarget, "draft"}},
		{pull("closed", false, false), Decision{UpdateTarget, "closed"}},
		{pull("closed", true, false), Decision{UpdateTarget, "closed"}},
		{Event{Name: "installation", Action: "created"}, Decision{IntegrationChange, "installation_created"}},
		{Event{Name: "installation", Action: "deleted"}, Decision{IntegrationChange, "installation_deleted"}},
		{Event{Name: "installation", Action: "suspend"}, Decision{IntegrationChange, "installation_suspend"}},
		{Event{Name: "installation", Action: "unsuspend"}, Decision{IntegrationChange, "installation_unsuspend"}},
		{Event{Name: "installation", Action: "new_permissions_accepted"}, Decision{IntegrationChange, "installation_new_permissions_accepted"}},
		{Event{Name: "installation", Action: "beamed_up"}, Decision{Ignore, "action_ignored"}},
		{Event{Name: "installation_repositories", Action: "added"}, Decision{IntegrationChange, "repositories_added"}},
		{Event{Name: "installation_repositories", Action: "removed"}, Decision{IntegrationChange, "repositories_removed"}},
		{Event{Name: "installation_repositories", Action: "created"}, Decision{Ignore, "action_ignored"}},
		{Event{Name: "ping"}, Decision{Ignore, "ping"}},
		{Event{Name: "push"}, Decision{Ignore, "event_ignored"}},
		{Event{Name: "issue_comment", Action: "created"}, Decision{Ignore, "event_ignored"}},
		{Event{Name: "event_of_next_year", Action: "opened"}, Decision{Ignore, "event_ignored"}},
		{Event{}, Decision{Ignore, "event_ignored"}},
	} {
		if got := Decide(tc.e); got != tc.want {
			t.Errorf("%s.%s, draft %v, base %v: %v, want %v", tc.e.Name, tc.e.Action, tc.e.PullRequest.Draft, tc.e.BaseChanged, got, tc.want)
		}
	}
	for _, action := range []string{
		"labeled", "unlabeled", "assigned", "unassigned", "review_requested", "review_request_removed", "milestoned", "demilestoned",
		"locked", "unlocked", "auto_merge_enabled", "auto_merge_disabled", "enqueued", "dequeued", "", "Opened", "beamed_up",
	} {
		if got, want := Decide(pull(action, false, true)), (Decision{Ignore, "action_ignored"}); got != want {
			t.Errorf("pull_request.%s: %v, want %v", action, got, want)
		}
	}
}

func TestOtherHooksAreAcknowledged(t *testing.T) {
	t.Parallel()
	p := Policy{Hook: "integration/42"}
	opened := Event{Name: "pull_request", Action: "opened"}
	for hook, want := range map[string]Decision{
		"integration/42": {TriggerReview, "revision"}, "integration/43": {Ignore, "hook_not_ours"}, "repository/42": {Ignore, "hook_not_ours"},
	} {
		if got := p.Decide(Source{Hook: hook}, opened); got != want {
			t.Errorf("%s: %v, want %v", hook, got, want)
		}
	}
	if got := p.Decide(Source{Hook: "repository/7"}, Event{Name: "ping"}); got.Reason != "ping" {
		t.Errorf("a ping of another hook: %v", got)
	}
}

// TestChangeOf: which lists of a payload count.
func TestChangeOf(t *testing.T) {
	t.Parallel()
	repos := []Repository{{ID: 1}}
	for action, want := range map[string]Change{
		"installation.created":                  {Kind: ChangeCreated, Adds: repos},
		"installation.deleted":                  {Kind: ChangeDeleted, State: InstallationDeleted},
		"installation.suspend":                  {Kind: ChangeSuspended, State: InstallationSuspended},
		"installation.unsuspend":                {Kind: ChangeUnsuspended, State: InstallationActive},
		"installation.new_permissions_accepted": {},
		"installation_repositories.added":       {Kind: ChangeAdded, Adds: repos},
		"installation_repositories.removed":     {Kind: ChangeRemoved, Removes: repos},
	} {
		var e Event
		for i := range action {
			if action[i] == '.' {
				e = Event{Name: action[:i], Action: action[i+1:], Added: repos, Removed: repos}
			}
		}
		for _, explicit := range []bool{false, true} {
			got := ChangeOf(e, Integration{}, Policy{ExplicitEnroll: explicit})
			adds := len(want.Adds)
			if explicit {
				adds = 0
			}
			if got.Kind != want.Kind || got.State != want.State || len(got.Adds) != adds || len(got.Removes) != len(want.Removes) {
				t.Errorf("%s, explicit %v: %+v, want %+v", action, explicit, got, want)
			}
		}
	}
}

func integrations() *rapid.Generator[Integration] {
	return rapid.Custom(func(t *rapid.T) Integration {
		tenant := rapid.SampledFrom([]TenantID{{}, {1}, {2}})
		return Integration{
			Tenant: tenant.Draw(t, "tenant"), InstallationTenant: tenant.Draw(t, "installation tenant"),
			InstallationState:   rapid.SampledFrom([]InstallationState{"", InstallationActive, InstallationSuspended, InstallationDeleted}).Draw(t, "state"),
			InstalledBy:         rapid.Int64Range(0, 2).Draw(t, "by"),
			InstallationChanged: time.Unix(rapid.Int64Range(0, 3).Draw(t, "changed"), 0),
			Project:             rapid.SampledFrom([]ProjectID{{}, {1}}).Draw(t, "project"), ProjectTenant: tenant.Draw(t, "project tenant"),
			ProjectState:        rapid.SampledFrom([]ProjectState{"", ProjectEnrolled, ProjectRemoved}).Draw(t, "project state"),
			ProjectInstallation: rapid.Int64Range(0, 2).Draw(t, "project installation"),
			RemovedAt:           time.Unix(rapid.Int64Range(0, 3).Draw(t, "removed"), 0),
		}
	})
}

// TestAdmittedIsOnesOwn: whatever is stored and asked, what is admitted belongs to one tenant, under an
// installation of its own account that was not deleted; and admitting never makes more of a decision.
func TestAdmittedIsOnesOwn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		known := integrations().Draw(t, "known")
		p := Policy{ExplicitEnroll: rapid.Bool().Draw(t, "explicit")}
		if rapid.Bool().Draw(t, "allow-list") {
			p.Accounts = map[int64]bool{rapid.Int64Range(1, 2).Draw(t, "allowed"): true}
		}
		e := Event{
			Name: "pull_request", Action: rapid.SampledFrom([]string{"opened", "labeled", "closed"}).Draw(t, "action"),
			InstallationID: rapid.Int64Range(0, 2).Draw(t, "installation"),
			Repository:     Repository{ID: 1, Owner: Account{ID: rapid.Int64Range(1, 2).Draw(t, "owner")}},
			PullRequest:    PullRequest{UpdatedAt: time.Unix(rapid.Int64Range(0, 3).Draw(t, "updated"), 0)},
		}
		d := Decide(e)
		got, enroll := Admit(d, e, known, p)
		if got != d && got.Kind != Ignore {
			t.Fatalf("%v became %v", d, got)
		}
		if !got.Activity() {
			if enroll {
				t.Fatalf("%v asks for an enrolment", got)
			}
			return
		}
		switch {
		case known.InstallationState == InstallationDeleted, e.InstallationID == 0:
			t.Fatal("admitted without an installation")
		case known.InstalledBy != 0 && known.InstalledBy != e.Repository.Owner.ID:
			t.Fatal("admitted under another account's installation")
		case known.Project != ProjectID{} && known.ProjectTenant != known.Tenant:
			t.Fatal("admitted for another tenant's project")
		case known.Tenant == TenantID{} && !p.Binds(e.Repository.Owner.ID):
			t.Fatal("admitted for an account that isn't bound")
		case p.ExplicitEnroll && (known.Project == ProjectID{} || known.ProjectState == ProjectRemoved):
			t.Fatal("enrolled although it is explicit")
		case !enroll && (known.Tenant == TenantID{} || known.Project == ProjectID{} || known.ProjectState == ProjectRemoved):
			t.Fatal("admitted for nobody")
		}
	})
}

func TestAdmitIntegration(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		known := integrations().Draw(t, "known")
		e := Event{
			Name: "installation", Action: rapid.SampledFrom([]string{"created", "deleted", "suspend", "unsuspend", "new_permissions_accepted"}).Draw(t, "action"),
			InstallationID: 1, Installer: Account{ID: rapid.Int64Range(1, 2).Draw(t, "by")}, InstalledAt: time.Unix(rapid.Int64Range(0, 3).Draw(t, "at"), 0),
		}
		d := Decide(e)
		got := AdmitIntegration(d, e, known, Policy{})
		older := e.InstalledAt.Before(known.InstallationChanged)
		switch {
		case got != d && got.Kind != Ignore:
			t.Fatalf("%v became %v", d, got)
		case got == d && known.InstalledBy != 0 && known.InstalledBy != e.Installer.ID:
			t.Fatal("admitted for another account's installation")
		case got == d && known.InstallationState == InstallationDeleted:
			t.Fatal("admitted after the deletion")
		case got == d && older && (e.Action == "suspend" || e.Action == "unsuspend"):
			t.Fatal("an older event sets the state")
		case got.Kind == Ignore && e.Action == "deleted" && got.Reason == "installation_event_outdated":
			t.Fatal("a deletion is never too old")
		}
	})
}

func TestNewReceipt(t *testing.T) {
	t.Parallel()
	e := Event{Name: "pull_request", PullRequest: PullRequest{State: "open", Draft: true}}
	if got := NewReceipt(ReceiptID{1}, Source{}, [32]byte{}, 1, e, Decision{}); got.Hint.State != "draft" {
		t.Errorf("an open draft is kept as %q", got.Hint.State)
	}
	e.PullRequest.State = "closed"
	if got := NewReceipt(ReceiptID{1}, Source{}, [32]byte{}, 1, e, Decision{}); got.Hint.State != "closed" {
		t.Errorf("a closed draft is kept as %q", got.Hint.State)
	}
	r := Receipt{Source: Source{Host: "github.com", Hook: "integration/42", DeliveryID: "guid"}, RepositoryID: 7, Number: 5}
	if a, b := r.ActivityID(0), r.ActivityID(1); a != "delivery:github.com/integration/42/guid:0:7#5" || a == b {
		t.Errorf("activities %q and %q", a, b)
	}
	if got := (TenantID{0x01, 0x9a, 0xbc, 15: 0xff}).String(); got != "019abc00-0000-0000-0000-0000000000ff" {
		t.Errorf("id %s", got)
	}
}
