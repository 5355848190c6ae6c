package store

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// TestSQLFenceIsThePureFence holds the SQL fragment and the pure function against each other: for any
// row and any fence, an update goes through exactly where the verdict is nil.
func TestSQLFenceIsThePureFence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.record(t, tenantA, push("d1", "aaa", 1))
	c := b.claimOne(t)
	conn := b.db.Admin(t)
	id := func(t *rapid.T, name string) [16]byte { return [16]byte{rapid.Byte().Draw(t, name) % 3} }
	small := rapid.Int64Range(1, 2)
	rapid.Check(t, func(t *rapid.T) {
		var target scheduler.Target
		target.ID = c.ID
		target.Claim.ID = id(t, "row claim")
		target.Generation, target.Lifecycle = scheduler.Generation(small.Draw(t, "row generation")), scheduler.Lifecycle(small.Draw(t, "row lifecycle"))
		live := rapid.Bool().Draw(t, "live")
		if target.Claim.Held() {
			target.Claim.Run = id(t, "row run")
		}
		f := scheduler.Fence{
			Target: c.ID, Claim: id(t, "claim"), Generation: scheduler.Generation(small.Draw(t, "generation")),
			Lifecycle: scheduler.Lifecycle(small.Draw(t, "lifecycle")), Run: id(t, "run"),
		}
		tx, err := conn.Begin(b.ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(b.ctx(t)) }()
		row := pgx.NamedArgs{
			"id": c.ID, "claim": optionalID(&target.Claim.ID), "generation": target.Generation, "lifecycle": target.Lifecycle,
			"run": optionalID(&target.Claim.Run), "live": live,
		}
		var now time.Time
		var lease *time.Time
		err = tx.QueryRow(b.ctx(t), `
UPDATE scheduler.targets
   SET claim_id = @claim, claim_run_id = @run, generation = @generation, resolved_generation = 0, lifecycle = @lifecycle,
       claimed_at = clock_timestamp(),
       lease_until = CASE WHEN @claim::uuid IS NULL THEN NULL WHEN @live THEN clock_timestamp() + interval '1 min' ELSE clock_timestamp() - interval '1 ms' END
 WHERE id = @id
RETURNING clock_timestamp(), lease_until`, row).Scan(&now, &lease)
		if err != nil {
			t.Fatal(err)
		}
		if lease != nil {
			target.Claim.LeaseUntil = *lease
		}
		tag, err := tx.Exec(b.ctx(t), `UPDATE scheduler.targets AS t SET touched_at = clock_timestamp() WHERE t.id = @target AND `+fence, pgx.NamedArgs{
			"target": f.Target, "fence_claim": f.Claim, "fence_generation": f.Generation, "fence_lifecycle": f.Lifecycle, "fence_run": optionalID(&f.Run),
		})
		if err != nil {
			t.Fatal(err)
		}
		why := f.Verdict(target, now)
		if (tag.RowsAffected() == 1) != (why == nil) {
			t.Fatalf("SQL let %d rows through, the pure fence says %v\nrow %+v\nfence %+v", tag.RowsAffected(), why, target, f)
		}
	})
}

