package store

// System: a purge has no tenant of its own.
var lockAtRest = `
SELECT ` + targetList + `, clock_timestamp(),
       EXISTS (SELECT FROM scheduler.pauses AS p
                WHERE p.set_at < (SELECT clock_timestamp() - @age::interval) AND ` + pauseCovers + `) AS long_paused
  FROM scheduler.targets AS t
 WHERE t.due_at IS NULL AND t.claim_id IS NULL AND t.read_at IS NOT NULL
   AND t.touched_at < (SELECT clock_timestamp() - @age::interval)
   AND (t.page_delivery <> 'pending'
        OR EXISTS (SELECT FROM scheduler.pauses AS p
                    WHERE p.set_at < (SELECT clock_timestamp() - @age::interval) AND ` + pauseCovers + `))
 ORDER BY t.touched_at
 LIMIT @limit
   FOR UPDATE OF t SKIP LOCKED`

const (
	deleteRuns = `
DELETE FROM scheduler.runs AS r
 WHERE r.tenant = @tenant AND r.target_id = @target AND r.lifecycle <= @lifecycle
RETURNING r.id`

	purgeActivities = `
DELETE FROM scheduler.activities AS a
 WHERE (a.tenant, a.activity_id) IN (
       SELECT d.tenant, d.activity_id
         FROM scheduler.activities AS d
        WHERE d.recorded_at < (SELECT clock_timestamp() - @age::interval)
        ORDER BY d.recorded_at
        LIMIT @limit)`

	// They are numbered as they come: the first of them are the oldest, and no other need be looked at.
	purgeDecisions = `
DELETE FROM scheduler.decisions AS d
 WHERE d.sequence = ANY (ARRAY(
       SELECT o.sequence
         FROM (SELECT f.sequence, f.at FROM scheduler.decisions AS f ORDER BY f.sequence LIMIT @limit) AS o
        WHERE o.at < (SELECT clock_timestamp() - @age::interval)))`

	purgePauses = `
DELETE FROM scheduler.pauses AS p
 WHERE p.id = ANY (ARRAY(
       SELECT d.id FROM scheduler.pauses AS d
        WHERE d.until < (SELECT clock_timestamp() - @age::interval)
        LIMIT @limit
          FOR UPDATE SKIP LOCKED))`

	anyClaimed = `
SELECT EXISTS (SELECT FROM scheduler.targets AS t WHERE t.tenant = @tenant AND t.claim_id IS NOT NULL)`

	eraseTargets = `
DELETE FROM scheduler.targets AS t
 WHERE t.id = ANY (ARRAY(
       SELECT d.id FROM scheduler.targets AS d
        WHERE d.tenant = @tenant AND d.claim_id IS NULL
        LIMIT @limit
          FOR UPDATE))`

	eraseRuns = `
DELETE FROM scheduler.runs AS r
 WHERE r.id = ANY (ARRAY(SELECT d.id FROM scheduler.runs AS d WHERE d.tenant = @tenant LIMIT @limit))`

	eraseDecisions = `
DELETE FROM scheduler.decisions AS x
 WHERE x.sequence = ANY (ARRAY(SELECT d.sequence FROM scheduler.decisions AS d WHERE d.tenant = @tenant LIMIT @limit))`

	eraseActivities = `
DELETE FROM scheduler.activities AS a
 WHERE a.tenant = @tenant
   AND a.activity_id = ANY (ARRAY(SELECT d.activity_id FROM scheduler.activities AS d WHERE d.tenant = @tenant LIMIT @limit))`

	// Those of projects and targets, and what has ended; those of installations that hold stay.
	erasePauses = `
DELETE FROM scheduler.pauses AS p
 WHERE p.id = ANY (ARRAY(
       SELECT d.id FROM scheduler.pauses AS d
        WHERE d.tenant = @tenant AND (d.scope IN ('project', 'target') OR d.until <= clock_timestamp())
        LIMIT @limit))`

	eraseTurns = `
DELETE FROM scheduler.turns AS u
 WHERE u.tenant = ANY (ARRAY(SELECT d.tenant FROM scheduler.turns AS d WHERE d.tenant = @tenant LIMIT @limit))`
)

// retentionQueries are prepared by the same test as queries.
var retentionQueries = map[string]string{
	"lockAtRest": lockAtRest, "deleteRuns": deleteRuns, "purgeActivities": purgeActivities, "purgeDecisions": purgeDecisions,
	"purgePauses": purgePauses, "anyClaimed": anyClaimed, "eraseTargets": eraseTargets, "eraseRuns": eraseRuns,
	"eraseDecisions": eraseDecisions, "eraseActivities": eraseActivities, "erasePauses": erasePauses, "eraseTurns": eraseTurns,
}
