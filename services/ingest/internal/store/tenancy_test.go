package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// step is something that happened before, or the delivery under test.
type step func(t *testing.T, s *Store, id string) ingest.Answer

func delivered(e ingest.Event) step {
	return func(t *testing.T, s *Store, id string) ingest.Answer { t.Helper(); return deliver(t, s, id, e) }
}

func bound(a ingest.Account, installation int64) step {
	return func(t *testing.T, s *Store, _ string) ingest.Answer {
		t.Helper()
		if _, err := s.Bind(t.Context(), ingest.Installation{Host: host, ID: installation, Account: a}); err != nil {
			t.Fatal(err)
		}
		return ingest.Answer{}
	}
}

// TestWhoseItIs is the table of enrolment: settings, what happened before, a pull request's delivery.
func TestWhoseItIs(t *testing.T) {
	t.Parallel()
	later := pull(acmeInstalled, rocket)
	later.PullRequest.UpdatedAt = time.Now().Add(time.Hour)
	moved := ingest.Repository{ID: rocket.ID, Name: "zenith/rocket", Owner: zenith}
	const again = 71 // acme's next installation
	for name, tc := range map[string]struct {
		policy ingest.Policy
		before []step
		event  ingest.Event
		want   string
		reason string
		rows   rows
	}{
		"everybody binds": {everybody, nil, pull(acmeInstalled, rocket), "trigger_review", "revision", rows{1, 1, 1, 1, 1, 0}},
		"allowed account": {allow(acme), nil, pull(acmeInstalled, rocket), "trigger_review", "revision", rows{1, 1, 1, 1, 1, 0}},
		"account that isn't allowed": {
			allow(zenith), nil, pull(acmeInstalled, rocket), "ignore", "account_not_bound", rows{1, 0, 0, 0, 0, 0},
		},
		"nobody is allowed":         {allow(), nil, pull(acmeInstalled, rocket), "ignore", "account_not_bound", rows{1, 0, 0, 0, 0, 0}},
		"bound by an operator":      {allow(), []step{bound(acme, acmeInstalled)}, pull(acmeInstalled, rocket), "trigger_review", "revision", rows{1, 1, 1, 1, 1, 0}},
		"bound, another repository": {allow(), []step{bound(acme, acmeInstalled), delivered(pull(acmeInstalled, rocket))}, pull(acmeInstalled, sled), "trigger_review", "revision", rows{2, 2, 1, 1, 2, 0}},
		"bound, installed again": {
			allow(), []step{bound(acme, acmeInstalled)}, pull(again, rocket), "trigger_review", "revision", rows{1, 1, 1, 2, 1, 0},
		},
		"enrolled, then installed again": {
			allow(),
			[]step{bound(acme, acmeInstalled), delivered(pull(acmeInstalled, rocket)), delivered(installation("deleted", acmeInstalled, acme, 1))},
			pull(again, rocket), "trigger_review", "revision",
			rows{3, 3, 1, 2, 1, 0},
		},
		"explicit": {explicit(everybody), nil, pull(acmeInstalled, rocket), "ignore", "project_not_enrolled", rows{1, 0, 0, 0, 0, 0}},
		"explicit, bound": {
			explicit(everybody), []step{bound(acme, acmeInstalled)}, pull(acmeInstalled, rocket), "ignore", "project_not_enrolled", rows{1, 0, 1, 1, 0, 0},
		},
		"explicit, enrolled": {
			explicit(everybody),
			[]step{bound(acme, acmeInstalled), enrolledBefore(acme, acmeInstalled, rocket)},
			pull(acmeInstalled, rocket),
			"trigger_review", "revision",
			rows{1, 1, 1, 1, 1, 0},
		},
		"explicit, installed with repositories": {
			explicit(everybody),
			[]step{delivered(installation("created", acmeInstalled, acme, 1, rocket))},
			pull(acmeInstalled, rocket),
			"ignore", "project_not_enrolled",
			rows{2, 1, 1, 1, 0, 0},
		},
		"no installation": {everybody, nil, pull(0, rocket), "ignore", "no_installation", rows{1, 0, 0, 0, 0, 0}},
		"installation of another account": {
			everybody, []step{delivered(pull(acmeInstalled, rocket))}, pull(acmeInstalled, kite), "ignore", "installation_mismatch", rows{2, 1, 1, 1, 1, 0},
		},
		"installation of another account, both bound": {
			everybody,
			[]step{delivered(pull(acmeInstalled, rocket)), delivered(pull(zenithInstalled, kite))},
			pull(zenithInstalled, rocket),
			"ignore", "installation_mismatch",
			rows{3, 2, 2, 2, 2, 0},
		},
		"repository of another tenant": {
			everybody,
			[]step{delivered(pull(acmeInstalled, rocket)), delivered(pull(zenithInstalled, kite))},
			pull(zenithInstalled, moved),
			"ignore", "project_of_another_tenant",
			rows{3, 2, 2, 2, 2, 0},
		},
		"repository of another tenant, new account": {
			everybody,
			[]step{delivered(pull(acmeInstalled, rocket))},
			pull(zenithInstalled, moved),
			"ignore", "project_of_another_tenant",
			rows{2, 1, 1, 1, 1, 0},
		},
		"suspended": {
			everybody,
			[]step{delivered(pull(acmeInstalled, rocket)), delivered(installation("suspend", acmeInstalled, acme, 1))},
			pull(acmeInstalled, rocket), "trigger_review", "revision",
			rows{3, 3, 1, 1, 1, 0},
		},
		"deleted": {
			everybody,
			[]step{delivered(pull(acmeInstalled, rocket)), delivered(installation("deleted", acmeInstalled, acme, 1))},
			pull(acmeInstalled, rocket), "ignore", "installation_deleted",
			rows{3, 2, 1, 1, 1, 0},
		},
		"deleted, new repository": {
			everybody,
			[]step{delivered(installation("deleted", acmeInstalled, acme, 1, sled))},
			pull(acmeInstalled, sled),
			"ignore", "installation_deleted",
			rows{2, 1, 1, 1, 0, 0},
		},
		"removed": {
			everybody,
			[]step{delivered(pull(acmeInstalled, rocket)), delivered(repositories("removed", acmeInstalled, acme, 1, rocket))},
			pull(acmeInstalled, rocket), "ignore", "project_removed",
			rows{3, 2, 1, 1, 1, 0},
		},
		"removed, then heard of": { // the event that added it again was lost
			everybody,
			[]step{delivered(pull(acmeInstalled, rocket)), delivered(repositories("removed", acmeInstalled, acme, 1, rocket))},
			later, "trigger_review", "revision",
			rows{3, 4, 1, 1, 1, 0},
		},
		"explicit, removed, then heard of": {
			explicit(everybody), []step{
				bound(acme, acmeInstalled), enrolledBefore(acme, acmeInstalled, rocket), delivered(repositories("removed", acmeInstalled, acme, 1, rocket)),
			}, later, "ignore", "project_removed", rows{2, 1, 1, 1, 1, 0},
		},
		"removed, then added": {
			everybody, []step{
				delivered(pull(acmeInstalled, rocket)), delivered(repositories("removed", acmeInstalled, acme, 1, rocket)),
				delivered(repositories("added", acmeInstalled, acme, 2, rocket)),
			}, pull(acmeInstalled, rocket), "trigger_review", "revision", rows{4, 4, 1, 1, 1, 0},
		},
		"added, then an older removal": {
			everybody, []step{
				delivered(pull(acmeInstalled, rocket)), delivered(repositories("added", acmeInstalled, acme, 2, rocket)),
				delivered(repositories("removed", acmeInstalled, acme, 1, rocket)),
			}, pull(acmeInstalled, rocket), "trigger_review", "revision", rows{4, 3, 1, 1, 1, 0},
		},
		"removed, then an older addition": {
			everybody, []step{
				delivered(pull(acmeInstalled, rocket)), delivered(repositories("removed", acmeInstalled, acme, 2, rocket)),
				delivered(repositories("added", acmeInstalled, acme, 1, rocket)),
			}, pull(acmeInstalled, rocket), "ignore", "project_removed", rows{4, 2, 1, 1, 1, 0},
		},
		"removed from an installation that is gone": {
			everybody, []step{
				delivered(pull(acmeInstalled, rocket)), delivered(installation("deleted", acmeInstalled, acme, 1)), delivered(pull(again, rocket)),
				delivered(repositories("removed", acmeInstalled, acme, 3, rocket)),
			}, pull(again, rocket), "trigger_review", "revision", rows{5, 4, 1, 2, 1, 0},
		},
		"an ignored action needs no account": {allow(), nil, labeled(), "ignore", "action_ignored", rows{1, 0, 0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, d := setup(t, tc.policy)
			for i, before := range tc.before {
				before(t, s, fmt.Sprintf("before-%d", i))
			}
			a := deliver(t, over(d.Open(t, "ingest"), tc.policy), "under test", tc.event)
			expect(t, name, a, ingest.Kind(tc.want), tc.reason)
			expectRows(t, d, tc.rows)
			again := deliver(t, s, "under test", tc.event)
			expect(t, "again", again, ingest.Kind(tc.want), tc.reason)
			expectRows(t, d, tc.rows)
		})
	}
}

