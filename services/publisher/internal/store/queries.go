package store

import "github.com/fenceline-dev/fenceline/pkg/outbox"

const (
	// An epoch that comes again with another content fails on digest NOT NULL.
	recordEpoch = `
INSERT INTO publisher.epochs AS e
       (tenant, target_id, lifecycle, epoch, step, kind, digest, project_id, host, installation_id, repository_id,
        repository, number, run_id, base_ref, base_sha, head_sha, merge_base_sha, ordinal, attempt_id, clean,
        errors, warnings, infos, engine, cost_micros, reason, detail, newer_head_sha, reply_id, comment_id, reaction, traceparent)
VALUES (@tenant, @target, @lifecycle, @epoch, @step, @kind, @digest, @project, @host, @installation, @repository_id,
        @repository, @number, @run, @base_ref, @base_sha, @head_sha, @merge_base_sha, @ordinal, @attempt, @clean,
        @errors, @warnings, @infos, @engine, @cost, @reason, @detail, @newer_head, @reply, @comment, @reaction, @traceparent)
ON CONFLICT (tenant, target_id, lifecycle, epoch, step) DO UPDATE
   SET digest = CASE WHEN e.digest = EXCLUDED.digest THEN e.digest END`

	// A project that was never configured has the first three. What takes something back is written on the comment
	// whatever is chosen now.
	recordIntents = `
WITH chosen AS (
    SELECT COALESCE((SELECT p.surfaces FROM publisher.projects AS p WHERE p.tenant = @tenant AND p.project_id = @project),
                    ARRAY['summary', 'review', 'check_run']) AS surfaces
), given AS (
    SELECT g.*
      FROM chosen AS c,
           unnest(@ids::uuid[], @keys::text[], @surfaces::text[], @surface_keys::text[], @ranks::integer[])
           AS g (id, key, surface, surface_key, rank)
     WHERE g.surface = ANY (c.surfaces) OR g.surface IN ('reaction', 'reply') OR g.surface = 'summary' AND @kind::text <> 'result'
), places AS (
    INSERT INTO publisher.surfaces (tenant, target_id, surface, surface_key)
    SELECT @tenant, @target, g.surface, g.surface_key
      FROM given AS g
    ON CONFLICT (tenant, target_id, surface, surface_key) DO NOTHING
), made AS (
    INSERT INTO publisher.intents
           (id, tenant, key, target_id, lifecycle, epoch, step, host, installation_id, surface, surface_key, rank)
    SELECT g.id, @tenant, g.key, @target, @lifecycle, @epoch, @step, @host, @installation, g.surface, g.surface_key, g.rank
      FROM given AS g
    ON CONFLICT (tenant, key) DO NOTHING
), idle AS (
    UPDATE publisher.epochs AS e
       SET ended_at = clock_timestamp()
     WHERE e.tenant = @tenant AND e.target_id = @target AND e.lifecycle = @lifecycle AND e.epoch = @epoch AND e.step = @step
       AND e.ended_at IS NULL AND NOT EXISTS (SELECT FROM given)
)
SELECT count(*) FROM given`

	addIntents = `
WITH given AS (
    SELECT *
      FROM unnest(@ids::uuid[], @keys::text[], @targets::uuid[], @lifecycles::bigint[], @epochs::bigint[], @steps::bigint[],
                  @surfaces::text[], @surface_keys::text[], @ranks::integer[], @remarks::text[], @surface_ids::bigint[], @surface_urls::text[])
           AS g (id, key, target_id, lifecycle, epoch, step, surface, surface_key, rank, remarks, surface_id, surface_url)
), places AS (
    INSERT INTO publisher.surfaces (tenant, target_id, surface, surface_key, github_id, url)
    SELECT @tenant, g.target_id, g.surface, g.surface_key, g.surface_id, g.surface_url
      FROM given AS g
    ON CONFLICT (tenant, target_id, surface, surface_key) DO NOTHING
)
INSERT INTO publisher.intents
       (id, tenant, key, target_id, lifecycle, epoch, step, host, installation_id, surface, surface_key, rank, remarks)
SELECT g.id, @tenant, g.key, g.target_id, g.lifecycle, g.epoch, g.step, @host, @installation, g.surface, g.surface_key, g.rank,
       string_to_array(g.remarks, ',')
  FROM given AS g
ON CONFLICT (tenant, key) DO NOTHING`

	// The row is locked until the commit that shows the intents, so that a sender that gives its lease
	// back either sees them or is followed by this.
	callSender = `
INSERT INTO publisher.senders AS s (tenant, host, installation_id, due_at)
VALUES (@tenant, @host, @installation, clock_timestamp())
ON CONFLICT (tenant, host, installation_id) DO UPDATE
   SET due_at = LEAST(COALESCE(s.due_at, EXCLUDED.due_at), EXCLUDED.due_at)`

	claimSender = `
WITH found AS (
    SELECT s.tenant, s.host, s.installation_id
      FROM publisher.senders AS s
     WHERE s.due_at <= (SELECT clock_timestamp())
       AND (s.lease_until IS NULL OR s.lease_until <= clock_timestamp())
       AND (s.paused_until IS NULL OR s.paused_until <= clock_timestamp())
     ORDER BY s.due_at
     LIMIT 1
       FOR UPDATE SKIP LOCKED
)
UPDATE publisher.senders AS s
   SET lease_id = @lease, lease_until = clock_timestamp() + @ttl::interval, version = s.version + 1
  FROM found AS f
 WHERE s.tenant = f.tenant AND s.host = f.host AND s.installation_id = f.installation_id
RETURNING s.tenant, s.host, s.installation_id, s.throttles, s.next_write_at, clock_timestamp() AS now`

	dueWork = `
WITH due AS (
    SELECT i.tenant, i.target_id, i.host, i.installation_id, min(i.available_at) AS since
      FROM publisher.senders AS s
      JOIN publisher.intents AS i
        ON i.tenant = s.tenant AND i.host = s.host AND i.installation_id = s.installation_id
     WHERE s.lease_id = @lease AND i.state IN ('pending', 'sending')
       AND i.available_at <= (SELECT clock_timestamp())
     GROUP BY i.tenant, i.target_id, i.host, i.installation_id
     ORDER BY since
     LIMIT @targets
)`

	workColumns = `
SELECT e.tenant, e.target_id, e.lifecycle, e.epoch, e.step, e.kind, e.project_id, e.host, e.installation_id,
       e.repository_id, e.repository, e.number, e.run_id, e.base_ref, e.base_sha, e.head_sha,
       e.merge_base_sha, e.ordinal, e.attempt_id, e.clean, e.errors, e.warnings, e.infos, e.engine,
       e.cost_micros, e.reason AS epoch_reason, e.detail, e.newer_head_sha, e.reply_id, e.comment_id, e.reaction, e.traceparent,
       e.created_at AS epoch_created_at,
       i.id, i.key, i.rank, i.surface, i.surface_key, i.state, i.op, i.reason, i.attempts, i.holds, i.github_id,
       i.url, array_to_string(i.remarks, ',') AS remarks, i.last_error, i.version, i.created_at, i.available_at, i.sent_at, i.ended_at,
       f.github_id AS surface_id, f.url AS surface_url, f.shown_lifecycle, f.shown_epoch, f.shown_step,
       f.run_id AS surface_run_id, f.recreated, f.open, f.checks, f.check_at,
       l.lifecycle AS last_lifecycle, l.epoch AS last_epoch, l.step AS last_step`

	workJoins = `
  JOIN publisher.intents AS i
    ON i.tenant = e.tenant AND i.target_id = e.target_id AND i.lifecycle = e.lifecycle AND i.epoch = e.epoch AND i.step = e.step
  JOIN publisher.surfaces AS f
    ON f.tenant = i.tenant AND f.target_id = i.target_id AND f.surface = i.surface AND f.surface_key = i.surface_key
 CROSS JOIN LATERAL (SELECT n.lifecycle, n.epoch, n.step
                       FROM publisher.epochs AS n
                      WHERE n.tenant = e.tenant AND n.target_id = e.target_id
                      ORDER BY n.lifecycle DESC, n.epoch DESC, n.step DESC
                      LIMIT 1) AS l`

	loadWork = dueWork + workColumns + `
  FROM due AS d
  JOIN publisher.epochs AS e
    ON e.tenant = d.tenant AND e.target_id = d.target_id AND e.ended_at IS NULL
   AND e.host = d.host AND e.installation_id = d.installation_id` + workJoins + `
 ORDER BY d.since, d.target_id, e.lifecycle, e.epoch, e.step, i.rank, i.id`

	// Of more targets than loadWork's where one became due meanwhile.
	loadOpen = dueWork + `
SELECT f.target_id, f.surface, f.surface_key, f.github_id, f.url, f.shown_lifecycle, f.shown_epoch, f.shown_step, f.run_id, f.recreated,
       f.checks, f.check_at
  FROM due AS d
  JOIN publisher.surfaces AS f ON f.tenant = d.tenant AND f.target_id = d.target_id
 WHERE f.open
 ORDER BY f.target_id, f.surface, f.surface_key`

	// What was delivered on surfaces that are to be looked at: the epoch that each shows, whole.
	loadChecks = `
WITH due AS (
    SELECT f.tenant, f.target_id, f.shown_lifecycle, f.shown_epoch, f.shown_step, min(f.check_at) AS since
      FROM publisher.senders AS s
      JOIN publisher.surfaces AS f ON f.tenant = s.tenant AND f.check_at <= (SELECT clock_timestamp())
      JOIN publisher.epochs AS e
        ON e.tenant = f.tenant AND e.target_id = f.target_id AND e.lifecycle = f.shown_lifecycle AND e.epoch = f.shown_epoch
       AND e.step = f.shown_step AND e.host = s.host AND e.installation_id = s.installation_id
     WHERE s.lease_id = @lease
     GROUP BY f.tenant, f.target_id, f.shown_lifecycle, f.shown_epoch, f.shown_step
     ORDER BY since
     LIMIT @targets
)` + workColumns + `
  FROM due AS d
  JOIN publisher.epochs AS e
    ON e.tenant = d.tenant AND e.target_id = d.target_id AND e.lifecycle = d.shown_lifecycle AND e.epoch = d.shown_epoch
   AND e.step = d.shown_step` + workJoins + `
 ORDER BY d.since, e.target_id, e.lifecycle, e.epoch, e.step, i.rank, i.id`

	// As often as they were said.
	saidBefore = `
SELECT r.fingerprint
  FROM publisher.intents AS i, unnest(i.remarks) AS r (fingerprint)
 WHERE i.tenant = @tenant AND i.target_id = @target AND i.lifecycle = @lifecycle
   AND i.surface = 'review' AND i.state = 'confirmed' AND (i.epoch, i.step) <> (@epoch, @step)`

	// The newest result of each other run.
	resultsBefore = `
SELECT h.*
  FROM (SELECT DISTINCT ON (e.run_id)
               e.lifecycle, e.epoch, e.run_id, e.base_ref, e.base_sha, e.head_sha, e.merge_base_sha, e.ordinal, e.attempt_id,
               e.clean, e.errors, e.warnings, e.infos, e.engine, e.cost_micros, COALESCE(f.url, '') AS url
          FROM publisher.epochs AS e
          LEFT JOIN publisher.surfaces AS f
            ON f.tenant = e.tenant AND f.target_id = e.target_id AND f.surface = 'review' AND f.surface_key = e.run_id::text
         WHERE e.tenant = @tenant AND e.target_id = @target AND e.kind = 'result' AND e.delivered
           AND (e.lifecycle, e.epoch) < (@lifecycle, @epoch) AND e.run_id IS DISTINCT FROM @run
         ORDER BY e.run_id, e.lifecycle DESC, e.epoch DESC) AS h
 ORDER BY h.lifecycle DESC, h.epoch DESC
 LIMIT @limit`

	configureProject = `
INSERT INTO publisher.projects AS p (tenant, project_id, version, surfaces)
VALUES (@tenant, @project, @version, @surfaces)
ON CONFLICT (tenant, project_id) DO UPDATE
   SET version = EXCLUDED.version, surfaces = EXCLUDED.surfaces, updated_at = clock_timestamp()
 WHERE p.version < EXCLUDED.version`

	// The lock comes first: what is checked and written after it is what no other sender changes.
	lockSender = `
SELECT s.version
  FROM publisher.senders AS s
 WHERE s.tenant = @tenant AND s.host = @host AND s.installation_id = @installation
   FOR UPDATE`

	// A state that was read before somebody else's save fails on version NOT NULL.
	saveCells = `
WITH given AS (
    SELECT *
      FROM unnest(@ids::uuid[], @versions::bigint[], @states::text[], @ops::text[], @reasons::text[],
                  @attempts::integer[], @holds::integer[], @github_ids::bigint[], @urls::text[],
                  @bodies::text[], @errors::text[], @availables::timestamptz[], @sents::timestamptz[],
                  @endeds::timestamptz[], @targets::uuid[], @surfaces::text[], @surface_keys::text[],
                  @surface_ids::bigint[], @surface_urls::text[], @lifecycles::bigint[], @epochs::bigint[], @steps::bigint[],
                  @runs::uuid[], @recreateds::boolean[], @opens::boolean[], @checks::smallint[], @check_ats::timestamptz[], @remarks::text[])
           AS g (id, version, state, op, reason, attempts, holds, github_id, url, body, last_error,
                 available_at, sent_at, ended_at, target_id, surface, surface_key, surface_id, surface_url,
                 lifecycle, epoch, step, run_id, recreated, open, checks, check_at, remarks)
), shown AS (
    UPDATE publisher.surfaces AS f
       SET github_id = g.surface_id, url = g.surface_url, shown_lifecycle = g.lifecycle, shown_epoch = g.epoch,
           shown_step = g.step, run_id = g.run_id, recreated = g.recreated, open = g.open, checks = g.checks,
           check_at = g.check_at, updated_at = clock_timestamp()
      FROM given AS g
     WHERE f.tenant = @tenant AND f.target_id = g.target_id
       AND f.surface = g.surface AND f.surface_key = g.surface_key
       AND (f.github_id, f.url, f.shown_lifecycle, f.shown_epoch, f.shown_step, f.recreated, f.open, f.checks, f.check_at)
           IS DISTINCT FROM (g.surface_id, g.surface_url, g.lifecycle, g.epoch, g.step, g.recreated, g.open, g.checks, g.check_at)
)
UPDATE publisher.intents AS i
   SET version = CASE WHEN i.version = g.version THEN i.version + 1 END,
       state = g.state, op = g.op, reason = g.reason, attempts = g.attempts, holds = g.holds,
       github_id = g.github_id, url = g.url, body = COALESCE(g.body, i.body), last_error = g.last_error,
       remarks = string_to_array(g.remarks, ','), available_at = g.available_at, sent_at = g.sent_at, ended_at = g.ended_at
  FROM given AS g
 WHERE i.tenant = @tenant AND i.id = g.id`

	endEpochs = `
UPDATE publisher.epochs AS e
   SET ended_at = clock_timestamp(), delivered = g.delivered
  FROM unnest(@targets::uuid[], @lifecycles::bigint[], @epochs::bigint[], @steps::bigint[], @delivereds::boolean[])
       AS g (target_id, lifecycle, epoch, step, delivered)
 WHERE e.tenant = @tenant AND e.target_id = g.target_id AND e.lifecycle = g.lifecycle AND e.epoch = g.epoch AND e.step = g.step`

	// A save under a lease that is lost, or too short for the send that it begins, fails on version NOT NULL.
	keepSender = `
UPDATE publisher.senders AS s
   SET version = CASE WHEN s.lease_id = @lease AND s.lease_until > clock_timestamp() + @needed::interval
                      THEN s.version + 1 END,
       next_write_at = CASE WHEN @wrote THEN clock_timestamp() + @spacing::interval ELSE s.next_write_at END,
       throttles = @throttles,
       paused_until = CASE WHEN @pause::interval > interval '0' THEN clock_timestamp() + @pause::interval
                           ELSE s.paused_until END,
       pause_reason = CASE WHEN @pause::interval > interval '0' THEN @pause_reason ELSE s.pause_reason END
 WHERE s.tenant = @tenant AND s.host = @host AND s.installation_id = @installation`

	// As keepSender, and gives the lease back. The lock is held since before this statement began, so it
	// sees every intent whose recorder did not wait for it. What is left of a backlog is due from now on: whoever
	// waits for a turn meanwhile comes first.
	releaseSender = `
UPDATE publisher.senders AS s
   SET version = CASE WHEN s.lease_id = @lease AND s.lease_until > clock_timestamp() THEN s.version + 1 END,
       lease_id = NULL, lease_until = NULL,
       next_write_at = CASE WHEN @wrote THEN clock_timestamp() + @spacing::interval ELSE s.next_write_at END,
       throttles = @throttles,
       paused_until = CASE WHEN @pause::interval > interval '0' THEN clock_timestamp() + @pause::interval
                           WHEN s.paused_until > clock_timestamp() THEN s.paused_until END,
       pause_reason = CASE WHEN @pause::interval > interval '0' THEN @pause_reason
                           WHEN s.paused_until > clock_timestamp() THEN s.pause_reason END,
       due_at = GREATEST((SELECT CASE WHEN min(d.at) IS NOT NULL THEN GREATEST(min(d.at), clock_timestamp()) END
                            FROM (SELECT min(i.available_at)
                                    FROM publisher.intents AS i
                                   WHERE i.tenant = s.tenant AND i.host = s.host
                                     AND i.installation_id = s.installation_id
                                     AND i.state IN ('pending', 'sending')
                                  UNION ALL
                                  (SELECT f.check_at
                                     FROM publisher.surfaces AS f
                                     JOIN publisher.epochs AS e
                                       ON e.tenant = f.tenant AND e.target_id = f.target_id AND e.lifecycle = f.shown_lifecycle
                                      AND e.epoch = f.shown_epoch AND e.step = f.shown_step
                                    WHERE f.tenant = s.tenant AND f.check_at IS NOT NULL
                                      AND e.host = s.host AND e.installation_id = s.installation_id
                                    ORDER BY f.check_at
                                    LIMIT 1)) AS d (at)),
                         CASE WHEN @pause::interval > interval '0' THEN clock_timestamp() + @pause::interval
                              WHEN s.paused_until > clock_timestamp() THEN s.paused_until END)
 WHERE s.tenant = @tenant AND s.host = @host AND s.installation_id = @installation
RETURNING extract(epoch FROM s.due_at - clock_timestamp())::float8`

	intentColumns = `
SELECT i.id, i.tenant, i.key, i.target_id, i.lifecycle, i.epoch, i.step, e.kind, i.host, i.installation_id, i.rank, i.surface, i.surface_key, i.state,
       i.op, i.reason, i.attempts, i.holds, i.github_id, i.url, i.last_error, i.version, i.created_at,
       i.available_at, i.sent_at, i.ended_at, e.run_id, e.head_sha, e.traceparent, clock_timestamp() AS now`

	fromIntents = `
  FROM publisher.intents AS i
  JOIN publisher.epochs AS e
    ON e.tenant = i.tenant AND e.target_id = i.target_id AND e.lifecycle = i.lifecycle AND e.epoch = i.epoch AND e.step = i.step`

	// Newest first; ids are made in the order of time. Bodies are left out: they may be long.
	listIntents = intentColumns + `, '' AS body` + fromIntents + `
 WHERE i.tenant = @tenant AND (@before::uuid IS NULL OR i.id < @before)
   AND (@target::uuid IS NULL OR i.target_id = @target)
   AND (@state = '' OR i.state = @state)
 ORDER BY i.id DESC
 LIMIT @size`

	getIntent = intentColumns + `, i.body` + fromIntents + `
 WHERE i.tenant = @tenant AND i.id = @id`

	lockIntent = getIntent + `
   FOR UPDATE OF i`

	hurryIntent = `
UPDATE publisher.intents AS i
   SET available_at = @available
 WHERE i.tenant = @tenant AND i.id = @id`

	queueDepth = `
SELECT count(*), COALESCE(extract(epoch FROM clock_timestamp() - min(i.created_at)), 0)::float8
  FROM publisher.intents AS i
 WHERE i.state IN ('pending', 'sending')`
)

