package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

const day = 24 * time.Hour

func (b bundle) admin(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.db.Admin(t).Exec(b.ctx(t), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// reviewed takes a pull request of a tenant to rest: reviewed and, if so asked, delivered.
func (b bundle) reviewed(t *testing.T, tenant scheduler.TenantID, number int64, delivered bool) scheduler.TargetID {
	t.Helper()
	a := push(fmt.Sprintf("d%d-%s", number, newID()), "aaa", 1)
	a.PullRequest = pull(number)
	r := b.record(t, tenant, a)
	_, f := b.resolve(t, b.claimOne(t), reading("aaa", 1))
	done, err := b.Commit(t.Context(), tenant, f, accepted(byte(number)))
	if err != nil {
		t.Fatal(err)
	}
	if delivered {
		err = b.RecordPublication(t.Context(), tenant, r.Target, scheduler.Publication{Lifecycle: f.Lifecycle, Epoch: done.Epoch, Delivery: scheduler.DeliveryDelivered}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	return r.Target
}

// rest makes targets untouched for so long.
func (b bundle) rest(t *testing.T, d time.Duration) {
	t.Helper()
	b.admin(t, `UPDATE scheduler.targets SET touched_at = touched_at - $1::interval`, d)
}

// purges lists who was told that a lifecycle has ended, and with how many bytes.
func (b bundle) purges(t *testing.T) []string {
	t.Helper()
	return pgtest.Query[[]string](t, b.db, `
SELECT COALESCE(array_agg(substr(key, 38) || ' ' || split_part(destination, '.', 2) ORDER BY key), '{}')
  FROM scheduler.outbox WHERE destination LIKE '%/PurgeLifecycle'`)
}

func TestLifecyclesEndAtRest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rested := b.reviewed(t, tenantA, 1, true)
	b.rest(t, 91*day)
	young := b.reviewed(t, tenantA, 2, true)
	pending := b.reviewed(t, tenantA, 3, false)
	b.admin(t, `UPDATE scheduler.targets SET touched_at = touched_at - interval '91 days' WHERE id = $1`, pending)
	due := push("due", "bbb", 5)
	due.PullRequest = pull(4)
	b.record(t, tenantA, due)
	b.admin(t, `UPDATE scheduler.targets SET touched_at = touched_at - interval '91 days', due_at = due_at + interval '1 year' WHERE number = 4`)

	kind := b.Lifecycles(90 * day)
	for _, want := range []int{1, 0} {
		if n, err := kind.Remove(t.Context(), kind.Retention, kind.Most); err != nil || n != want {
			t.Fatalf("%d lifecycles ended, %v; want %d", n, err, want)
		}
	}
	got := b.target(t, tenantA, rested)
	if got.Lifecycle != 2 || got.State != scheduler.StateUnknown || !got.Read.At.IsZero() || got.Epoch != 1 || got.Generation != 1 {
		t.Errorf("after the end of its lifecycle %+v", got)
	}
	for _, id := range []scheduler.TargetID{young, pending} {
		if got := b.target(t, tenantA, id); got.Lifecycle != 1 {
			t.Errorf("target %d is in lifecycle %d", got.Number, got.Lifecycle)
		}
	}
	if n := pgtest.Query[int](t, b.db, `SELECT count(*)::int FROM scheduler.runs WHERE target_id = $1`, rested); n != 0 {
		t.Errorf("%d runs are left", n)
	}
	want := []string{}
	for _, part := range []string{"ledger:2 ledger", "publisher publisher", "reviewer reviewer"} {
		want = append(want, fmt.Sprintf("purge:%s:1:%s", rested, part))
	}
	if diff := cmp.Diff(want, b.purges(t)); diff != "" {
		t.Errorf("messages (-want +got)\n%s", diff)
	}
	explained, err := b.Explain(t.Context(), tenantA, rested)
	if last := explained[len(explained)-1]; err != nil || last.Kind != scheduler.DecisionLifecycleEnded || last.Lifecycle != 1 {
		t.Errorf("the last decision is %+v, %v", last, err)
	}
}

// TestNextLifecycleReviewsTheSameRevision hears of the same revision before and after the end of its
// lifecycle: before, the result is reused; after, it is a new run, and a fence of before is of no use.
func TestNextLifecycleReviewsTheSameRevision(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.reviewed(t, tenantA, 1, true)
	replay := func(n int) scheduler.Activity {
		a := push(fmt.Sprint("replay", n), "aaa", 1)
		a.Cause = scheduler.CauseReplay
		return a
	}
	b.record(t, tenantA, replay(1))
	if res, _ := b.resolve(t, b.claimOne(t), reading("aaa", 1)); res.Answer != scheduler.AnswerReused {
		t.Fatalf("before the end: %s, want the result to be reused", res.Answer)
	}
	before := b.target(t, tenantA, id)
	b.rest(t, 91*day)
	if n, err := b.EndLifecycles(t.Context(), 90*day, 10); err != nil || n != 1 {
		t.Fatalf("%d lifecycles ended, %v", n, err)
	}
	b.record(t, tenantA, replay(2))
	c := b.claimOne(t)
	res, f := b.resolve(t, c, reading("aaa", 1))
	if res.Answer != scheduler.AnswerReview || f.Lifecycle != 2 || res.Run.ID == before.Page.Run {
		t.Fatalf("after the end: %+v under %+v, want a new run of lifecycle 2", res, f)
	}
	stale := f
	stale.Lifecycle = 1
	if _, err := b.Commit(t.Context(), tenantA, stale, accepted(9)); !errors.Is(err, scheduler.ErrLifecycleEnded) {
		t.Errorf("a commit for the ended lifecycle: %v", err)
	}
	if currency, _, _, err := b.CheckCurrent(t.Context(), tenantA, id, scheduler.Check{Lifecycle: 1, Epoch: before.Epoch}); err != nil || currency != scheduler.Superseded {
		t.Errorf("an epoch of the ended lifecycle is %s, %v", currency, err)
	}
}

// TestLongPauseIsRestForAnEpochThatCantBeSent has the page's last epoch wait for a pause that is renewed
// again and again.
func TestLongPauseIsRestForAnEpochThatCantBeSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.reviewed(t, tenantA, 1, false)
	b.rest(t, 91*day)
	suspended := scheduler.Pause{Scope: scheduler.ScopeInstallation, Host: "github.com", Installation: 7, Cause: scheduler.PauseSuspension, Reason: "installation_suspended"}
	end := func() int {
		t.Helper()
		n, err := b.EndLifecycles(t.Context(), 90*day, 10)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, since := range []time.Duration{0, 89 * day} {
		suspended.Until = time.Now().Add(10 * time.Minute)
		if err := b.SetPause(t.Context(), &tenantA, suspended); err != nil {
			t.Fatal(err)
		}
		b.admin(t, `UPDATE scheduler.pauses SET set_at = set_at - $1::interval, until = clock_timestamp() - interval '1 minute'`, since)
		if n := end(); n != 0 {
			t.Fatalf("paused for %s: %d lifecycles ended", since, n)
		}
	}
	b.admin(t, `UPDATE scheduler.pauses SET set_at = set_at - interval '2 days'`)
	if n := end(); n != 0 {
		t.Fatal("a pause that is over is no rest")
	}
	if err := b.SetPause(t.Context(), &tenantA, suspended); err != nil { // renewed by a refused token
		t.Fatal(err)
	}
	if n := end(); n != 1 {
		t.Fatalf("%d lifecycles ended, want 1", n)
	}
	if got := b.target(t, tenantA, id); got.Page.Delivery != scheduler.DeliveryEnded {
		t.Errorf("the epoch that was never sent is %s", got.Page.Delivery)
	}
}

func TestRowsGoByAge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range int64(3) {
		b.reviewed(t, tenantA, n+1, true)
	}
	b.admin(t, `UPDATE scheduler.activities SET recorded_at = recorded_at - interval '91 days' WHERE activity_id NOT LIKE 'd3-%'`)
	b.admin(t, `UPDATE scheduler.decisions SET at = at - interval '91 days' WHERE sequence < (SELECT max(sequence) FROM scheduler.decisions)`)
	total := pgtest.Query[int](t, b.db, `SELECT count(*)::int FROM scheduler.decisions`)
	for _, until := range []time.Time{time.Now().Add(time.Hour), {}} {
		p := scheduler.Pause{Scope: scheduler.ScopeHost, Host: fmt.Sprint(until.Year()), Cause: scheduler.PauseOperator, Reason: "r", Until: until}
		if err := b.SetPause(t.Context(), nil, p); err != nil {
			t.Fatal(err)
		}
	}
	b.admin(t, `UPDATE scheduler.pauses SET until = until - interval '2 days'`)
	kinds := b.Kinds(Retention{Activities: 90 * day, Decisions: 90 * day, Pauses: day})
	want := map[string][]int{"activities": {2, 0}, "decisions": {2, total - 3, 0}, "pauses": {1, 0}}
	for _, kind := range kinds {
		for i, n := range want[kind.Name] {
			limit := 2
			if i == 1 {
				limit = 1000
			}
			if got, err := kind.Remove(t.Context(), kind.Retention, limit); err != nil || got != n {
				t.Fatalf("%s: removed %d, %v; want %d", kind.Name, got, err, n)
			}
		}
	}
}

// TestActivityThatWasForgottenIsSeen hears of a revision again after the activity is past retention: within the
// lifecycle nothing follows from it.
func TestActivityThatWasForgottenIsSeen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := push("d1", "aaa", 1)
	b.record(t, tenantA, a)
	_, f := b.resolve(t, b.claimOne(t), reading("aaa", 1))
	if _, err := b.Commit(t.Context(), tenantA, f, accepted(1)); err != nil {
		t.Fatal(err)
	}
	b.admin(t, `UPDATE scheduler.activities SET recorded_at = recorded_at - interval '91 days'`)
	if n, err := purge.Statement(b.Store.db, purgeActivities)(t.Context(), 90*day, 10); err != nil || n != 1 {
		t.Fatalf("%d activities were purged, %v", n, err)
	}
	if r := b.record(t, tenantA, a); r.Decision != scheduler.DecisionAlreadySeen || r.Generation != 1 {
		t.Errorf("heard again: %+v", r)
	}
}

// tables are those with rows of a tenant.
func (b bundle) tables(t *testing.T) []string {
	t.Helper()
	return pgtest.Query[[]string](t, b.db, `
SELECT array_agg(table_name::text ORDER BY table_name) FROM information_schema.columns WHERE table_schema = 'scheduler' AND column_name = 'tenant'`)
}

func (b bundle) count(t *testing.T, table string, tenant scheduler.TenantID) int {
	t.Helper()
	return pgtest.Query[int](t, b.db, `SELECT count(*)::int FROM scheduler.`+table+` WHERE tenant = $1`, tenant)
}

// TestEraseTenantLeavesOthers fills every table that has a tenant; one that is new has to be added here.
func TestEraseTenantLeavesOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tenants := []scheduler.TenantID{tenantA, tenantB}
	for i, tenant := range tenants {
		target := b.reviewed(t, tenant, int64(i+1), true)
		for _, p := range []scheduler.Pause{
			{Scope: scheduler.ScopeTarget, Target: target, Host: "github.com"},
			{Scope: scheduler.ScopeInstallation, Host: "github.com", Installation: int64(70 + i)},
		} {
			p.Cause, p.Reason = scheduler.PauseOperator, "r"
			if err := b.SetPause(t.Context(), &tenant, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	others := map[string]int{}
	for _, table := range b.tables(t) {
		others[table] = b.count(t, table, tenantB)
		if b.count(t, table, tenantA) == 0 || others[table] == 0 {
			t.Fatalf("scheduler.%s has no row: this test must make some", table)
		}
	}
	a := push("late", "ccc", 9)
	a.PullRequest = pull(5) // one that nothing pauses
	b.record(t, tenantA, a)
	c := b.claimOne(t)
	_, err := b.EraseTenant(t.Context(), uuid.UUID(tenantA))
	more := &purge.Unfinished{}
	if !errors.As(err, &more) {
		t.Fatalf("while a target is claimed: %v", err)
	}
	if err := b.Release(t.Context(), tenantA, c.Fence(), scheduler.ReleaseShuttingDown, "", time.Hour, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.EraseTenant(t.Context(), uuid.UUID(tenantA)); !errors.As(err, &more) {
		t.Fatalf("while messages are on their way: %v", err)
	}
	b.admin(t, `UPDATE scheduler.outbox SET dispatched_at = clock_timestamp() WHERE tenant = $1 AND destination NOT LIKE 'doorbell:%'`, uuid.UUID(tenantA))
	if _, err := b.EraseTenant(t.Context(), uuid.UUID(tenantA)); err != nil {
		t.Fatal(err)
	}
	for _, table := range b.tables(t) {
		want := 0
		if table == "pauses" {
			want = 1 // the installation's
		}
		if n := b.count(t, table, tenantA); n != want {
			t.Errorf("%d rows of the erased tenant in scheduler.%s, want %d", n, table, want)
		}
		if n := b.count(t, table, tenantB); n != others[table] {
			t.Errorf("%d rows of the other tenant in scheduler.%s, had %d", n, table, others[table])
		}
	}
}

// TestRestIsFoundByItsIndex looks at a plan over many targets: those that are due or were never read cost
// nothing.
func TestRestIsFoundByItsIndex(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.reviewed(t, tenantA, 1, true)
	b.admin(t, `INSERT INTO scheduler.targets (id, tenant, project_id, host, installation_id, repository_id, number, touched_at, read_at)
		SELECT gen_random_uuid(), $1, $1, 'github.com', 7, 100, n, clock_timestamp() - interval '91 days', NULL FROM generate_series(1, 5000) AS n`, uuid.UUID(tenantB))
	b.admin(t, `ANALYZE scheduler.targets`)
	sql := strings.NewReplacer("@age", "'90 days'", "@limit", "20").Replace(lockAtRest)
	rows, err := b.db.Admin(t).Query(t.Context(), "EXPLAIN "+sql)
	if err != nil {
		t.Fatal(err)
	}
	var plan []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, line)
	}
	if err := rows.Err(); err != nil || !slices.ContainsFunc(plan, func(l string) bool { return strings.Contains(l, "targets_resting") }) {
		t.Errorf("%v, plan:\n%s", err, strings.Join(plan, "\n"))
	}
}