func labeled() ingest.Event { e := pull(acmeInstalled, rocket); e.Action = "labeled"; return e }

func enrolledBefore(a ingest.Account, installation int64, r ingest.Repository) step {
	return func(t *testing.T, s *Store, _ string) ingest.Answer {
		t.Helper()
		found, err := s.Bind(t.Context(), ingest.Installation{Host: host, ID: installation, Account: a})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Enrol(t.Context(), ingest.Project{Tenant: found.Tenant, Host: host, RepositoryID: r.ID, Repository: r.Name, InstallationID: installation}); err != nil {
			t.Fatal(err)
		}
		return ingest.Answer{}
	}
}

// told are the changes that the scheduler is told of, with how many projects each names.
func told(t *testing.T, d *pgtest.DB) []string {
	t.Helper()
	payloads, err := pgxAll[[]byte](t, d, "SELECT payload FROM ingest.outbox WHERE destination LIKE '%/RecordIntegration' ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range payloads {
		var req schedulerv1.RecordIntegrationRequest
		if err := proto.Unmarshal(p, &req); err != nil {
			t.Fatal(err)
		}
		change := strings.TrimPrefix(req.GetChange().String(), "INTEGRATION_CHANGE_")
		all = append(all, fmt.Sprintf("%s %d: %d", change, req.GetInstallationId(), len(req.GetProjectIds())))
	}
	return all
}

