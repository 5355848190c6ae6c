package store

// columns of an attempt, in the order of scanAttempt.
const columns = `
       a.id, a.tenant, a.target_id, a.lifecycle, a.run_id, a.ordinal, a.claim_id, a.generation,
       a.base_sha, a.head_sha, a.merge_base_sha, a.from_fork, a.diff_bytes, a.engine,
       a.number, a.state, a.reserved, a.cost, a.estimate, a.verdict, a.errors, a.warnings, a.infos,
       a.seen_files, a.seen_bytes, a.reason, a.traceparent, a.lease_until, a.created_at, a.started_at, a.ended_at`

const (
	// What a claim has to know before it makes an attempt: its run's numbers, the finished attempts of
	// the same diff, and what it may have made itself before an answer was lost.
	known = `
SELECT` + columns + `
  FROM reviewer.attempts AS a
 WHERE a.tenant = @tenant AND a.run_id = @run AND a.number > 0
 UNION
SELECT` + columns + `
  FROM reviewer.attempts AS a
 WHERE a.tenant = @tenant AND a.target_id = @target AND a.head_sha = @head AND a.state = 'finished'
   AND a.lifecycle = @lifecycle AND a.merge_base_sha = @merge_base AND a.ordinal = @ordinal
 UNION
SELECT` + columns + `
  FROM reviewer.attempts AS a
 WHERE a.tenant = @tenant AND a.claim_id = @claim`

	insertAttempt = `
INSERT INTO reviewer.attempts
       (id, tenant, target_id, lifecycle, run_id, ordinal, claim_id, generation, base_sha, head_sha,
        merge_base_sha, from_fork, diff_bytes, engine, state, reserved, traceparent, lease_until, created_at)
VALUES (@id, @tenant, @target, @lifecycle, @run, @ordinal, @claim, @generation, @base, @head,
        @merge_base, @fork, @diff_bytes, @engine, @state, @reserved, @trace,
        clock_timestamp() + @lease::interval, clock_timestamp())
RETURNING lease_until, created_at`

	lockAttempt = `
SELECT` + columns + `, clock_timestamp()
  FROM reviewer.attempts AS a
 WHERE a.tenant = @tenant AND a.id = @id
   FOR UPDATE`

	// Those of a start: the attempt, the numbers of its run, and the open ones of its target. Locked in
	// one order, so that two starts wait for each other rather than die of each other.
	lockForStart = `
SELECT` + columns + `, clock_timestamp()
  FROM reviewer.attempts AS a
 WHERE a.tenant = @tenant
   AND (a.run_id = @run OR a.target_id = @target AND a.state IN ('created', 'started'))
 ORDER BY a.id
   FOR UPDATE`

	// The compare-and-swap of every transition: the state it was decided on, and the claim.
	saveAttempt = `
UPDATE reviewer.attempts AS a
   SET number = @number, state = @state, cost = @cost, estimate = @estimate, verdict = @verdict,
       errors = @errors, warnings = @warnings, infos = @infos, seen_files = @seen_files, seen_bytes = @seen_bytes,
       reason = @reason, lease_until = @lease_until, started_at = @started_at, ended_at = @ended_at
 WHERE a.tenant = @tenant AND a.id = @id AND a.claim_id = @claim AND a.state = @was`

	insertFindings = `
INSERT INTO reviewer.findings
       (tenant, attempt_id, sequence, path, line, severity, rule, message, start_line, hunk_start, hunk_end, suggestion)
SELECT @tenant, @attempt, f.sequence, f.path, f.line, f.severity, f.rule, f.message, f.start_line, f.hunk_start, f.hunk_end, f.suggestion
  FROM unnest(@sequences::integer[], @paths::text[], @lines::integer[], @severities::text[], @rules::text[], @messages::text[],
              @start_lines::integer[], @hunk_starts::integer[], @hunk_ends::integer[], @suggestions::text[])
    AS f (sequence, path, line, severity, rule, message, start_line, hunk_start, hunk_end, suggestion)`

	insertOmissions = `
INSERT INTO reviewer.omissions (tenant, attempt_id, sequence, path, reason, minor)
SELECT @tenant, @attempt, o.sequence, o.path, o.reason, o.minor
  FROM unnest(@paths::text[], @reasons::text[], @minors::boolean[]) WITH ORDINALITY AS o (path, reason, minor, sequence)`

	keepAttempt = `
UPDATE reviewer.attempts AS a
   SET lease_until = clock_timestamp() + @lease::interval
 WHERE a.tenant = @tenant AND a.id = @id AND a.claim_id = @claim AND a.state IN ('created', 'started')`

	getAttempt = `
SELECT` + columns + `
  FROM reviewer.attempts AS a
 WHERE a.tenant = @tenant AND a.id = @id`

	listAttempts = `
SELECT` + columns + `
  FROM reviewer.attempts AS a
 WHERE a.tenant = @tenant
   AND (@run::uuid IS NULL OR a.run_id = @run)
   AND (@target::uuid IS NULL OR a.target_id = @target)
   AND (a.created_at, a.id) < (@before, @before_id)
 ORDER BY a.created_at DESC, a.id DESC
 LIMIT @limit`

	listFindings = `
SELECT f.sequence, f.path, f.line, f.severity, f.rule, f.message, f.start_line, f.hunk_start, f.hunk_end, f.suggestion
  FROM reviewer.findings AS f
 WHERE f.tenant = @tenant AND f.attempt_id = @attempt AND f.sequence > @after
 ORDER BY f.sequence
 LIMIT @limit`

	listOmissions = `
SELECT o.path, o.reason, o.minor
  FROM reviewer.omissions AS o
 WHERE o.tenant = @tenant AND o.attempt_id = @attempt
 ORDER BY o.sequence`

	getSeen = `
SELECT a.seen_files, a.seen_bytes
  FROM reviewer.attempts AS a
 WHERE a.tenant = @tenant AND a.id = @attempt`

	// System: the reaper looks across tenants.
	orphans = `
SELECT a.tenant, a.id, a.traceparent
  FROM reviewer.attempts AS a
 WHERE a.state IN ('created', 'started') AND a.lease_until < clock_timestamp() - @margin::interval
 ORDER BY a.lease_until
 LIMIT @limit`

	// System: the depth of what is at work.
	depth = `
SELECT count(*), COALESCE(clock_timestamp() - min(a.created_at), interval '0')
  FROM reviewer.attempts AS a
 WHERE a.state IN ('created', 'started')`
)

// queries are prepared against the migrated schema by a test, so that a wrong column fails there.
var queries = map[string]string{
	"known": known, "insertAttempt": insertAttempt, "lockAttempt": lockAttempt,
	"lockForStart": lockForStart, "saveAttempt": saveAttempt, "insertFindings": insertFindings,
	"insertOmissions": insertOmissions, "keepAttempt": keepAttempt, "getAttempt": getAttempt,
	"listAttempts": listAttempts, "listFindings": listFindings, "listOmissions": listOmissions, "getSeen": getSeen,
	"orphans": orphans, "depth": depth,
}
