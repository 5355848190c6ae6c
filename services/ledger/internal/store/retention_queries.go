package store

const (
	// The runs of the list that hold no money, those among them that never did.
	closedRuns = `
SELECT g.run
  FROM unnest(@runs::uuid[]) AS g (run)
 WHERE NOT EXISTS (SELECT FROM ledger.reservations AS r
                    WHERE r.tenant = @tenant AND r.run_id = g.run AND r.state = 'open')`

	// The account is locked: nobody writes a transfer meanwhile. Their sum is added to the opening transfer,
	// which is made where there is none.
	foldInto = `
INSERT INTO ledger.transfers AS o
       (id, tenant, sequence, kind, key, note, covers, grants, available, reserved, spent, overruns, at)
SELECT @id, @tenant, 0, 'opening', 'opening', 'earlier transfers', sum(g.covers),
       sum(g.grants), sum(g.available), sum(g.reserved), sum(g.spent), sum(g.overruns), clock_timestamp()
  FROM gone AS g
HAVING count(*) > 0
ON CONFLICT (tenant, sequence) DO UPDATE
   SET covers = o.covers + EXCLUDED.covers, grants = o.grants + EXCLUDED.grants,
       available = o.available + EXCLUDED.available, reserved = o.reserved + EXCLUDED.reserved,
       spent = o.spent + EXCLUDED.spent, overruns = o.overruns + EXCLUDED.overruns, at = EXCLUDED.at`

	foldRunTransfers = `
WITH gone AS (
    DELETE FROM ledger.transfers AS t
     WHERE t.tenant = @tenant AND t.run_id = ANY (@runs)
    RETURNING t.covers, t.grants, t.available, t.reserved, t.spent, t.overruns
)` + foldInto

	foldAllTransfers = `
WITH gone AS (
    DELETE FROM ledger.transfers AS t
     WHERE t.tenant = @tenant AND t.sequence = ANY (ARRAY(
           SELECT f.sequence FROM ledger.transfers AS f
            WHERE f.tenant = @tenant AND f.sequence > 0
            ORDER BY f.sequence
            LIMIT @limit))
    RETURNING t.covers, t.grants, t.available, t.reserved, t.spent, t.overruns
), folded AS (` + foldInto + `
)
SELECT count(*)::integer FROM gone`

	deleteRunReservations = `DELETE FROM ledger.reservations AS r WHERE r.tenant = @tenant AND r.run_id = ANY (@runs)`
	deleteRunEnds         = `DELETE FROM ledger.receipt_ends AS e WHERE e.tenant = @tenant AND e.run_id = ANY (@runs)`
	deleteRunReceipts     = `DELETE FROM ledger.receipts AS c WHERE c.tenant = @tenant AND c.run_id = ANY (@runs)`

	anyHeld = `
SELECT EXISTS (SELECT FROM ledger.reservations AS r WHERE r.tenant = @tenant AND r.state = 'open')`

	// What is held anew meanwhile stays.
	eraseReservations = `
DELETE FROM ledger.reservations AS r
 WHERE r.tenant = @tenant AND r.attempt_id = ANY (ARRAY(
       SELECT d.attempt_id FROM ledger.reservations AS d
        WHERE d.tenant = @tenant AND d.state <> 'open'
        LIMIT @limit))`

	eraseReceiptEnds = `
DELETE FROM ledger.receipt_ends AS e
 WHERE (e.tenant, e.run_id, e.epoch) IN (
       SELECT d.tenant, d.run_id, d.epoch FROM ledger.receipt_ends AS d
        WHERE d.tenant = @tenant
        LIMIT @limit)`

	eraseReceipts = `
DELETE FROM ledger.receipts AS c
 WHERE c.tenant = @tenant AND c.run_id = ANY (ARRAY(
       SELECT d.run_id FROM ledger.receipts AS d
        WHERE d.tenant = @tenant
        LIMIT @limit))`

	purgeTombstones = `
DELETE FROM ledger.reservations AS r
 WHERE (r.tenant, r.attempt_id) IN (
       SELECT d.tenant, d.attempt_id FROM ledger.reservations AS d
        WHERE d.state = 'tombstone' AND d.closed_at < (SELECT clock_timestamp() - @age::interval)
        ORDER BY d.closed_at
        LIMIT @limit
          FOR UPDATE SKIP LOCKED)`
)

// retentionQueries are prepared by the same test as queries.
var retentionQueries = map[string]string{
	"closedRuns": closedRuns, "foldRunTransfers": foldRunTransfers, "foldAllTransfers": foldAllTransfers,
	"deleteRunReservations": deleteRunReservations, "deleteRunEnds": deleteRunEnds, "deleteRunReceipts": deleteRunReceipts,
	"anyHeld": anyHeld, "eraseReservations": eraseReservations, "eraseReceiptEnds": eraseReceiptEnds,
	"eraseReceipts": eraseReceipts, "purgeTombstones": purgeTombstones,
}
