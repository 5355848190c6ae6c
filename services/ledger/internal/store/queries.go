package store

const (
	openAccount = `
INSERT INTO ledger.accounts (tenant)
VALUES (@tenant)
ON CONFLICT (tenant) DO NOTHING`

	lockAccount = `
SELECT a.granted, a.available, a.reserved, a.spent, a.overruns, a.sequence,
       a.budget_period, a.budget_limit, a.budget_used, a.budget_start_at, clock_timestamp()
  FROM ledger.accounts AS a
 WHERE a.tenant = @tenant
   FOR UPDATE`

	getAccount = `
SELECT a.granted, a.available, a.reserved, a.spent, a.overruns, a.sequence,
       a.budget_period, a.budget_limit, a.budget_used, a.budget_start_at, clock_timestamp()
  FROM ledger.accounts AS a
 WHERE a.tenant = @tenant`

	getReservation = `
SELECT r.attempt_id, r.run_id, r.state, r.amount, r.settled, r.overrun, r.estimate, r.engine,
       r.outcome, r.held_at, r.closed_at
  FROM ledger.reservations AS r
 WHERE r.tenant = @tenant AND r.attempt_id = @attempt`

	saveAccount = `
UPDATE ledger.accounts AS a
   SET granted = @granted, available = @available, reserved = @reserved, spent = @spent,
       overruns = @overruns, sequence = @sequence, budget_period = @budget_period,
       budget_limit = @budget_limit, budget_used = @budget_used, budget_start_at = @budget_start_at
 WHERE a.tenant = @tenant`

	saveReservation = `
INSERT INTO ledger.reservations AS r
       (tenant, attempt_id, run_id, state, amount, settled, overrun, estimate, engine, outcome, held_at, closed_at)
VALUES (@tenant, @attempt, @run, @state, @amount, @settled, @overrun, @estimate, @engine, @outcome, @held_at, @closed_at)
ON CONFLICT (tenant, attempt_id) DO UPDATE
   SET state = EXCLUDED.state, settled = EXCLUDED.settled, overrun = EXCLUDED.overrun,
       estimate = EXCLUDED.estimate, outcome = EXCLUDED.outcome, closed_at = EXCLUDED.closed_at`

	insertTransfer = `
INSERT INTO ledger.transfers
       (id, tenant, sequence, kind, key, attempt_id, run_id, note, estimate,
        grants, available, reserved, spent, overruns, at)
VALUES (@id, @tenant, @sequence, @kind, @key, @attempt, @run, @note, @estimate,
        @grants, @available, @reserved, @spent, @overruns, @at)`

	openReceipt = `
INSERT INTO ledger.receipts (tenant, run_id)
VALUES (@tenant, @run)
ON CONFLICT (tenant, run_id) DO NOTHING`

	completeReceipt = `
UPDATE ledger.receipts AS c
   SET completed_at = clock_timestamp()
 WHERE c.tenant = @tenant AND c.run_id = @run AND c.completed_at IS NULL
   AND EXISTS (SELECT FROM ledger.receipt_ends AS e WHERE e.tenant = c.tenant AND e.run_id = c.run_id)
   AND NOT EXISTS (SELECT FROM ledger.reservations AS r
                    WHERE r.tenant = c.tenant AND r.run_id = c.run_id AND r.state = 'open')`

	insertReceiptEnd = `
INSERT INTO ledger.receipt_ends (tenant, run_id, epoch, outcome, attempt_id)
VALUES (@tenant, @run, @epoch, @outcome, @attempt)
ON CONFLICT (tenant, run_id, epoch) DO NOTHING`

	nameReceiptTarget = `
UPDATE ledger.receipts AS c
   SET target_id = @target
 WHERE c.tenant = @tenant AND c.run_id = @run AND c.target_id IS NULL`

	getGrant = `
SELECT t.id, t.available
  FROM ledger.transfers AS t
 WHERE t.tenant = @tenant AND t.key = @key`

	usedSince = `
SELECT COALESCE(sum(CASE r.state WHEN 'open' THEN r.amount ELSE r.settled END), 0)::bigint
  FROM ledger.reservations AS r
 WHERE r.tenant = @tenant AND r.held_at >= @since`

	listTransfers = `
SELECT t.id, t.sequence, t.kind, t.attempt_id, t.run_id, t.note, t.estimate,
       t.grants, t.available, t.reserved, t.spent, t.overruns, t.at
  FROM ledger.transfers AS t
 WHERE t.tenant = @tenant AND t.sequence < @before
   AND (@run::uuid IS NULL OR t.run_id = @run)
 ORDER BY t.sequence DESC
 LIMIT @limit`

	listReceipts = `
SELECT c.run_id, c.target_id, c.created_at, c.completed_at
  FROM ledger.receipts AS c
 WHERE c.tenant = @tenant
   AND (@run::uuid IS NULL OR c.run_id = @run)
   AND (c.created_at, c.run_id) < (@before, @before_run)
 ORDER BY c.created_at DESC, c.run_id DESC
 LIMIT @limit`

	receiptEnds = `
SELECT e.run_id, e.epoch, e.outcome, e.attempt_id, e.at
  FROM ledger.receipt_ends AS e
 WHERE e.tenant = @tenant AND e.run_id = ANY (@runs)
 ORDER BY e.at, e.epoch`

	receiptLines = `
SELECT r.attempt_id, r.run_id, r.state, r.amount, r.settled, r.overrun, r.estimate, r.engine,
       r.outcome, r.held_at, r.closed_at
  FROM ledger.reservations AS r
 WHERE r.tenant = @tenant AND r.run_id = ANY (@runs)
 ORDER BY r.held_at, r.attempt_id`

	// System: the sweeper looks across tenants.
	staleReservations = `
SELECT r.tenant, r.attempt_id, r.run_id
  FROM ledger.reservations AS r
 WHERE r.state = 'open' AND r.held_at < clock_timestamp() - @age::interval
 ORDER BY r.held_at
 LIMIT @limit`
)

// queries are prepared against the migrated schema by a test, so that a wrong column fails there.
var queries = map[string]string{
	"openAccount": openAccount, "lockAccount": lockAccount, "getAccount": getAccount,
	"getReservation": getReservation, "saveAccount": saveAccount, "saveReservation": saveReservation,
	"insertTransfer": insertTransfer, "openReceipt": openReceipt, "completeReceipt": completeReceipt,
	"insertReceiptEnd": insertReceiptEnd, "nameReceiptTarget": nameReceiptTarget, "getGrant": getGrant,
	"usedSince": usedSince, "listTransfers": listTransfers, "listReceipts": listReceipts,
	"receiptEnds": receiptEnds, "receiptLines": receiptLines, "staleReservations": staleReservations,
}
