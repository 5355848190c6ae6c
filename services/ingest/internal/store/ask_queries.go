package store

const (
	// By id, or by its name of the day; two rows tell that the name is not enough. One that has moved is found by
	// its id alone, for what was asked for while it was here.
	findProject = `
SELECT p.id, p.host, p.repository_id, p.repository, p.installation_id, p.state, i.state
  FROM ` + everyProject + ` AS p
  JOIN ingest.installations AS i ON i.tenant = p.tenant AND i.host = p.host AND i.installation_id = p.installation_id
 WHERE p.tenant = @tenant
   AND (p.id = @project
        OR @project::uuid IS NULL AND p.state <> 'moved' AND p.host = @host AND lower(p.repository) = lower(@repository))
 ORDER BY p.state, p.id
 LIMIT 2`

	requestColumns = `
SELECT r.id, r.tenant, r.project_id, r.number, r.source, r.idempotency_key, r.digest, r.rerun, r.dry_run, r.requested_by,
       r.traceparent, r.created_at, p.host, p.repository, p.repository_id, p.installation_id
  FROM ingest.requests AS r
  JOIN ` + everyProject + ` AS p ON p.tenant = r.tenant AND p.id = r.project_id`

	getRequestByKey = requestColumns + `
 WHERE r.tenant = @tenant AND r.project_id = @project AND r.source = @source AND r.idempotency_key = @key`

	getRequest = requestColumns + `
 WHERE r.tenant = @tenant AND r.id = @id`

	insertRequest = `
INSERT INTO ingest.requests
       (id, tenant, project_id, number, source, idempotency_key, digest, rerun, dry_run, requested_by, traceparent)
VALUES (@id, @tenant, @project, @number, @source, @key, @digest, @rerun, @dry_run, @by, @trace)
ON CONFLICT ON CONSTRAINT requests_key_once DO NOTHING
RETURNING id`

	insertCommand = `
INSERT INTO ingest.commands
       (id, tenant, project_id, source, cause, verb, host, installation_id, repository_id, repository, number,
        comment_id, account_id, login, external_id, head_sha, traceparent)
VALUES (@id, @tenant, @project, @source, @cause, @verb, @host, @installation, @repository_id, @repository, @number,
        @comment, @account, @login, @external_id, @head, @trace)
ON CONFLICT ON CONSTRAINT commands_once DO NOTHING`

	// The commands of one pull request are carried out in the order in which they came, and none of an
	// installation that GitHub throttles. Who may be asked about one is the project's installation as it is now: none
	// where the App was uninstalled, or the repository has left. A command does not age while its installation is
	// suspended or throttled: that is a pause. Tenants for whom least is being looked into come first, so that nobody's
	// comments hold up another's.
	claimCommands = `
WITH busy AS MATERIALIZED (
    SELECT b.tenant, count(*) AS n
      FROM ingest.commands AS b
     WHERE b.state = 'pending' AND b.claim_until > clock_timestamp()
     GROUP BY b.tenant
), found AS (
    SELECT c.id
      FROM ingest.commands AS c
      LEFT JOIN busy AS w ON w.tenant = c.tenant
     WHERE c.state = 'pending' AND c.available_at <= (SELECT clock_timestamp())
       AND (c.claim_until IS NULL OR c.claim_until <= clock_timestamp())
       AND NOT EXISTS (SELECT FROM ingest.commands AS b
                        WHERE b.tenant = c.tenant AND b.project_id = c.project_id AND b.number = c.number AND b.id < c.id
                          AND b.state = 'pending')
       AND NOT EXISTS (SELECT FROM ingest.installations AS i
                        WHERE i.tenant = c.tenant AND i.host = c.host AND i.installation_id = c.installation_id
                          AND i.paused_until > clock_timestamp())
     ORDER BY COALESCE(w.n, 0), c.available_at
     LIMIT @limit
       FOR UPDATE OF c SKIP LOCKED
)
UPDATE ingest.commands AS c
   SET claim_id = @claim, claim_until = clock_timestamp() + @lease::interval, tries = c.tries + 1
  FROM found AS f
 WHERE c.id = f.id
RETURNING c.id, c.tenant, c.project_id, c.source, c.cause, c.verb, c.host, c.installation_id, c.repository_id, c.repository,
          c.number, c.comment_id, c.account_id, c.login, c.external_id, c.head_sha, c.traceparent, c.created_at, c.claim_id,
          c.tries, extract(epoch FROM clock_timestamp() - GREATEST(c.created_at,
              (SELECT i.paused_until
                 FROM ingest.installations AS i
                WHERE i.tenant = c.tenant AND i.host = c.host AND i.installation_id = c.installation_id)))::float8,
          (SELECT count(*)
             FROM ingest.commands AS r
            WHERE r.tenant = c.tenant AND r.project_id = c.project_id AND r.account_id = c.account_id
              AND r.outcome = 'refused' AND r.done_at > clock_timestamp() - @within::interval)::integer,
          COALESCE((SELECT p.installation_id
                      FROM ingest.projects AS p
                      JOIN ingest.installations AS i ON i.tenant = p.tenant AND i.host = p.host AND i.installation_id = p.installation_id
                     WHERE p.tenant = c.tenant AND p.id = c.project_id AND p.state = 'enrolled' AND i.state <> 'deleted' AND i.lost_at IS NULL), 0)`

	finishCommand = `
UPDATE ingest.commands AS c
   SET state = 'done', outcome = @outcome, reason = @reason, done_at = clock_timestamp(),
       claim_id = NULL, claim_until = NULL
 WHERE c.tenant = @tenant AND c.id = @id AND c.claim_id = @claim`

	// A limit is not the command's fault: its try is given back.
	postponeCommand = `
UPDATE ingest.commands AS c
   SET available_at = clock_timestamp() + @wait::interval, last_error = @error, claim_id = NULL, claim_until = NULL,
       tries = CASE WHEN @hold THEN GREATEST(c.tries - 1, 0) ELSE c.tries END
 WHERE c.tenant = @tenant AND c.id = @id AND c.claim_id = @claim`

	countCommands = `
SELECT count(*), COALESCE(extract(epoch FROM clock_timestamp() - min(c.created_at)), 0)::float8
  FROM ingest.commands AS c
 WHERE c.state = 'pending'`
)

// askQueries are prepared by a test, as queries are.
var askQueries = map[string]string{
	"findProject": findProject, "getRequestByKey": getRequestByKey, "getRequest": getRequest, "insertRequest": insertRequest,
	"insertCommand": insertCommand, "claimCommands": claimCommands, "finishCommand": finishCommand,
	"postponeCommand": postponeCommand, "countCommands": countCommands,
}
