package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

func TestBind(t *testing.T) {
	t.Parallel()
	s, d := setup(t, allow())
	mine, yours := ingest.TenantID(uuid.New()), ingest.TenantID(uuid.New())
	bind := func(tenant ingest.TenantID, a ingest.Account, installation int64) (ingest.Installation, error) {
		return s.Bind(t.Context(), ingest.Installation{Tenant: tenant, Host: host, ID: installation, Account: a})
	}
	first, err := bind(mine, acme, acmeInstalled)
	want := ingest.Installation{Tenant: mine, Host: host, ID: acmeInstalled, Account: acme, State: "active"}
	if diff := cmp.Diff(want, first, cmpopts.IgnoreFields(want, "CreatedAt")); err != nil || diff != "" {
		t.Fatalf("bind: %v (-want +got):\n%s", err, diff)
	}
	for _, tenant := range []ingest.TenantID{mine, {}} { // again, and without naming the tenant
		if got, err := bind(tenant, acme, acmeInstalled); err != nil || got != first {
			t.Errorf("bind again: %+v, %v; want %+v", got, err, first)
		}
	}
	if got, err := bind(mine, ingest.Account{ID: acme.ID, Login: "acme-renamed"}, acmeInstalled); err != nil || got.Account.Login != "acme-renamed" {
		t.Errorf("a renamed account: %+v, %v", got, err)
	}
	if got, err := bind(mine, acme, 71); err != nil || got.ID != 71 || got.Tenant != mine {
		t.Errorf("another installation: %+v, %v", got, err)
	}
	if _, err := bind(yours, acme, acmeInstalled); !errors.Is(err, ingest.ErrAccountBound) {
		t.Errorf("another tenant: %v, want %v", err, ingest.ErrAccountBound)
	}
	for what, tenant := range map[string]ingest.TenantID{"another's": yours, "a new one's": {}, "the same tenant's": mine} {
		if _, err := bind(tenant, zenith, acmeInstalled); !errors.Is(err, ingest.ErrInstallationTaken) {
			t.Errorf("an installation for %s other account: %v, want %v", what, err, ingest.ErrInstallationTaken)
		}
	}
	expectRows(t, d, rows{Accounts: 1, Installations: 2})
	minted, err := bind(ingest.TenantID{}, zenith, zenithInstalled)
	if err != nil || minted.Tenant == (ingest.TenantID{}) || minted.Tenant == mine {
		t.Errorf("a minted tenant: %+v, %v", minted, err)
	}
}

func TestBindAtOnce(t *testing.T) {
	t.Parallel()
	s, d := setup(t, allow())
	var all sync.WaitGroup
	tenants := make([]ingest.TenantID, 16)
	for i := range tenants {
		all.Go(func() {
			got, err := s.Bind(t.Context(), ingest.Installation{Host: host, ID: acmeInstalled, Account: acme})
			if err != nil {
				t.Error(err)
			}
			tenants[i] = got.Tenant
		})
	}
	all.Wait()
	for _, tenant := range tenants {
		if tenant != tenants[0] {
			t.Fatalf("two tenants for one account: %v", tenants)
		}
	}
	expectRows(t, d, rows{Accounts: 1, Installations: 1})
}

var usual = []ingest.Surface{ingest.SurfaceSummary, ingest.SurfaceReview, ingest.SurfaceCheckRun}