// TestInstallationEvents: what is stored and told after a history, in the order it arrived.
func TestInstallationEvents(t *testing.T) {
	t.Parallel()
	created := installation("created", acmeInstalled, acme, 0, rocket, sled)
	suspend, unsuspend := installation("suspend", acmeInstalled, acme, 1), installation("unsuspend", acmeInstalled, acme, 2)
	deleted := installation("deleted", acmeInstalled, acme, 3, rocket, sled)
	accepted := installation("new_permissions_accepted", acmeInstalled, acme, 2, rocket)
	for name, tc := range map[string]struct {
		policy  ingest.Policy
		history []ingest.Event
		last    string // decision and reason of the last
		state   string
		rocket  string
		told    []string
	}{
		"created":           {everybody, []ingest.Event{created}, "integration_change installation_created", "active", "enrolled under 70", []string{"CREATED 70: 0"}},
		"created, explicit": {explicit(everybody), []ingest.Event{created}, "integration_change installation_created", "active", "none", []string{"CREATED 70: 0"}},
		"not allowed":       {allow(), []ingest.Event{created}, "ignore account_not_bound", "none", "none", nil},
		"not allowed, any":  {allow(zenith), []ingest.Event{suspend, deleted}, "ignore account_not_bound", "none", "none", nil},
		"suspended":         {everybody, []ingest.Event{created, suspend}, "integration_change installation_suspend", "suspended", "enrolled under 70", []string{"CREATED 70: 0", "SUSPENDED 70: 0"}},
		"suspended unheard": {everybody, []ingest.Event{suspend}, "integration_change installation_suspend", "suspended", "none", []string{"SUSPENDED 70: 0"}},
		"back again":        {everybody, []ingest.Event{created, suspend, unsuspend}, "integration_change installation_unsuspend", "active", "enrolled under 70", []string{"CREATED 70: 0", "SUSPENDED 70: 0", "UNSUSPENDED 70: 0"}},
		"the other way round": {
			everybody,
			[]ingest.Event{created, unsuspend, suspend},
			"ignore installation_event_outdated", "active", "enrolled under 70",
			[]string{"CREATED 70: 0", "UNSUSPENDED 70: 0"},
		},
		"created last": {
			everybody, []ingest.Event{suspend, created}, "integration_change installation_created", "suspended", "enrolled under 70", []string{"SUSPENDED 70: 0"},
		},
		"of one second": { // GitHub's times are whole seconds: then as they arrive
			everybody,
			[]ingest.Event{suspend, installation("unsuspend", acmeInstalled, acme, 1)},
			"integration_change installation_unsuspend", "active", "none",
			[]string{"SUSPENDED 70: 0", "UNSUSPENDED 70: 0"},
		},
		"deleted": {
			everybody,
			[]ingest.Event{created, deleted},
			"integration_change installation_deleted", "deleted", "enrolled under 70",
			[]string{"CREATED 70: 0", "DELETED 70: 0"},
		},
		"deleted by an event that looks old": {
			everybody,
			[]ingest.Event{created, suspend, installation("deleted", acmeInstalled, acme, 0)},
			"integration_change installation_deleted", "deleted",
			"enrolled under 70",
			[]string{"CREATED 70: 0", "SUSPENDED 70: 0", "DELETED 70: 0"},
		},
		"deleted first":   {everybody, []ingest.Event{deleted, created}, "ignore installation_deleted", "deleted", "none", []string{"DELETED 70: 0"}},
		"deleted is last": {everybody, []ingest.Event{deleted, installation("unsuspend", acmeInstalled, acme, 9)}, "ignore installation_deleted", "deleted", "none", []string{"DELETED 70: 0"}},
		"added after all": {everybody, []ingest.Event{deleted, repositories("added", acmeInstalled, acme, 9, rocket)}, "ignore installation_deleted", "deleted", "none", []string{"DELETED 70: 0"}},
		"permissions":     {everybody, []ingest.Event{created, accepted}, "integration_change installation_new_permissions_accepted", "active", "enrolled under 70", []string{"CREATED 70: 0"}},
		"of somebody else": {
			everybody,
			[]ingest.Event{created, installation("suspend", acmeInstalled, zenith, 5)},
			"ignore installation_mismatch", "active",
			"enrolled under 70",
			[]string{"CREATED 70: 0"},
		},
		"repositories added": {
			everybody,
			[]ingest.Event{repositories("added", acmeInstalled, acme, 0, rocket, sled)},
			"integration_change repositories_added", "active", "enrolled under 70",
			[]string{"REPOSITORIES_ADDED 70: 2"},
		},
		"repositories added, explicit": {
			explicit(everybody), []ingest.Event{repositories("added", acmeInstalled, acme, 0, rocket, sled)}, "integration_change repositories_added", "active", "none", nil,
		},
		"repositories removed": {
			everybody,
			[]ingest.Event{created, repositories("removed", acmeInstalled, acme, 1, rocket, kite)},
			"integration_change repositories_removed", "active",
			"removed under 70",
			[]string{"CREATED 70: 0", "REPOSITORIES_REMOVED 70: 1"},
		},
		"unknown repositories removed": {
			everybody, []ingest.Event{repositories("removed", acmeInstalled, acme, 1, rocket)}, "integration_change repositories_removed", "active", "none", nil,
		},
		"removed and added again": {
			everybody,
			[]ingest.Event{created, repositories("removed", acmeInstalled, acme, 1, rocket), repositories("added", acmeInstalled, acme, 2, rocket)},
			"integration_change repositories_added", "active", "enrolled under 70",
			[]string{"CREATED 70: 0", "REPOSITORIES_REMOVED 70: 1", "REPOSITORIES_ADDED 70: 1"},
		},
		"permissions don't bring back what was removed": {
			everybody,
			[]ingest.Event{created, repositories("removed", acmeInstalled, acme, 1, rocket), accepted},
			"integration_change installation_new_permissions_accepted", "active", "removed under 70",
			[]string{"CREATED 70: 0", "REPOSITORIES_REMOVED 70: 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, d := setup(t, tc.policy)
			var last ingest.Answer
			for i, e := range tc.history {
				last = deliver(t, s, fmt.Sprintf("event-%d", i), e)
			}
			if got := string(last.Decision.Kind) + " " + last.Decision.Reason; got != tc.last {
				t.Errorf("the last was decided %q, want %q", got, tc.last)
			}
			if got := installationState(t, d, acmeInstalled); got != tc.state {
				t.Errorf("the installation is %s, want %s", got, tc.state)
			}
			if got := projectState(t, d, rocket); got != tc.rocket {
				t.Errorf("rocket is %s, want %s", got, tc.rocket)
			}
			if diff := cmp.Diff(tc.told, told(t, d)); diff != "" {
				t.Errorf("the scheduler is told (-want +got):\n%s", diff)
			}
			if n := pgtest.Query[int64](t, d, "SELECT count(*) FROM ingest.deliveries"); n != int64(len(tc.history)) {
				t.Errorf("%d receipts of %d deliveries", n, len(tc.history))
			}
		})
	}
}

