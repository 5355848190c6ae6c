package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// violations break each invariant once, in a copy of what a good walk left. GitHub's truth is changed in
// the tables beside ours.
var violations = map[string]string{
	"every delivery that names work has exactly one message, or one command":   `DELETE FROM ingest.outbox`,
	"every message about a pull request is recorded":                           `DELETE FROM scheduler.activities`,
	"no activity without a message":                                            `UPDATE scheduler.activities SET activity_id = 'phantom'`,
	"generations count what was recorded, without a gap":                       `UPDATE scheduler.targets SET generation = generation + 1`,
	"one engine at work per target":                                            `INSERT INTO reviewer.attempts SELECT (jsonb_populate_record(a, jsonb_build_object('id', gen_random_uuid(), 'state', 'started', 'claim_id', gen_random_uuid()))).* FROM reviewer.attempts AS a, generate_series(1, 2)`,
	"a claim ends once, and belongs to one target":                             `INSERT INTO scheduler.decisions (tenant, target_id, kind, generation, lifecycle, epoch, claim_id) SELECT tenant, target_id, 'lapsed', generation, lifecycle, epoch, claim_id FROM scheduler.decisions WHERE kind = 'accepted'`,
	"nothing is accepted after a later generation":                             `UPDATE scheduler.decisions SET generation = 7 WHERE kind = 'due'`,
	"a result is committed by the claim of its attempt, unless it was adopted": `UPDATE scheduler.runs SET result_claim = gen_random_uuid()`,
	"a result names a finished attempt of the same diff":                       `UPDATE reviewer.attempts SET state = 'expired'`,
	"a run is accepted once":                                                   `INSERT INTO scheduler.decisions (tenant, target_id, kind, generation, lifecycle, epoch, run_id) SELECT tenant, target_id, kind, generation, lifecycle, epoch, run_id FROM scheduler.decisions WHERE kind = 'accepted'`,
	"every started attempt has money held before":                              `UPDATE ledger.reservations SET held_at = clock_timestamp()`,
	"a reservation is closed once":                                             `INSERT INTO ledger.transfers SELECT (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'sequence', 99, 'key', 'twice'))).* FROM ledger.transfers AS t WHERE kind = 'settle'`,
	"what ended is paid or freed":                                              `UPDATE ledger.reservations SET state = 'open'`,
	"nothing is held for an attempt that nobody knows":                         `UPDATE ledger.reservations SET state = 'open', attempt_id = gen_random_uuid()`,
	"what attempts cost is what was spent":                                     `UPDATE reviewer.attempts SET cost = cost + 1`,
	"0 <= settled <= reserved":                                                 `UPDATE ledger.reservations SET settled = amount + 1`,
	"postings sum to zero":                                                     `UPDATE ledger.transfers SET spent = spent + 1`,
	"balances equal their postings":                                            `UPDATE ledger.accounts SET available = available + 1`,
	"nobody holds and spends more than was granted":                            `UPDATE ledger.accounts SET spent = granted + 1`,
	"transfers are numbered without a gap":                                     `DELETE FROM ledger.transfers WHERE sequence = 2`,
	"a run that ended has a complete receipt":                                  `UPDATE ledger.receipts SET completed_at = NULL`,
	"no more engine calls than a run may have":                                 `INSERT INTO reviewer.attempts SELECT (jsonb_populate_record(a, jsonb_build_object('id', gen_random_uuid(), 'number', n))).* FROM reviewer.attempts AS a, generate_series(2, 4) AS n`,
	"tenants agree along every link":                                           `UPDATE reviewer.attempts SET tenant = gen_random_uuid()`,
	"no lease is longer than it may be":                                        `UPDATE scheduler.targets SET claim_id = gen_random_uuid(), claimed_at = clock_timestamp(), lease_until = clock_timestamp() + interval '16 min'`,
	"one comparison is one run":                                                `INSERT INTO scheduler.runs SELECT (jsonb_populate_record(r, jsonb_build_object('id', gen_random_uuid()))).* FROM scheduler.runs AS r`,
	"no message is parked":                                                     `UPDATE scheduler.outbox SET parked_at = clock_timestamp(), park_reason = 'X'`,
	"no message waits":                                                         `UPDATE scheduler.outbox SET dispatched_at = NULL`,
	"no intent is open that is not of the last epoch":                          `UPDATE publisher.intents SET state = 'pending', epoch = 0`,
	"every comment of ours was recorded before it was posted":                  `UPDATE publisher.intents SET sent_at = NULL`,
	"no two visible comments of one surface":                                   `INSERT INTO seen SELECT id + 1, repository, number, ours, visible, surface, lifecycle, epoch, first_lifecycle, first_epoch, backwards FROM seen`,
	"no surface is somebody else's comment":                                    `UPDATE seen SET ours = false`,
	"a visible comment says what the page should say":                          `UPDATE seen SET epoch = epoch + 1`,
	"no lower epoch overwrites a higher one":                                   `UPDATE seen SET backwards = true`,
	"one check run per head and run":                                           `INSERT INTO checked SELECT id + 1, head, external_id, status FROM checked`,
	"every check run has concluded":                                            `UPDATE checked SET status = 'in_progress'`,
	"no two marked reviews of one run and part":                                `INSERT INTO seen_reviews SELECT id + 1, repository, number, surface, first_lifecycle, first_epoch FROM seen_reviews`,
	"nothing is remarked twice while it stands":                                `INSERT INTO seen_remarks SELECT id + 1, repository, number, fingerprint, visible, resolved FROM seen_remarks`,
	"every review of ours was recorded before it was posted":                   `UPDATE publisher.intents SET sent_at = NULL WHERE surface = 'review'`,
	"every check run and status of ours was recorded before it was written":    `INSERT INTO on_heads SELECT id + 1, repository, 'commit_status', head FROM on_heads`,
}