func TestEnrol(t *testing.T) {
	t.Parallel()
	s, d := setup(t, explicit(allow()))
	bind := func(a ingest.Account, installation int64) ingest.TenantID {
		got, err := s.Bind(t.Context(), ingest.Installation{Host: host, ID: installation, Account: a})
		if err != nil {
			t.Fatal(err)
		}
		return got.Tenant
	}
	mine, yours := bind(acme, acmeInstalled), bind(zenith, zenithInstalled)
	enrol := func(tenant ingest.TenantID, installation int64, r ingest.Repository) (ingest.Project, error) {
		return s.Enrol(t.Context(), ingest.Project{Tenant: tenant, Host: host, InstallationID: installation, RepositoryID: r.ID, Repository: r.Name})
	}
	first, err := enrol(mine, acmeInstalled, rocket)
	want := ingest.Project{Tenant: mine, Host: host, RepositoryID: rocket.ID, Repository: rocket.Name, InstallationID: acmeInstalled, State: "enrolled", Surfaces: usual}
	if diff := cmp.Diff(want, first, cmpopts.IgnoreFields(want, "CreatedAt", "ID")); err != nil || diff != "" || first.ID == (ingest.ProjectID{}) {
		t.Fatalf("enrol: %v (-want +got):\n%s", err, diff)
	}
	if got, err := enrol(mine, acmeInstalled, rocket); err != nil || !cmp.Equal(got, first) {
		t.Errorf("enrol again: %+v, %v; want %+v", got, err, first)
	}
	for what, tc := range map[string]struct {
		tenant       ingest.TenantID
		installation int64
		repository   ingest.Repository
		want         error
	}{
		"another tenant's installation": {mine, zenithInstalled, sled, ingest.ErrAccountUnknown},
		"an unknown installation":       {mine, 99, sled, ingest.ErrAccountUnknown},
		"an unknown tenant":             {ingest.TenantID{1}, acmeInstalled, sled, ingest.ErrAccountUnknown},
		"no tenant":                     {ingest.TenantID{}, 99, sled, ingest.ErrAccountUnknown},
		"another tenant's repository":   {yours, zenithInstalled, rocket, ingest.ErrProjectTaken},
	} {
		if got, err := enrol(tc.tenant, tc.installation, tc.repository); !errors.Is(err, tc.want) {
			t.Errorf("%s: %+v, %v; want %v", what, got, err, tc.want)
		}
	}
	expect(t, "an enrolled one", deliver(t, s, "pr", pull(acmeInstalled, rocket)), ingest.TriggerReview, "revision")
	deliver(t, s, "gone", repositories("removed", acmeInstalled, acme, 1, rocket))
	expect(t, "a removed one", deliver(t, s, "late", pull(acmeInstalled, rocket)), ingest.Ignore, "project_removed")
	if got, err := enrol(mine, acmeInstalled, rocket); err != nil || !cmp.Equal(got, first) {
		t.Errorf("enrol what was removed: %+v, %v; want %+v", got, err, first)
	}
	expect(t, "one that was enrolled again", deliver(t, s, "back", pull(acmeInstalled, rocket)), ingest.TriggerReview, "revision")
	if diff := cmp.Diff([]string{"REPOSITORIES_REMOVED 70: 1", "REPOSITORIES_ADDED 70: 1"}, told(t, d)); diff != "" {
		t.Errorf("the scheduler is told (-want +got):\n%s", diff)
	}
	deliver(t, s, "deleted", installation("deleted", acmeInstalled, acme, 2))
	if _, err := enrol(mine, acmeInstalled, sled); !errors.Is(err, ingest.ErrInstallationDeleted) {
		t.Errorf("under a deleted installation: %v, want %v", err, ingest.ErrInstallationDeleted)
	}
}

// TestChooseSurfaces: the publisher is told of every change, once, in the transaction that makes it, and of
// nothing that changes nothing.
func TestChooseSurfaces(t *testing.T) {
	t.Parallel()
	s, d := setup(t, explicit(allow()))
	bound, err := s.Bind(t.Context(), ingest.Installation{Host: host, ID: acmeInstalled, Account: acme})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	const summary, review, check, status = ingest.SurfaceSummary, ingest.SurfaceReview, ingest.SurfaceCheckRun, ingest.SurfaceCommitStatus
	for _, tc := range []struct {
		what       string
		repository ingest.Repository
		chosen     []ingest.Surface
		want       []ingest.Surface
		told       string
	}{
		{"a new one that chooses nothing", rocket, nil, usual, ""},
		{"the usual, in words", rocket, []ingest.Surface{check, review, summary}, usual, ""},
		{"others", rocket, []ingest.Surface{status, summary}, []ingest.Surface{summary, status}, "1 SUMMARY COMMIT_STATUS"},
		{"the same again", rocket, []ingest.Surface{summary, status}, []ingest.Surface{summary, status}, ""},
		{"enrolled again, choosing nothing", rocket, nil, []ingest.Surface{summary, status}, ""},
		{"back to the usual", rocket, usual, usual, "2 SUMMARY REVIEW CHECK_RUN"},
		{"a new one that chooses the usual", sled, usual, usual, ""},
		{"a new one that chooses others", ingest.Repository{ID: 77, Name: "acme/anvil"}, []ingest.Surface{check}, []ingest.Surface{check}, "1 CHECK_RUN"},
	} {
		p, err := s.Enrol(t.Context(), ingest.Project{
			Tenant: bound.Tenant, Host: host, InstallationID: acmeInstalled, RepositoryID: tc.repository.ID, Repository: tc.repository.Name, Surfaces: tc.chosen,
		})
		if diff := cmp.Diff(tc.want, p.Surfaces); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tc.what, err, diff)
		}
		if tc.told != "" {
			told = append(told, fmt.Sprintf("surfaces:%s:%s", p.ID, tc.told))
		}
		if diff := cmp.Diff(told, configured(t, d)); diff != "" {
			t.Errorf("%s: the publisher is told (-want +got):\n%s", tc.what, diff)
		}
	}
	deliver(t, s, "gone", repositories("removed", acmeInstalled, acme, 1, rocket))
	deliver(t, s, "back", repositories("added", acmeInstalled, acme, 2, rocket))
	projects, err := s.Projects(t.Context(), bound.Tenant, ingest.ProjectID{}, 10)
	if err != nil || len(projects) != 3 || !cmp.Equal(projects[2].Surfaces, []ingest.Surface{check}) {
		t.Errorf("listed %+v, %v", projects, err)
	}
	if diff := cmp.Diff(told, configured(t, d)); diff != "" {
		t.Errorf("removed and added again, the publisher is told (-want +got):\n%s", diff)
	}
}