// TestManyRepositoriesAtOnce: an organisation with thousands installs the App, and takes them away again.
func TestManyRepositoriesAtOnce(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	const many = 7_500
	repos := make([]ingest.Repository, many, many+1)
	for i := range repos {
		repos[i] = ingest.Repository{ID: int64(10_000 + i), Name: name("acme/r", i)}
	}
	repos = append(repos, repos[0]) // the same one twice must not fail
	deliver(t, s, "in", repositories("added", acmeInstalled, acme, 1, repos...))
	expectRows(t, d, rows{Receipts: 1, Messages: 8, Accounts: 1, Installations: 1, Projects: many})
	deliver(t, s, "out", repositories("removed", acmeInstalled, acme, 2, repos...))
	expectRows(t, d, rows{Receipts: 2, Messages: 16, Accounts: 1, Installations: 1, Projects: many})
	if n := pgtest.Query[int64](t, d, "SELECT count(*) FROM ingest.projects WHERE state = 'removed'"); n != many {
		t.Errorf("%d projects were removed, want %d", n, many)
	}
	want := []string{"REPOSITORIES_ADDED 70: 500", "REPOSITORIES_REMOVED 70: 500"}
	for range 7 {
		want = append(want, "REPOSITORIES_ADDED 70: 1000", "REPOSITORIES_REMOVED 70: 1000")
	}
	if diff := cmp.Diff(sorted(want), sorted(told(t, d))); diff != "" {
		t.Errorf("the scheduler is told (-want +got):\n%s", diff)
	}
}
