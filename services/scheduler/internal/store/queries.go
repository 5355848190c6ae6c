package store

// fence is the one SQL form of a fence. The row is locked before it is asked: it then speaks of what is
// committed, and its lease is judged by the clock of the moment, not of the transaction.
const fence = `t.claim_id = @fence_claim AND t.generation = @fence_generation AND t.lifecycle = @fence_lifecycle
   AND t.claim_run_id IS NOT DISTINCT FROM @fence_run AND t.lease_until > clock_timestamp()`

// held is the fence of a renewal: claim and lease alone.
const held = `t.claim_id = @fence_claim AND t.lease_until > clock_timestamp()`

var (
	targetList = list("t", targetColumns)
	runList    = list("r", runColumns)

	lockTarget = `
SELECT ` + targetList + `, clock_timestamp()
  FROM scheduler.targets AS t
 WHERE t.tenant = @tenant AND t.id = @target
   FOR UPDATE`

	lockPullRequest = `
SELECT ` + targetList + `, clock_timestamp()
  FROM scheduler.targets AS t
 WHERE t.tenant = @tenant AND t.host = @host AND t.repository_id = @repository_id AND t.number = @number
   FOR UPDATE`

	insertTarget = `
INSERT INTO scheduler.targets (` + columnsOf(targetColumns) + `)
VALUES (` + params(targetColumns) + `)
ON CONFLICT (tenant, host, repository_id, number) DO NOTHING
RETURNING clock_timestamp()`

	saveTarget = `
UPDATE scheduler.targets AS t
   SET ` + assign(targetColumns, "id", "tenant", "host", "repository_id", "number") + `
 WHERE t.id = @id`

	saveFenced = saveTarget + ` AND ` + fence

	saveHeld = saveTarget + ` AND ` + held

	saveRun = `
INSERT INTO scheduler.runs AS r (tenant, target_id, ended_at, ` + columnsOf(runColumns) + `)
VALUES (@tenant, @target, CASE WHEN @state <> 'open' THEN clock_timestamp() END, ` + params(runColumns) + `)
ON CONFLICT (id) DO UPDATE
   SET ` + excluded(runColumns, "id", "lifecycle", "base_sha", "head_sha", "ordinal") + `,
       ended_at = CASE WHEN EXCLUDED.state <> 'open' THEN COALESCE(r.ended_at, EXCLUDED.ended_at) END,
       version = r.version + 1`

	// The runs a decision may need: those of the head that was read, and those that the target names.
	knownRuns = `
SELECT ` + runList + `
  FROM scheduler.targets AS t
  JOIN scheduler.runs AS r ON r.tenant = t.tenant AND r.target_id = t.id
 WHERE t.tenant = @tenant AND t.id = @target
   AND (r.lifecycle = t.lifecycle AND r.head_sha = @head
        OR r.id IN (t.in_work_run_id, t.claim_run_id, t.page_run_id, t.end_run_id))`
)

const (
	insertActivity = `
INSERT INTO scheduler.activities (tenant, activity_id, target_id, cause, event, delivery_id, generation, decision)
VALUES (@tenant, @activity, @target, @cause, @event, @delivery, @generation, @decision)`

	getActivity = `
SELECT a.target_id, a.generation, a.decision
  FROM scheduler.activities AS a
 WHERE a.tenant = @tenant AND a.activity_id = @activity`

	insertDecisions = `
INSERT INTO scheduler.decisions
       (tenant, target_id, kind, reason, detail, generation, lifecycle, epoch, run_id, claim_id, activity_id, request_id, trace)
SELECT @tenant, @target, d.kind, d.reason, d.detail, d.generation, d.lifecycle, d.epoch, d.run_id, d.claim_id,
       d.activity_id, d.request_id, @trace
  FROM unnest(@kinds::text[], @reasons::text[], @details::text[], @generations::bigint[], @lifecycles::bigint[],
              @epochs::bigint[], @runs::uuid[], @claims::uuid[], @activities::text[], @requests::text[])
    AS d (kind, reason, detail, generation, lifecycle, epoch, run_id, claim_id, activity_id, request_id)`

	// The clock differs from row to row: a tenant of several is made one before it is asked.
	takeTurns = `
INSERT INTO scheduler.turns AS u (tenant, claimed_at)
SELECT s.tenant, clock_timestamp() FROM unnest(@tenants::uuid[]) AS s (tenant) GROUP BY s.tenant ORDER BY s.tenant
ON CONFLICT (tenant) DO UPDATE SET claimed_at = EXCLUDED.claimed_at`

	targetPauses = `
SELECT p.id, p.scope, p.host, p.installation_id, p.project_id, p.target_id, p.cause, p.reason, p.until
  FROM scheduler.targets AS t
  JOIN scheduler.pauses AS p ON ` + pauseCovers + `
 WHERE t.tenant = @tenant AND t.id = @target`

	pauseCovers = `(p.until IS NULL OR p.until > clock_timestamp())
       AND (p.scope = 'host' AND p.host = t.host
            OR p.scope = 'installation' AND p.host = t.host AND p.installation_id = t.installation_id
            OR p.scope = 'project' AND p.project_id = t.project_id
            OR p.scope = 'target' AND p.target_id = t.id)`

	// One that is set again while it holds, or soon after, is the same pause, for longer. What was recorded before the
	// last word changes nothing.
	setPause = `
INSERT INTO scheduler.pauses AS p (id, tenant, scope, host, installation_id, project_id, target_id, cause, reason, until, heard_at)
VALUES (@id, @tenant, @scope, @host, @installation_id, @project_id, @target_id, @cause, @reason, @until, @heard)
ON CONFLICT ON CONSTRAINT pauses_scope DO UPDATE
   SET reason = EXCLUDED.reason, until = EXCLUDED.until, heard_at = COALESCE(EXCLUDED.heard_at, p.heard_at),
       set_at = CASE WHEN p.until < clock_timestamp() - interval '1 hour' THEN clock_timestamp() ELSE p.set_at END
 WHERE p.heard_at IS NULL OR @heard::timestamptz IS NULL OR p.heard_at <= @heard`

	// Its end stays on record, also where no such pause is known yet.
	endPause = `
INSERT INTO scheduler.pauses AS p (id, tenant, scope, host, installation_id, project_id, target_id, cause, reason, until, heard_at)
VALUES (@id, @tenant, @scope, @host, @installation_id, @project_id, @target_id, @cause, 'ended', clock_timestamp(), @heard)
ON CONFLICT ON CONSTRAINT pauses_scope DO UPDATE
   SET until = LEAST(p.until, EXCLUDED.until), heard_at = EXCLUDED.heard_at, set_at = clock_timestamp()
 WHERE p.heard_at IS NULL OR p.heard_at <= EXCLUDED.heard_at`

	clearPause = `
DELETE FROM scheduler.pauses AS p
 WHERE p.scope = @scope AND p.host = @host AND p.installation_id = @installation_id
   AND p.project_id IS NOT DISTINCT FROM @project_id AND p.target_id IS NOT DISTINCT FROM @target_id
   AND p.cause = @cause`
)