// configured are the messages to the publisher about projects: key, surfaces.
func configured(t *testing.T, d *pgtest.DB) []string {
	t.Helper()
	const from = ` FROM ingest.outbox WHERE destination LIKE '%/ConfigureProject' ORDER BY id`
	keys, err := pgxAll[string](t, d, `SELECT key`+from)
	if err != nil {
		t.Fatal(err)
	}
	payloads, err := pgxAll[[]byte](t, d, `SELECT payload`+from)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i, payload := range payloads {
		var req publisherv1.ConfigureProjectRequest
		if err := proto.Unmarshal(payload, &req); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("surfaces:%s:%d", req.GetProjectId(), req.GetVersion())
		if want := req.GetTenant() + ":" + line; keys[i] != want {
			t.Errorf("key %s, want %s", keys[i], want)
		}
		for _, s := range req.GetSurfaces() {
			line += " " + strings.TrimPrefix(s.String(), "PROJECT_SURFACE_")
		}
		all = append(all, line)
	}
	return all
}

// TestEnrolAtOnce: two tenants ask for one repository, over and over: one has it, and the other is told.
func TestEnrolAtOnce(t *testing.T) {
	t.Parallel()
	s, d := setup(t, explicit(allow()))
	installations := []int64{acmeInstalled, zenithInstalled}
	tenants := make([]ingest.TenantID, 2)
	for i, a := range []ingest.Account{acme, zenith} {
		got, err := s.Bind(t.Context(), ingest.Installation{Host: host, ID: installations[i], Account: a})
		if err != nil {
			t.Fatal(err)
		}
		tenants[i] = got.Tenant
	}
	for n := range int64(50) {
		var both sync.WaitGroup
		var errs [2]error
		var got [2]ingest.Project
		barrier := make(chan struct{})
		for i := range 2 {
			both.Go(func() {
				<-barrier
				got[i], errs[i] = s.Enrol(t.Context(), ingest.Project{
					Tenant: tenants[i], Host: host, InstallationID: installations[i], RepositoryID: 1 + n, Repository: "x/y",
				})
			})
		}
		close(barrier)
		both.Wait()
		if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs[:]...), ingest.ErrProjectTaken) {
			t.Fatalf("repository %d: %v", n, errs)
		}
		for i := range 2 {
			if errs[i] == nil && got[i].Tenant != tenants[i] {
				t.Fatalf("repository %d: tenant %s was given %+v", n, tenants[i], got[i])
			}
		}
	}
	expectRows(t, d, rows{Accounts: 2, Installations: 2, Projects: 50})
}

