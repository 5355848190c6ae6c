package store

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// newRun lets the next attempt be of another run, with another head: it takes over no result.
func (f *fixture) newRun() {
	f.run.ID, f.run.HeadSHA = reviewer.RunID(mint()), mint().String()
}

// finished makes attempts with findings, each of a run of its own.
func (f *fixture) finished(t *testing.T, n int) {
	t.Helper()
	for range n {
		f.newRun()
		if _, err := f.Finish(t.Context(), f.start(t), report); err != nil {
			t.Fatal(err)
		}
	}
}

// rows counts a tenant's rows, in all tables that have one.
func (f *fixture) rows(t *testing.T, tenant reviewer.TenantID) int {
	t.Helper()
	return pgtest.Query[int](t, f.db, `
SELECT ((SELECT count(*) FROM reviewer.attempts WHERE tenant = $1) + (SELECT count(*) FROM reviewer.findings WHERE tenant = $1)
      + (SELECT count(*) FROM reviewer.omissions WHERE tenant = $1) + (SELECT count(*) FROM reviewer.outbox WHERE tenant = $1))::int`, tenant)
}

func (f *fixture) admin(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := f.db.Admin(t).Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func wantUnfinished(t *testing.T, err error) {
	t.Helper()
	more := &purge.Unfinished{}
	if !errors.As(err, &more) || more.After <= 0 {
		t.Fatalf("%v, want it to be asked again", err)
	}
}

func TestPurgeLifecycleWaitsForOpenAttempts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.finished(t, 2)
	f.run.Lifecycle = 2
	f.finished(t, 1)
	f.run.Lifecycle = 1
	f.newRun()
	open := f.start(t)
	wantUnfinished(t, f.PurgeLifecycle(t.Context(), f.tenant, f.target, 1))
	if _, err := f.Finish(t.Context(), open, report); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.PurgeLifecycle(t.Context(), f.tenant, f.target, 1); err != nil {
			t.Fatal(err)
		}
	}
	left := pgtest.Query[string](t, f.db, `SELECT format('%s attempts, %s findings, lifecycle %s', count(*), (SELECT count(*) FROM reviewer.findings), max(lifecycle)) FROM reviewer.attempts`)
	if want := "1 attempts, 3 findings, lifecycle 2"; left != want {
		t.Errorf("%s are left, want %s", left, want)
	}
}

func TestPurgeLifecycleTakesManyInSeveralTransactions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.finished(t, 1)
	f.admin(t, `INSERT INTO reviewer.attempts SELECT (a2).* FROM (
		SELECT jsonb_populate_record(a, jsonb_build_object('id', gen_random_uuid(), 'claim_id', gen_random_uuid(), 'run_id', gen_random_uuid())) AS a2
		  FROM reviewer.attempts AS a, generate_series(1, 250)) AS more`)
	before := f.pool.Stats()
	if err := f.PurgeLifecycle(t.Context(), f.tenant, f.target, 1); err != nil {
		t.Fatal(err)
	}
	if n := f.pool.Stats().Commits - before.Commits; n != 3 {
		t.Errorf("%d transactions, want 3", n)
	}
	if n := pgtest.Query[int](t, f.db, `SELECT count(*)::int FROM reviewer.attempts`); n != 0 {
		t.Errorf("%d attempts are left", n)
	}
}

func TestEraseTenantLeavesOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	erased := f.tenant
	f.finished(t, 2)
	f.newRun()
	open := f.start(t)
	f.tenant, f.target = reviewer.TenantID(mint()), reviewer.TargetID(mint())
	f.finished(t, 2)
	f.newRun()
	f.start(t)
	others := f.rows(t, f.tenant)
	_, err := f.EraseTenant(t.Context(), uuid.UUID(erased))
	wantUnfinished(t, err) // an attempt is open
	if _, err := f.Finish(t.Context(), open, report); err != nil {
		t.Fatal(err)
	}
	_, err = f.EraseTenant(t.Context(), uuid.UUID(erased))
	wantUnfinished(t, err) // what it cost is on its way to the ledger
	f.admin(t, `UPDATE reviewer.outbox SET dispatched_at = clock_timestamp()`)
	if n, err := f.EraseTenant(t.Context(), uuid.UUID(erased)); err != nil || n == 0 {
		t.Fatalf("EraseTenant = %d, %v", n, err)
	}
	if n := f.rows(t, erased); n != 0 {
		t.Errorf("%d rows of the erased tenant are left", n)
	}
	if n := f.rows(t, f.tenant); n != others {
		t.Errorf("another tenant has %d rows, had %d", n, others)
	}
}

func TestUncountedAttemptsGoByAge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.finished(t, 1)
	f.newRun()
	for range 3 {
		if _, err := f.Close(t.Context(), f.open(t), reviewer.End{Kind: reviewer.EndVoided, Reason: "over_budget"}); err != nil {
			t.Fatal(err)
		}
	}
	f.open(t)
	f.admin(t, `UPDATE reviewer.attempts SET ended_at = ended_at - interval '91 days'`)
	kind := f.Uncounted(90 * 24 * time.Hour)
	for _, want := range []int{2, 1, 0} {
		if n, err := kind.Remove(t.Context(), kind.Retention, 2); err != nil || n != want {
			t.Fatalf("removed %d, %v; want %d", n, err, want)
		}
	}
	if n := pgtest.Query[int](t, f.db, `SELECT count(*)::int FROM reviewer.attempts`); n != 2 {
		t.Errorf("%d attempts are left, want the finished and the open one", n)
	}
}
