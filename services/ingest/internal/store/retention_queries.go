package store

import "github.com/fenceline-dev/fenceline/pkg/purge"

// System: neither a purge nor an erasure is a tenant's own work.
const (
	// Uninstalled is what an event told of, or what GitHub has not had for so long.
	cancelErasures = `
DELETE FROM ingest.erasures AS e
 WHERE e.state = 'waiting'
   AND EXISTS (SELECT FROM ingest.installations AS i WHERE i.tenant = e.tenant AND i.state <> 'deleted' AND i.lost_at IS NULL)`

	noteErasures = `
INSERT INTO ingest.erasures (tenant, due_at)
SELECT DISTINCT d.tenant, clock_timestamp() + @grace::interval
  FROM ingest.installations AS d
 WHERE (d.state = 'deleted' OR d.lost_at IS NOT NULL)
   AND NOT EXISTS (SELECT FROM ingest.installations AS i WHERE i.tenant = d.tenant AND i.state <> 'deleted' AND i.lost_at IS NULL)
ON CONFLICT (tenant) DO NOTHING`

	dueErasures = `
SELECT e.tenant
  FROM ingest.erasures AS e
 WHERE e.state <> 'done' AND e.due_at <= (SELECT clock_timestamp())
 ORDER BY e.due_at
 LIMIT @limit`

	lockErasure = `
SELECT e.state FROM ingest.erasures AS e WHERE e.tenant = @tenant FOR UPDATE`

	// Whoever names a tenant to bind to waits for an erasure that is just beginning, which then finds what was bound.
	erasureOf = `SELECT e.state FROM ingest.erasures AS e WHERE e.tenant = @tenant FOR SHARE`

	lockAccounts = `
SELECT FROM ingest.accounts AS a WHERE a.tenant = @tenant ORDER BY a.host, a.account_id FOR UPDATE`

	anyInstalled = `
SELECT EXISTS (SELECT FROM ingest.installations AS i WHERE i.tenant = @tenant AND i.state <> 'deleted' AND i.lost_at IS NULL)`

	eraseProjects = `
DELETE FROM ingest.projects AS p
 WHERE p.id = ANY (ARRAY(SELECT d.id FROM ingest.projects AS d WHERE d.tenant = @tenant LIMIT @limit))`

	eraseInstallations = `DELETE FROM ingest.installations AS i WHERE i.tenant = @tenant`

	eraseAccounts = `DELETE FROM ingest.accounts AS a WHERE a.tenant = @tenant`

	beginErasure = `UPDATE ingest.erasures AS e SET state = 'erasing' WHERE e.tenant = @tenant AND e.state = 'waiting'`

	endErasure = `
UPDATE ingest.erasures AS e
   SET state = 'done', done_at = clock_timestamp()
 WHERE e.tenant = @tenant AND e.state = 'erasing'
   AND NOT EXISTS (SELECT FROM ingest.outbox AS o WHERE o.key = ANY (@keys) AND o.dispatched_at IS NULL)`

	blankDeliveries = `
UPDATE ingest.deliveries AS d
   SET tenant = NULL, project_id = NULL, decision = 'ignore', reason = @reason, installation_id = 0, repository_id = 0,
       repository = '', number = 0, head_sha = '', before_sha = '', base_ref = '', state = '', updated_at = NULL, traceparent = ''
 WHERE d.id = ANY (ARRAY(SELECT x.id FROM ingest.deliveries AS x WHERE x.tenant = @tenant LIMIT @limit))`

	eraseReplays = `
DELETE FROM ingest.replays AS r
 WHERE (r.tenant, r.receipt_id, r.replay) IN (
       SELECT d.tenant, d.receipt_id, d.replay FROM ingest.replays AS d WHERE d.tenant = @tenant LIMIT @limit)`

	eraseRequests = `
DELETE FROM ingest.requests AS r
 WHERE r.id = ANY (ARRAY(SELECT d.id FROM ingest.requests AS d WHERE d.tenant = @tenant LIMIT @limit))`

	eraseCommands = `
DELETE FROM ingest.commands AS c
 WHERE c.id = ANY (ARRAY(SELECT d.id FROM ingest.commands AS d WHERE d.tenant = @tenant LIMIT @limit))`

	eraseFormerProjects = `
DELETE FROM ingest.former_projects AS f
 WHERE f.id = ANY (ARRAY(SELECT d.id FROM ingest.former_projects AS d WHERE d.tenant = @tenant LIMIT @limit))`

	// Ids are made in the order of time, so that the primary key finds what is old.
	purgeDeliveries = `
DELETE FROM ingest.deliveries AS d
 WHERE d.id = ANY (ARRAY(
       SELECT o.id FROM ingest.deliveries AS o
        WHERE o.id < ` + purge.Made + ` AND o.received_at < (SELECT clock_timestamp() - @age::interval)
        ORDER BY o.id
        LIMIT @limit
          FOR UPDATE SKIP LOCKED))`

	purgeReplays = `
DELETE FROM ingest.replays AS r
 WHERE (r.tenant, r.receipt_id, r.replay) IN (
       SELECT o.tenant, o.receipt_id, o.replay FROM ingest.replays AS o
        WHERE o.created_at < (SELECT clock_timestamp() - @age::interval)
        LIMIT @limit
          FOR UPDATE SKIP LOCKED)`

	purgeRequests = `
DELETE FROM ingest.requests AS r
 WHERE r.id = ANY (ARRAY(
       SELECT o.id FROM ingest.requests AS o
        WHERE o.id < ` + purge.Made + ` AND o.created_at < (SELECT clock_timestamp() - @age::interval)
        ORDER BY o.id
        LIMIT @limit
          FOR UPDATE SKIP LOCKED))`

	purgeCommands = `
DELETE FROM ingest.commands AS c
 WHERE c.id = ANY (ARRAY(
       SELECT o.id FROM ingest.commands AS o
        WHERE o.id < ` + purge.Made + ` AND o.done_at < (SELECT clock_timestamp() - @age::interval)
        ORDER BY o.id
        LIMIT @limit
          FOR UPDATE SKIP LOCKED))`

	purgeMissed = `
DELETE FROM ingest.missed AS m
 WHERE (m.delivery_id, m.host, m.hook) IN (
       SELECT o.delivery_id, o.host, o.hook FROM ingest.missed AS o
        WHERE o.ended_at < (SELECT clock_timestamp() - @age::interval)
        ORDER BY o.ended_at
        LIMIT @limit
          FOR UPDATE SKIP LOCKED)`

	purgeErasures = `
DELETE FROM ingest.erasures AS e
 WHERE e.tenant = ANY (ARRAY(
       SELECT o.tenant FROM ingest.erasures AS o
        WHERE o.done_at < (SELECT clock_timestamp() - @age::interval)
        LIMIT @limit
          FOR UPDATE SKIP LOCKED))`
)

// retentionQueries are prepared against the migrated schema by a test, so that a wrong column fails there.
var retentionQueries = map[string]string{
	"cancelErasures": cancelErasures, "noteErasures": noteErasures, "dueErasures": dueErasures, "lockErasure": lockErasure,
	"lockAccounts": lockAccounts, "erasureOf": erasureOf, "anyInstalled": anyInstalled, "eraseProjects": eraseProjects, "eraseInstallations": eraseInstallations,
	"eraseAccounts": eraseAccounts, "beginErasure": beginErasure, "endErasure": endErasure, "blankDeliveries": blankDeliveries,
	"eraseReplays": eraseReplays, "eraseRequests": eraseRequests, "eraseCommands": eraseCommands,
	"eraseFormerProjects": eraseFormerProjects, "purgeDeliveries": purgeDeliveries, "purgeReplays": purgeReplays,
	"purgeRequests": purgeRequests, "purgeCommands": purgeCommands, "purgeMissed": purgeMissed, "purgeErasures": purgeErasures,
}