func TestReplay(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	e := pull(acmeInstalled, rocket)
	first := deliver(t, s, "guid", e)
	second := deliver(t, s, "guid2", pull(acmeInstalled, sled))
	sameProject := deliver(t, s, "guid3", e)
	for i, want := range []struct {
		receipt ingest.ReceiptID
		key     string
		n       int32
	}{{first.Receipt, "a", 1}, {first.Receipt, "a", 1}, {first.Receipt, "b", 2}, {second.Receipt, "a", 1}, {first.Receipt, "a", 1}, {first.Receipt, "c", 3}} {
		n, activity, err := s.Replay(t.Context(), want.receipt, want.key)
		if err != nil || n != want.n {
			t.Errorf("call %d: replay %d, %v; want %d", i, n, err, want.n)
		}
		if want.receipt == first.Receipt && activity != fmt.Sprintf("delivery:github.com/integration/424242/guid:%d:701#5", want.n) {
			t.Errorf("call %d: activity %s", i, activity)
		}
	}
	// The key is the project's: it can't mean two things there.
	if _, _, err := s.Replay(t.Context(), sameProject.Receipt, "a"); !errors.Is(err, ingest.ErrKeyConflict) {
		t.Errorf("the same key for another delivery of the project: %v, want %v", err, ingest.ErrKeyConflict)
	}
	expectRows(t, d, rows{Receipts: 3, Messages: 3 + 4, Accounts: 1, Installations: 1, Projects: 2, Replays: 4})
	var got schedulerv1.RecordActivityRequest
	if err := proto.Unmarshal(pgtest.Query[[]byte](t, d, "SELECT payload FROM ingest.outbox WHERE key LIKE '%guid:3:%'"), &got); err != nil {
		t.Fatal(err)
	}
	if got.GetCause() != schedulerv1.ActivityCause_ACTIVITY_CAUSE_REPLAY || got.GetHint().GetHeadSha() != e.PullRequest.HeadSHA || got.GetDeliveryId() != "guid" {
		t.Errorf("replayed %v", &got)
	}
	found, err := s.Delivery(t.Context(), nil, "guid")
	if err != nil || len(found) != 1 || found[0].Replays != 3 {
		t.Errorf("%+v, %v; want three replays", found, err)
	}
	if _, _, err := s.Replay(t.Context(), ingest.ReceiptID{9}, "a"); !errors.Is(err, ingest.ErrNotFound) {
		t.Errorf("an unknown receipt: %v, want %v", err, ingest.ErrNotFound)
	}
	for i, e := range []ingest.Event{{Name: "star"}, labeled(), installation("created", acmeInstalled, acme, 0), pull(0, rocket), pull(acmeInstalled, kite)} {
		a := deliver(t, s, fmt.Sprintf("other-%d", i), e)
		if _, _, err := s.Replay(t.Context(), a.Receipt, "a"); !errors.Is(err, ingest.ErrNotReplayable) {
			t.Errorf("%s: %v, want %v", a.Decision.Reason, err, ingest.ErrNotReplayable)
		}
	}
}

// TestReplayAtOnce: numbers have no gap and no double, whoever asks.
func TestReplayAtOnce(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	a, b := deliver(t, s, "one", pull(acmeInstalled, rocket)), deliver(t, s, "two", pull(acmeInstalled, rocket))
	var all sync.WaitGroup
	var mu sync.Mutex
	numbers, conflicts := map[string]int32{}, 0
	for i := range 40 {
		all.Go(func() {
			key := fmt.Sprintf("key-%d", i%10)
			n, _, err := s.Replay(t.Context(), a.Receipt, key)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("%s: %v", key, err)
			}
			if was, ok := numbers[key]; ok && was != n {
				t.Errorf("%s is replay %d and %d", key, was, n)
			}
			numbers[key] = n
		})
		all.Go(func() { // for another delivery of the project the same key is a conflict, whoever comes first
			_, _, err := s.Replay(t.Context(), []ingest.ReceiptID{a.Receipt, b.Receipt}[i%2], fmt.Sprintf("shared-%d", i/2))
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, ingest.ErrKeyConflict) {
				conflicts++
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(numbers) != 10 || conflicts != 20 {
		t.Errorf("%d numbers and %d conflicts, want 10 and 20", len(numbers), conflicts)
	}
	expectRows(t, d, rows{Receipts: 2, Messages: 2 + 30, Accounts: 1, Installations: 1, Projects: 1, Replays: 30})
	if gaps := pgtest.Query[int64](t, d, `
SELECT count(*) FROM (SELECT max(replay) <> count(*) AS gap FROM ingest.replays GROUP BY receipt_id) AS g WHERE gap`); gaps != 0 {
		t.Errorf("%d receipts have gaps in their replays", gaps)
	}
}