// Queries are all statements of the store by name, for the test that prepares them.
func Queries() map[string]string {
	all := map[string]string{
		"recordEpoch": recordEpoch, "recordIntents": recordIntents, "addIntents": addIntents, "callSender": callSender,
		"claimSender": claimSender, "loadWork": loadWork, "loadOpen": loadOpen, "loadChecks": loadChecks,
		"saidBefore": saidBefore, "resultsBefore": resultsBefore, "configureProject": configureProject,
		"lockSender": lockSender, "saveCells": saveCells,
		"endEpochs": endEpochs, "keepSender": keepSender, "releaseSender": releaseSender,
		"listIntents": listIntents, "getIntent": getIntent, "lockIntent": lockIntent,
		"hurryIntent": hurryIntent, "queueDepth": queueDepth,
		"lifecycleBusy": lifecycleBusy, "tenantBusy": tenantBusy, "deleteLifecycle": deleteLifecycle,
		"deleteSurfaces": deleteSurfaces, "deleteTenant": deleteTenant, "eraseSurfaces": eraseSurfaces,
		"eraseSenders": eraseSenders, "eraseProjects": eraseProjects, "purgeOutdated": purgeOutdated, "purgeAnswered": purgeAnswered,
	}
	for name, sql := range outbox.Queries(schema) {
		all["outbox."+name] = sql
	}
	return all
}