var (
	// System: lapsed claims of any tenant, the oldest first.
	lockLapsed = `
SELECT ` + targetList + `, clock_timestamp()
  FROM scheduler.targets AS t
 WHERE t.claim_id IS NOT NULL AND t.lease_until <= clock_timestamp()
 ORDER BY t.lease_until
 LIMIT @limit
   FOR UPDATE SKIP LOCKED`

	// System: the tenants with something due are found by stepping through the index, each gives its oldest,
	// and those who were served longest ago come first. A few more candidates than asked for stand in for
	// those that other workers are just taking. What is paused is read once, not once per candidate.
	lockReady = `
WITH RECURSIVE waiting AS (
    (SELECT t.tenant FROM scheduler.targets AS t WHERE t.ready_at IS NOT NULL ORDER BY t.tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT t.tenant FROM scheduler.targets AS t
             WHERE t.ready_at IS NOT NULL AND t.tenant > w.tenant ORDER BY t.tenant LIMIT 1)
      FROM waiting AS w
     WHERE w.tenant IS NOT NULL
), paused AS MATERIALIZED (
    SELECT p.scope, p.host, p.installation_id, p.project_id, p.target_id
      FROM scheduler.pauses AS p
     WHERE p.until IS NULL OR p.until > clock_timestamp()
), candidates AS (
    SELECT c.id, c.ready_at, u.claimed_at AS turn,
           row_number() OVER (PARTITION BY w.tenant ORDER BY c.ready_at, c.id) AS rank
      FROM waiting AS w
      LEFT JOIN scheduler.turns AS u ON u.tenant = w.tenant
     CROSS JOIN LATERAL (
        SELECT t.id, t.ready_at
          FROM scheduler.targets AS t
         WHERE t.tenant = w.tenant AND t.ready_at <= clock_timestamp() AND t.claim_id IS NULL
           AND t.host NOT IN (SELECT p.host FROM paused AS p WHERE p.scope = 'host')
           AND (t.host, t.installation_id) NOT IN (SELECT p.host, p.installation_id FROM paused AS p WHERE p.scope = 'installation')
           AND t.project_id NOT IN (SELECT p.project_id FROM paused AS p WHERE p.scope = 'project' AND p.project_id IS NOT NULL)
           AND t.id NOT IN (SELECT p.target_id FROM paused AS p WHERE p.scope = 'target' AND p.target_id IS NOT NULL)
         ORDER BY t.ready_at, t.id
         LIMIT @limit + 8
     ) AS c
     WHERE w.tenant IS NOT NULL
), first AS MATERIALIZED (
    SELECT c.* FROM candidates AS c ORDER BY c.rank, c.turn NULLS FIRST, c.ready_at, c.id LIMIT @limit * 4 + 8
)
SELECT ` + targetList + `, clock_timestamp()
  FROM first AS c
  JOIN scheduler.targets AS t ON t.id = c.id
 WHERE t.claim_id IS NULL AND t.ready_at <= clock_timestamp()
 ORDER BY c.rank, c.turn NULLS FIRST, c.ready_at, c.id
 LIMIT @limit
   FOR UPDATE OF t SKIP LOCKED`
)

// queries are prepared against the migrated schema by a test, so that a wrong column fails there.
var queries = map[string]string{
	"lockTarget": lockTarget, "lockPullRequest": lockPullRequest, "insertTarget": insertTarget,
	"saveTarget": saveTarget, "saveFenced": saveFenced, "saveHeld": saveHeld, "saveRun": saveRun,
	"knownRuns": knownRuns, "insertActivity": insertActivity, "getActivity": getActivity,
	"insertDecisions": insertDecisions, "takeTurns": takeTurns, "targetPauses": targetPauses,
	"setPause": setPause, "clearPause": clearPause, "endPause": endPause,
	"lockLapsed": lockLapsed, "lockReady": lockReady,
}
