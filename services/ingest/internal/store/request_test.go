package store

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

func TestAskQueriesPrepare(t *testing.T) {
	t.Parallel()
	pgtest.PrepareAll(t, pgtest.New(t, migrations.FS), "ingest", askQueries)
}

// askable is a store with both tenants' repositories, and a request of acme's rocket.
func askable(t *testing.T) (*Store, *pgtest.DB, ingest.Asked) {
	t.Helper()
	s, d := setup(t, everybody)
	for i, e := range []ingest.Event{pull(acmeInstalled, rocket), pull(acmeInstalled, sled), pull(zenithInstalled, kite)} {
		deliver(t, s, name("enrol", i), e)
	}
	return s, d, ingest.Asked{
		Tenant: tenantOfAccount(t, d, acme), Project: projectOf(t, d, rocket), Number: 5, Source: ingest.FromAPI, Key: "key", By: "ann",
	}
}

func projectOf(t *testing.T, d *pgtest.DB, r ingest.Repository) ingest.ProjectID {
	t.Helper()
	return ingest.ProjectID(pgtest.Query[uuid.UUID](t, d, "SELECT id FROM ingest.projects WHERE repository_id = $1", r.ID))
}

const asks = "SELECT count(*) FROM ingest.outbox WHERE destination LIKE '%/RecordActivity' AND key LIKE '%activity:request:%'"

func requests(t *testing.T, d *pgtest.DB) (rows, told int64) {
	t.Helper()
	return pgtest.Query[int64](t, d, "SELECT count(*) FROM ingest.requests"), pgtest.Query[int64](t, d, asks)
}

// TestFiftyAtOnce: one request, however often and through whichever replica it is asked for.
func TestFiftyAtOnce(t *testing.T) {
	t.Parallel()
	one, d, a := askable(t)
	two := over(d.Open(t, "ingest"), everybody)
	answers := make([]ingest.ReviewRequest, 50)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			s := one
			if i%2 == 1 {
				s = two
			}
			var err error
			if answers[i], err = s.Request(t.Context(), a); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, r := range answers {
		if diff := cmp.Diff(answers[0], r); diff != "" {
			t.Errorf("another answer:\n%s", diff)
		}
	}
	if rows, told := requests(t, d); rows != 1 || told != 1 {
		t.Errorf("%d requests, %d activities, want one each", rows, told)
	}
	if got := answers[0]; got.RepositoryID != rocket.ID || got.InstallationID != acmeInstalled || got.Repository != rocket.Name || got.By != "ann" {
		t.Errorf("%+v", got)
	}
}

// TestConflictingKeys: of two requests of one key at once one wins, and the other is told; nothing is made of it.
func TestConflictingKeys(t *testing.T) {
	t.Parallel()
	one, d, a := askable(t)
	two := over(d.Open(t, "ingest"), everybody)
	var all sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		all.Go(func() {
			s, ask := one, a
			if i%2 == 1 {
				s, ask.DryRun = two, true
			}
			_, errs[i] = s.Request(t.Context(), ask)
		})
	}
	all.Wait()
	conflicts := 0
	for _, err := range errs {
		if errors.Is(err, ingest.ErrKeyConflict) {
			conflicts++
		} else if err != nil {
			t.Error(err)
		}
	}
	if rows, told := requests(t, d); conflicts != 10 || rows != 1 || told != 1 {
		t.Errorf("%d conflicts, %d requests, %d activities, want 10, 1, 1", conflicts, rows, told)
	}
}