// TestLeaseThatLapsesWhileTheWriteWaitsForTheLock stands for a worker that was in time when it called,
// and too late when the row's lock was had: the clock of that moment counts.
func TestLeaseThatLapsesWhileTheWriteWaitsForTheLock(t *testing.T) {
	t.Parallel()
	b := setupRules(t, func(r *scheduler.Rules) { r.Lease, r.MaxClaim = 3*time.Second, 3*time.Second })
	r := b.record(t, tenantA, push("d1", "aaa", 1))
	c := b.claimOne(t)
	_, f := b.resolve(t, c, reading("aaa", 1))

	conn := b.db.Admin(t)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT FROM scheduler.targets WHERE id = $1 FOR UPDATE`, c.ID); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := b.Commit(b.ctx(t), tenantA, f, accepted(1))
		done <- err
	}()
	// The holder waits, in the database, until the lease is over; only then does the commit get the lock.
	if _, err := tx.Exec(t.Context(), `SELECT pg_sleep_until((SELECT lease_until FROM scheduler.targets WHERE id = $1))`, c.ID); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, scheduler.ErrLeaseExpired) {
		t.Fatalf("commit after the lease: %v, want %v", err, scheduler.ErrLeaseExpired)
	}
	got := b.target(t, tenantA, r.Target)
	if got.Claim.Held() || got.Epoch != 0 || got.Lapses != 1 || !got.Due() {
		t.Fatalf("the late commit left %+v: want no claim, no epoch, due again", got)
	}
}

// TestStaleCommitEndsItsOwnClaim is a push during the engine: the result is refused, nothing is
// published, and nothing waits for the lease.
func TestStaleCommitEndsItsOwnClaim(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.record(t, tenantA, push("d1", "aaa", 1))
	c := b.claimOne(t)
	_, f := b.resolve(t, c, reading("aaa", 1))
	b.record(t, tenantA, push("d2", "bbb", 2))
	_, cancel, err := b.Renew(t.Context(), tenantA, f, false)
	if err != nil || !cancel {
		t.Fatalf("renewal after the push: cancel %v, %v; want to be asked to stop", cancel, err)
	}
	for range 2 { // the second is the same call after a lost answer
		if _, err := b.Commit(t.Context(), tenantA, f, accepted(1)); !errors.Is(err, scheduler.ErrStaleGeneration) {
			t.Fatalf("commit after the push: %v, want %v", err, scheduler.ErrStaleGeneration)
		}
	}
	got := b.target(t, tenantA, r.Target)
	if got.Claim.Held() || got.Epoch != 0 || !got.Due() {
		t.Fatalf("left %+v: want no claim, no epoch, due", got)
	}
	next := b.claimOne(t)
	if next.ID != r.Target {
		t.Fatalf("claimed %v, want the target again", next.ID)
	}
}

// lapse lets a lease run out without waiting for it.
func (b bundle) lapse(t *testing.T, target scheduler.TargetID) {
	t.Helper()
	_, err := b.db.Admin(t).Exec(t.Context(), `UPDATE scheduler.targets SET lease_until = clock_timestamp() WHERE id = $1`, target)
	if err != nil {
		t.Fatal(err)
	}
}

// TestPausedWorkerIsFenced is a worker that stops past its lease, is taken over, and commits then.
func TestPausedWorkerIsFenced(t *testing.T) {
	t.Parallel()
	b := setupRules(t, func(r *scheduler.Rules) { r.LapseBase, r.LapseMax = time.Microsecond, time.Microsecond })
	b.record(t, tenantA, push("d1", "aaa", 1))
	first := b.claimOne(t)
	_, f := b.resolve(t, first, reading("aaa", 1))
	b.lapse(t, first.ID)
	second := b.claimOne(t)
	if second.Claim.ID == first.Claim.ID {
		t.Fatal("the takeover got the same claim")
	}
	if _, err := b.Commit(t.Context(), tenantA, f, accepted(1)); !errors.Is(err, scheduler.ErrClaimLost) {
		t.Fatalf("commit of the paused worker: %v, want %v", err, scheduler.ErrClaimLost)
	}
	if got := b.target(t, tenantA, second.ID); got.Claim.ID != second.Claim.ID || got.Epoch != 0 {
		t.Fatalf("the paused worker changed the target: %+v", got)
	}
}

// TestSameActivityAtTwoInstancesAtOnce records one activity by two schedulers at one moment, many times.
func TestSameActivityAtTwoInstancesAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := New(b.db.Open(t, "scheduler"), b.outbox, b.rules, "reviews")
	for i := range 20 {
		a := push(string(rune('a'+i)), "head"+string(rune('a'+i)), i)
		var wg sync.WaitGroup
		answers := make([]scheduler.Recorded, 2)
		for j, s := range []*Store{b.Store, other} {
			wg.Go(func() {
				r, err := s.Record(b.ctx(t), tenantA, a, "pull_request.synchronize")
				if err != nil {
					t.Error(err)
				}
				answers[j] = r
			})
		}
		wg.Wait()
		if answers[0] != answers[1] {
			t.Fatalf("two answers to one activity: %+v", answers)
		}
		if got := b.target(t, tenantA, answers[0].Target); got.Generation != scheduler.Generation(i+1) {
			t.Fatalf("generation %d after %d activities", got.Generation, i+1)
		}
	}
}
