package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// TestClaimsAreFairBetweenTenants has one tenant with five thousand due targets, all of them older than the one of
// each of two others: whether one or several are claimed at a time, those come among the first, in each turn.
func TestClaimsAreFairBetweenTenants(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 3, 8} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			_, err := b.db.Admin(t).Exec(t.Context(), `
				INSERT INTO scheduler.targets (id, tenant, project_id, host, installation_id, repository_id, number, generation, activities, due_at, touched_at)
				SELECT gen_random_uuid(), $1, gen_random_uuid(), 'github.com', 7, 99, n, 1, 1, clock_timestamp() - interval '1 hour', clock_timestamp()
				  FROM generate_series(1, 5000) AS n`, uuid.UUID(tenantA))
			if err != nil {
				t.Fatal(err)
			}
			others := []scheduler.TenantID{tenantB, {0xc}}
			for turn := range 3 {
				for n, tenant := range others {
					a := push(fmt.Sprint("other", turn), "bbb", turn)
					a.PullRequest = pull(int64(10*turn + n + 1))
					b.record(t, tenant, a)
				}
				// One claim of each tenant may come before theirs.
				got := map[scheduler.TenantID]int{}
				for n := 0; n < len(others)+1; {
					claimed, _, err := b.ClaimTargets(t.Context(), "worker", limit)
					if err != nil || len(claimed) == 0 {
						t.Fatalf("claimed %d, %v", len(claimed), err)
					}
					for _, c := range claimed {
						got[c.Tenant]++
					}
					n += len(claimed)
				}
				if got[tenantB] != 1 || got[others[1]] != 1 {
					t.Fatalf("turn %d: claimed %v, the backlog of one tenant hides the others", turn, got)
				}
			}
		})
	}
}

// TestManyTargetsOfOneTenantAtOnce claims a whole backlog in one call.
func TestManyTargetsOfOneTenantAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 40 {
		a := push(fmt.Sprint("a", n), "aaa", 1)
		a.PullRequest = pull(int64(n + 1))
		b.record(t, tenantA, a)
	}
	b.record(t, tenantB, push("b", "bbb", 1))
	got := 0
	for deadline := time.Now().Add(5 * time.Second); got < 41; { // until the last quiet window has passed
		claimed, _, err := b.ClaimTargets(t.Context(), "worker", 50)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("claimed %d of 41, %v", got, err)
		}
		got += len(claimed)
	}
}

// TestPausedTargetsAreNotClaimed checks every scope, and that the end of a pause rings.
func TestPausedTargetsAreNotClaimed(t *testing.T) {
	t.Parallel()
	pr := pull(1)
	for _, p := range []scheduler.Pause{
		{Scope: scheduler.ScopeHost, Host: pr.Host},
		{Scope: scheduler.ScopeInstallation, Host: pr.Host, Installation: pr.Installation},
		{Scope: scheduler.ScopeProject, Project: pr.Project},
		{Scope: scheduler.ScopeTarget},
	} {
		t.Run(string(p.Scope), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := b.record(t, tenantA, push("d1", "aaa", 1))
			if p.Scope == scheduler.ScopeTarget {
				p.Target = r.Target
			}
			p.Cause, p.Reason, p.Until = scheduler.PauseOperator, "maintenance", time.Now().Add(time.Hour)
			if err := b.SetPause(t.Context(), &tenantA, p); err != nil {
				t.Fatal(err)
			}
			claimed, _, err := b.ClaimTargets(t.Context(), "worker", 5)
			if err != nil || len(claimed) != 0 {
				t.Fatalf("claimed %d under a pause, %v", len(claimed), err)
			}
			currency, until, reason, err := b.CheckCurrent(t.Context(), tenantA, r.Target, scheduler.Check{Lifecycle: 1})
			if err != nil || currency != scheduler.Wait || !until.Equal(p.Until.Truncate(time.Microsecond)) || reason != "maintenance" {
				t.Fatalf("currency %q until %v for %q, %v", currency, until, reason, err)
			}
			if n := pgtest.Query[int64](t, b.db, `SELECT count(*) FROM scheduler.outbox WHERE key LIKE 'system:pause:%'`); n != 1 {
				t.Fatalf("%d rings for the pause's end, want 1", n)
			}
			if err := b.ClearPause(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if c := b.claimOne(t); c.ID != r.Target {
				t.Fatalf("claimed %v after the pause was cleared", c.ID)
			}
		})
	}
}

// TestClaimReadsNoFinishedRows runs the claim's query beside many targets at rest: it finds what is due by
// its index, in the index's order, without reading the others.
func TestClaimReadsNoFinishedRows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 20 {
		a := push(fmt.Sprint("a", n), "aaa", 1)
		a.PullRequest = pull(int64(n + 1))
		b.record(t, tenantA, a)
	}
	conn := b.db.Admin(t)
	for _, sql := range []string{
		`INSERT INTO scheduler.targets (id, tenant, project_id, host, installation_id, repository_id, number, touched_at)
		 SELECT gen_random_uuid(), '0a000000-0000-0000-0000-000000000000', gen_random_uuid(), 'github.com', 1, 1000 + n, 1, clock_timestamp()
		   FROM generate_series(1, 20000) AS n`,
		`VACUUM ANALYZE scheduler.targets`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := conn.Query(t.Context(), `EXPLAIN (ANALYZE, BUFFERS) `+lockReady, pgx.NamedArgs{"limit": 10})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	if strings.Contains(plan, "Seq Scan on targets") || !strings.Contains(plan, "targets_ready") {
		t.Fatalf("the claim does not go by its index:\n%s", plan)
	}
}

// TestTenantsSeeTheirOwn asks as one tenant with another's ids: the answer is as for ids that nobody has.
func TestTenantsSeeTheirOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.record(t, tenantA, push("d1", "aaa", 1))
	c := b.claimOne(t)
	_, f := b.resolve(t, c, reading("aaa", 1))
	if _, err := b.Target(t.Context(), tenantB, r.Target); err == nil {
		t.Error("Target: another tenant's target was read")
	}
	if found, err := b.Targets(t.Context(), tenantB, scheduler.TargetFilter{}, 10); err != nil || len(found) != 0 {
		t.Errorf("Targets: %d rows, %v", len(found), err)
	}
	if found, err := b.Decisions(t.Context(), tenantB, r.Target, 1<<62, 10); err != nil || len(found) != 0 {
		t.Errorf("Decisions: %d rows, %v", len(found), err)
	}
	if found, err := b.Runs(t.Context(), tenantB, r.Target, scheduler.RunID{0xff}, 10); err != nil || len(found) != 0 {
		t.Errorf("Runs: %d rows, %v", len(found), err)
	}
	if _, err := b.Run(t.Context(), tenantB, f.Run, 0, 0); err == nil {
		t.Error("Run: another tenant's run was read")
	}
	if _, err := b.Commit(t.Context(), tenantB, f, accepted(1)); err == nil {
		t.Error("Commit: another tenant's claim was ended")
	}
	if got := b.target(t, tenantA, r.Target); got.Claim.ID != c.Claim.ID {
		t.Errorf("another tenant's call changed the target: %+v", got)
	}
}