func TestKeysAreOfTheirOwn(t *testing.T) {
	t.Parallel()
	s, d, a := askable(t)
	first, err := s.Request(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	byName := a
	byName.Project, byName.Host, byName.Repository, byName.By = ingest.ProjectID{}, host, "Acme/Rocket", "bob"
	again, err := s.Request(t.Context(), byName)
	if diff := cmp.Diff(first, again); err != nil || diff != "" {
		t.Errorf("by name: %v\n%s", err, diff)
	}
	for what, change := range map[string]func(*ingest.Asked){
		"another number": func(a *ingest.Asked) { a.Number++ },
		"a rerun":        func(a *ingest.Asked) { a.Rerun = true },
		"a dry run":      func(a *ingest.Asked) { a.DryRun = true },
	} {
		other := a
		change(&other)
		if _, err := s.Request(t.Context(), other); !errors.Is(err, ingest.ErrKeyConflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, change := range map[string]func(*ingest.Asked){
		"another project": func(a *ingest.Asked) { a.Project = projectOf(t, d, sled) },
		"another tenant": func(a *ingest.Asked) {
			a.Tenant, a.Project = tenantOfAccount(t, d, zenith), projectOf(t, d, kite)
		},
		"a command": func(a *ingest.Asked) { a.Source = ingest.FromCommand },
	} {
		other := a
		change(&other)
		if r, err := s.Request(t.Context(), other); err != nil || r.ID == first.ID {
			t.Errorf("%s: %v, %v", what, r.ID, err)
		}
	}
	if _, err := s.ReviewRequest(t.Context(), tenantOfAccount(t, d, zenith), first.ID); !errors.Is(err, ingest.ErrNotFound) {
		t.Errorf("another tenant's request: %v", err)
	}
	if got, err := s.ReviewRequest(t.Context(), a.Tenant, first.ID); err != nil || !cmp.Equal(first, got) {
		t.Errorf("%v, %+v", err, got)
	}
}

func TestRequestsOfNothing(t *testing.T) {
	t.Parallel()
	s, d, a := askable(t)
	before, err := s.Request(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	for what, tc := range map[string]struct {
		change func(*ingest.Asked)
		want   error
	}{
		"another tenant's project": {func(a *ingest.Asked) { a.Project = projectOf(t, d, kite) }, ingest.ErrNotEnrolled},
		"another tenant's name": {func(a *ingest.Asked) {
			a.Project, a.Host, a.Repository = ingest.ProjectID{}, host, kite.Name
		}, ingest.ErrNotEnrolled},
		"no such host": {func(a *ingest.Asked) {
			a.Project, a.Host, a.Repository = ingest.ProjectID{}, "ghe.example.test", rocket.Name
		}, ingest.ErrNotEnrolled},
		"a stranger": {func(a *ingest.Asked) { a.Tenant = ingest.TenantID(uuid.New()) }, ingest.ErrNotEnrolled},
	} {
		other := a
		other.Key = what
		tc.change(&other)
		if _, err := s.Request(t.Context(), other); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", what, err, tc.want)
		}
	}
	deliver(t, s, "removed", repositories("removed", acmeInstalled, acme, 1, rocket))
	later := a
	later.Key = "later"
	if _, err := s.Request(t.Context(), later); !errors.Is(err, ingest.ErrNotEnrolled) {
		t.Errorf("a removed project: %v", err)
	}
	if got, err := s.Request(t.Context(), a); err != nil || !cmp.Equal(before, got) {
		t.Errorf("what was answered before: %v, %+v", err, got)
	}
	deliver(t, s, "deleted", installation("deleted", acmeInstalled, acme, 2))
	later.Project = projectOf(t, d, sled)
	if _, err := s.Request(t.Context(), later); !errors.Is(err, ingest.ErrInstallationDeleted) {
		t.Errorf("an App that was uninstalled: %v", err)
	}
}

// TestNamesInUseTwice: a name that went over to another repository is not guessed.
func TestNamesInUseTwice(t *testing.T) {
	t.Parallel()
	s, d, a := askable(t)
	if _, err := d.Admin(t).Exec(t.Context(), "UPDATE ingest.projects SET repository = 'acme/rocket' WHERE repository_id = $1", sled.ID); err != nil {
		t.Fatal(err)
	}
	a.Project, a.Host, a.Repository = ingest.ProjectID{}, host, rocket.Name
	if _, err := s.Request(t.Context(), a); !errors.Is(err, ingest.ErrAmbiguous) {
		t.Errorf("two of a name: %v", err)
	}
	deliver(t, s, "removed", repositories("removed", acmeInstalled, acme, 1, sled))
	if r, err := s.Request(t.Context(), a); err != nil || r.RepositoryID != rocket.ID {
		t.Errorf("one of them removed: %v, %+v", err, r)
	}
}

// TestLostAnswerOfARequest: whichever commit's answer is lost, the request is there once.
func TestLostAnswerOfARequest(t *testing.T) {
	t.Parallel()
	_, d, a := askable(t)
	db, dropper := pgtest.DropReplies(t, d, "ingest")
	s := over(db, everybody)
	if _, err := s.ReviewRequest(t.Context(), a.Tenant, ingest.RequestID{1}); !errors.Is(err, ingest.ErrNotFound) { // warms the pool
		t.Fatal(err)
	}
	dropper.Arm()
	got, err := s.Request(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Request(t.Context(), a)
	if diff := cmp.Diff(got, again); err != nil || diff != "" {
		t.Errorf("again: %v\n%s", err, diff)
	}
	if rows, told := requests(t, d); rows != 1 || told != 1 || dropper.Lost() != 1 {
		t.Errorf("%d requests, %d activities, %d lost answers, want one each", rows, told, dropper.Lost())
	}
}
