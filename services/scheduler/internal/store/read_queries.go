package store

var (
	getTarget = `
SELECT ` + targetList + `, clock_timestamp()
  FROM scheduler.targets AS t
 WHERE t.tenant = @tenant AND t.id = @target`

	listTargets = `
SELECT ` + targetList + `, clock_timestamp()
  FROM scheduler.targets AS t
 WHERE t.tenant = @tenant AND t.id > @after
   AND (@project::uuid IS NULL OR t.project_id = @project)
   AND (NOT @due OR t.due_at IS NOT NULL)
 ORDER BY t.id
 LIMIT @limit`

	// The predicate is that of an index: of most projects nearly all pull requests are closed.
	listLive = `
SELECT ` + targetList + `, clock_timestamp()
  FROM scheduler.targets AS t
 WHERE t.tenant = @tenant AND (@project::uuid IS NULL OR t.project_id = @project) AND t.id > @after
   AND t.state NOT IN ('closed', 'gone') AND (NOT @due OR t.due_at IS NOT NULL)
 ORDER BY t.id
 LIMIT @limit`

	// One query per kind of thing a person has; the tenant is NULL for operators.
	lookupURL = `
SELECT ` + targetList + `, clock_timestamp()
  FROM scheduler.targets AS t
 WHERE (@tenant::uuid IS NULL OR t.tenant = @tenant)
   AND t.number = @number AND lower(t.repository) = lower(@repository)
 ORDER BY t.id
 LIMIT 20`

	lookupSHA = `
SELECT ` + targetList + `, clock_timestamp()
  FROM scheduler.targets AS t
 WHERE (@tenant::uuid IS NULL OR t.tenant = @tenant)
   AND t.id IN (SELECT r.target_id FROM scheduler.runs AS r
                 WHERE r.head_sha >= @sha AND r.head_sha < @sha || 'g')
 ORDER BY t.id
 LIMIT 20`

	lookupTrace = `
SELECT ` + targetList + `, clock_timestamp()
  FROM scheduler.targets AS t
 WHERE (@tenant::uuid IS NULL OR t.tenant = @tenant)
   AND t.id IN (SELECT x.id FROM scheduler.targets AS x WHERE x.trace <> '' AND substr(x.trace, 4, 32) = @trace
                UNION
                SELECT r.target_id FROM scheduler.runs AS r WHERE r.trace <> '' AND substr(r.trace, 4, 32) = @trace)
 ORDER BY t.id
 LIMIT 20`

	lookupID = `
SELECT ` + targetList + `, clock_timestamp()
  FROM scheduler.targets AS t
 WHERE (@tenant::uuid IS NULL OR t.tenant = @tenant)
   AND t.id IN (SELECT @id::uuid
                UNION
                SELECT r.target_id FROM scheduler.runs AS r WHERE r.id = @id
                UNION
                SELECT a.target_id FROM scheduler.activities AS a WHERE a.delivery_id = @delivery AND a.delivery_id <> '')
 ORDER BY t.id
 LIMIT 20`

	listRuns = `
SELECT ` + runList + `, r.target_id, t.repository_id, t.number, r.version, r.created_at, r.ended_at
  FROM scheduler.runs AS r
  JOIN scheduler.targets AS t ON t.tenant = r.tenant AND t.id = r.target_id
 WHERE r.tenant = @tenant AND r.target_id = @target AND r.id < @before
 ORDER BY r.id DESC
 LIMIT @limit`

	getRun = `
SELECT ` + runList + `, r.target_id, t.repository_id, t.number, r.version, r.created_at, r.ended_at
  FROM scheduler.runs AS r
  JOIN scheduler.targets AS t ON t.tenant = r.tenant AND t.id = r.target_id
 WHERE r.tenant = @tenant AND r.id = @run`
)

const listDecisions = `
SELECT d.sequence, d.target_id, d.kind, d.reason, d.detail, d.generation, d.lifecycle, d.epoch, d.run_id, d.claim_id,
       d.activity_id, d.request_id, d.trace, d.at
  FROM scheduler.decisions AS d
 WHERE d.tenant = @tenant AND d.target_id = @target AND d.sequence < @before
 ORDER BY d.sequence DESC
 LIMIT @limit`

// As listDecisions, by the index of decisions that name a request.
const listRequestDecisions = `
SELECT d.sequence, d.target_id, d.kind, d.reason, d.detail, d.generation, d.lifecycle, d.epoch, d.run_id, d.claim_id,
       d.activity_id, d.request_id, d.trace, d.at
  FROM scheduler.decisions AS d
 WHERE d.tenant = @tenant AND d.request_id = @request AND d.request_id <> ''
   AND (@target::uuid IS NULL OR d.target_id = @target) AND d.sequence < @before
 ORDER BY d.sequence DESC
 LIMIT @limit`

const pauseColumns = `
SELECT p.id, p.scope, p.host, p.installation_id, p.project_id, p.target_id, p.cause, p.reason, p.until, p.tenant, p.set_at`

var (
	// What has no tenant holds up those that have something there. The tenant is NULL for operators.
	listPauses = pauseColumns + `
  FROM scheduler.pauses AS p
 WHERE p.id > @after AND (p.until IS NULL OR p.until > clock_timestamp())
   AND (@tenant::uuid IS NULL OR p.tenant = @tenant
        OR p.tenant IS NULL AND EXISTS (
             SELECT FROM scheduler.targets AS t
              WHERE t.tenant = @tenant AND t.host = p.host AND (p.scope = 'host' OR t.installation_id = p.installation_id)))
   AND (@host = '' OR p.host = @host)
   AND (@installation_id::bigint = 0 OR p.installation_id = @installation_id)
 ORDER BY p.id
 LIMIT @limit`

	// The one that lasts the longest, as a send would wait for it.
	holdingPause = pauseColumns + `
  FROM scheduler.targets AS t
  JOIN scheduler.pauses AS p ON ` + pauseCovers + `
 WHERE t.tenant = @tenant AND t.id = @target
 ORDER BY p.until DESC NULLS FIRST
 LIMIT 1`
)

const readClock = `SELECT clock_timestamp()`

// readQueries are prepared by the same test as queries.
var readQueries = map[string]string{
	"getTarget": getTarget, "listTargets": listTargets, "listLive": listLive, "lookupURL": lookupURL, "lookupSHA": lookupSHA,
	"lookupTrace": lookupTrace, "lookupID": lookupID, "listRuns": listRuns, "getRun": getRun,
	"listDecisions": listDecisions, "listRequestDecisions": listRequestDecisions, "readClock": readClock,
	"listPauses": listPauses, "holdingPause": holdingPause,
}
