package store

const (
	sweptColumns = `p.id, p.tenant, p.host, p.repository_id, p.repository, p.installation_id, i.account_id, p.archived, p.misses`

	// The project whose listing is due the longest, of an installation that can be asked: those that there is news of
	// first, or none of them.
	takeProject = `
WITH due AS (
  SELECT p.id, i.account_id
    FROM ingest.projects AS p
    JOIN ingest.installations AS i ON i.tenant = p.tenant AND i.host = p.host AND i.installation_id = p.installation_id
   WHERE p.state = 'enrolled' AND p.host = @host AND i.state = 'active' AND i.lost_at IS NULL AND ` + awake + `
     AND (p.sweep_at IS NULL AND @news OR p.sweep_at <= clock_timestamp())
   ORDER BY p.sweep_at NULLS FIRST
   LIMIT 1
     FOR UPDATE OF p SKIP LOCKED
)
UPDATE ingest.projects AS p
   SET sweep_at = clock_timestamp() + @lease::interval, sweep_claim = @claim
  FROM due AS i
 WHERE p.id = i.id
RETURNING ` + sweptColumns

	// One that another tenant lays claim to, and that is not listed: only where it is now is asked.
	takeContested = `
WITH due AS (
  SELECT p.id, i.account_id
    FROM ingest.projects AS p
    JOIN ingest.installations AS i ON i.tenant = p.tenant AND i.host = p.host AND i.installation_id = p.installation_id
   WHERE p.contested_at IS NOT NULL AND p.host = @host
     AND (p.state = 'removed' OR p.state = 'enrolled' AND (i.state <> 'active' OR i.lost_at IS NOT NULL))
   ORDER BY p.contested_at
   LIMIT 1
     FOR UPDATE OF p SKIP LOCKED
)
UPDATE ingest.projects AS p
   SET contested_at = NULL, sweep_at = clock_timestamp() + @lease::interval, sweep_claim = @claim
  FROM due AS i
 WHERE p.id = i.id
RETURNING ` + sweptColumns

	// A listing's steps hold its claim; no row means that there was news meanwhile, or that GitHub makes the
	// installation wait: it is to be listed anew.
	renewProject = `
UPDATE ingest.projects AS p
   SET sweep_at = clock_timestamp() + @lease::interval
  FROM ingest.installations AS i
 WHERE p.id = @id AND p.sweep_claim = @claim AND (p.state = 'enrolled' AND ` + awake + ` OR @contested)
   AND i.tenant = p.tenant AND i.host = p.host AND i.installation_id = p.installation_id`

	leaveProject = `
UPDATE ingest.projects AS p
   SET sweep_at = clock_timestamp() + @after::interval, sweep_claim = NULL,
       swept_at = CASE WHEN @done THEN clock_timestamp() ELSE p.swept_at END,
       misses   = CASE WHEN @done THEN 0 WHEN @missed THEN p.misses + 1 ELSE p.misses END
 WHERE p.id = @id AND p.sweep_claim = @claim`

	refreshProject = `
UPDATE ingest.projects AS p
   SET repository = @repository, archived = @archived
 WHERE p.id = @id AND p.sweep_claim = @claim AND (p.repository <> @repository OR p.archived <> @archived)`

	refreshAccount = `
UPDATE ingest.accounts AS a
   SET login = @login
 WHERE a.tenant = @tenant AND a.host = @host AND a.account_id = @account AND a.login <> @login`

	lostProject = `
UPDATE ingest.projects AS p
   SET state = 'removed', removed_at = clock_timestamp(), sweep_claim = NULL, misses = 0
 WHERE p.id = @id AND p.sweep_claim = @claim AND p.state = 'enrolled'`

	movedProject = `
WITH moved AS (
  DELETE FROM ingest.projects AS p
   WHERE p.id = @id AND p.sweep_claim = @claim
  RETURNING p.id, p.tenant, p.host, p.repository_id, p.repository, p.installation_id, p.created_at
)
INSERT INTO ingest.former_projects (id, tenant, host, repository_id, repository, installation_id, created_at)
SELECT m.id, m.tenant, m.host, m.repository_id, m.repository, m.installation_id, m.created_at FROM moved AS m`

	enrolledNow = `
SELECT p.tenant, p.id, p.installation_id, p.repository
  FROM ingest.projects AS p
 WHERE p.host = @host AND p.repository_id = @repository AND p.state = 'enrolled'`

	accountTenant = `SELECT a.tenant FROM ingest.accounts AS a WHERE a.host = @host AND a.account_id = @account`

	// News of a repository, of all of an installation, or of repositories that two tenants lay claim to: their
	// projects are listed at once, whoever lists them now.
	nudgeRepository = `
UPDATE ingest.projects AS p
   SET sweep_at = NULL, sweep_claim = NULL, misses = GREATEST(p.misses, @misses)
 WHERE p.host = @host AND p.repository_id = @repository AND p.state = 'enrolled'`

	nudgeInstallation = `
UPDATE ingest.projects AS p
   SET sweep_at = NULL, sweep_claim = NULL
 WHERE p.tenant = @tenant AND p.host = @host AND p.installation_id = @installation AND p.state = 'enrolled'`

	nudgeForeign = `
UPDATE ingest.projects AS p
   SET sweep_at = NULL, sweep_claim = NULL, contested_at = clock_timestamp()
 WHERE p.host = @host AND p.repository_id = ANY (@repository_ids::bigint[]) AND p.tenant <> @tenant AND p.state IN ('enrolled', 'removed')
   AND (p.swept_at IS NULL OR p.swept_at < clock_timestamp() - interval '1 minute')`

	// Enrolled by its first delivery: what that says of its own pull request goes ahead.
	settleProject = `
UPDATE ingest.projects AS p
   SET sweep_at = clock_timestamp() + @after::interval
 WHERE p.id = ANY (@ids::uuid[]) AND p.sweep_at IS NULL`

	sweepDepth = `
SELECT count(*), COALESCE(extract(epoch FROM clock_timestamp() - min(COALESCE(p.sweep_at, p.created_at))), 0)::float8
  FROM ingest.projects AS p
  JOIN ingest.installations AS i ON i.tenant = p.tenant AND i.host = p.host AND i.installation_id = p.installation_id
 WHERE p.state = 'enrolled' AND i.state = 'active' AND i.lost_at IS NULL AND ` + awake + ` AND (p.sweep_at IS NULL OR p.sweep_at <= clock_timestamp())`
)

var sweepQueries = map[string]string{
	"holdSweep": holdSweep, "renewSweep": renewSweep, "leaveSweep": leaveSweep, "saveCursor": saveCursor, "endPass": endPass,
	"recordMissed": recordMissed, "endRecovered": endRecovered, "endDelivered": endDelivered, "endTried": endTried, "takeMissed": takeMissed,
	"endMissed": endMissed, "putOffMissed": putOffMissed, "missedDepth": missedDepth,
	"takeProject": takeProject, "takeContested": takeContested, "renewProject": renewProject, "leaveProject": leaveProject,
	"refreshProject": refreshProject, "refreshAccount": refreshAccount, "lostProject": lostProject, "movedProject": movedProject,
	"enrolledNow": enrolledNow, "accountTenant": accountTenant, "nudgeRepository": nudgeRepository, "nudgeInstallation": nudgeInstallation,
	"nudgeForeign": nudgeForeign, "settleProject": settleProject, "sweepDepth": sweepDepth,
}