// TestInvariantsBite breaks each invariant and sees that it is noticed.
func TestInvariantsBite(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
	tx := w.unguarded()
	for _, i := range invariants {
		sql, ok := violations[i.id]
		if !ok {
			t.Errorf("no violation of %q", i.id)
			continue
		}
		for _, step := range []string{`SAVEPOINT good`, sql} {
			if _, err := tx.Exec(t.Context(), step); err != nil {
				t.Fatalf("%q: %v", i.id, err)
			}
		}
		if err := broken(t.Context(), tx, true); err == nil || !strings.Contains(err.Error(), "not so: "+i.id+":") {
			t.Errorf("%q: its violation gave %v", i.id, err)
		}
		if _, err := tx.Exec(t.Context(), `ROLLBACK TO good`); err != nil {
			t.Fatal(err)
		}
	}
	if err := broken(t.Context(), tx, true); err != nil {
		t.Errorf("without a violation: %v", err)
	}
}

// unguarded begins a transaction, to be rolled back, in which nothing keeps the database from being wrong.
func (w *world) unguarded() pgx.Tx {
	w.Helper()
	ctx := w.Context()
	conn, err := pgx.Connect(ctx, w.db.AdminDSN())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close(context.WithoutCancel(ctx)) })
	all, err := w.truth(ctx)
	if err != nil {
		w.Fatal(err)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		w.Fatal(err)
	}
	if err := w.tell(ctx, tx, all); err != nil {
		w.Fatal(err)
	}
	if _, err := tx.Exec(ctx, unguarded); err != nil {
		w.Fatal(err)
	}
	return tx
}

// unguarded takes away, for a transaction that is rolled back, what keeps the database itself from being
// wrong.
const unguarded = `
SET LOCAL session_replication_role = replica;
DO $$ DECLARE c record; BEGIN
  FOR c IN SELECT conrelid::regclass AS t, conname FROM pg_constraint
            WHERE contype IN ('c', 'f') AND connamespace::regnamespace::text IN ('ingest', 'scheduler', 'reviewer', 'ledger', 'publisher') LOOP
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.t, c.conname);
  END LOOP;
  FOR c IN SELECT conrelid::regclass AS t, conname FROM pg_constraint
            WHERE contype = 'u' AND connamespace::regnamespace::text IN ('ingest', 'scheduler', 'reviewer', 'ledger', 'publisher') LOOP
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I CASCADE', c.t, c.conname);
  END LOOP;
  FOR c IN SELECT indexrelid::regclass AS i FROM pg_index AS x JOIN pg_class AS k ON k.oid = x.indrelid
            WHERE x.indisunique AND NOT x.indisprimary AND k.relnamespace::regnamespace::text IN ('ingest', 'scheduler', 'reviewer', 'ledger', 'publisher') LOOP
    EXECUTE format('DROP INDEX %s', c.i);
  END LOOP;
END $$`
