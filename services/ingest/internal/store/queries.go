package store

const (
	insertReceipt = `
INSERT INTO ingest.deliveries
       (id, host, hook, delivery_id, digest, bytes, event, action, decision, reason, tenant, project_id,
        installation_id, repository_id, repository, number, head_sha, before_sha, base_ref, state, updated_at, traceparent)
VALUES (@id, @host, @hook, @delivery, @digest, @bytes, @event, @action, @decision, @reason, @tenant, @project,
        @installation, @repository_id, @repository, @number, @head, @before, @base_ref, @state, @updated_at, @trace)`

	// Reads the receipt that was there before, and counts the delivery where it is the same and isn't that
	// receipt's own, retried after a lost answer.
	countDuplicate = `
WITH counted AS (
  UPDATE ingest.deliveries AS d
     SET duplicates = d.duplicates + 1
   WHERE d.host = @host AND d.hook = @hook AND d.delivery_id = @delivery AND d.digest = @digest AND d.id <> @id
)
SELECT d.id, d.decision, d.reason, d.digest
  FROM ingest.deliveries AS d
 WHERE d.host = @host AND d.hook = @hook AND d.delivery_id = @delivery`

	getIntegration = `
SELECT a.tenant, i.state, i.tenant, i.account_id, i.changed_at, p.id, p.tenant, p.state, p.installation_id, p.removed_at
  FROM (VALUES (1)) AS one
  LEFT JOIN ingest.accounts AS a ON a.host = @host AND a.account_id = @account
  LEFT JOIN ingest.installations AS i ON i.host = @host AND i.installation_id = @installation
  LEFT JOIN ingest.projects AS p ON p.host = @host AND p.repository_id = @repository`

	// The update that changes nothing is what returns the tenant of a bound account, and what locks it: all
	// changes of an account's installations and projects come one after another.
	bindAccount = `
INSERT INTO ingest.accounts AS a (tenant, host, account_id, login)
VALUES (@tenant, @host, @account, @login)
ON CONFLICT ON CONSTRAINT accounts_bound_once DO UPDATE
   SET login = CASE WHEN EXCLUDED.login = '' THEN a.login ELSE EXCLUDED.login END
RETURNING a.tenant`

	lockAccount = `
SELECT a.tenant
  FROM ingest.accounts AS a
 WHERE a.tenant = @tenant AND a.host = @host AND a.account_id = @account
   FOR UPDATE`

	insertInstallation = `
INSERT INTO ingest.installations (tenant, host, installation_id, account_id, state)
VALUES (@tenant, @host, @installation, @account, 'active')
ON CONFLICT ON CONSTRAINT installations_once DO NOTHING`

	setInstallation = `
UPDATE ingest.installations AS i
   SET state = @state, changed_at = GREATEST(i.changed_at, @changed_at)
 WHERE i.tenant = @tenant AND i.host = @host AND i.installation_id = @installation`

	// Without a time it is a call or a pull request that enrols: then no event is newer. Another tenant's
	// project stays as it is and isn't returned.
	enrolProjects = `
WITH gone AS (
  SELECT p.id FROM ingest.projects AS p
   WHERE p.tenant = @tenant AND p.host = @host AND p.repository_id = ANY (@repository_ids::bigint[]) AND p.state = 'removed'
)
INSERT INTO ingest.projects AS p (id, tenant, host, repository_id, repository, installation_id, state, changed_at)
SELECT n.id, @tenant, @host, n.repository_id, n.repository, @installation, 'enrolled', COALESCE(@at::timestamptz, 'epoch')
  FROM unnest(@ids::uuid[], @repository_ids::bigint[], @repositories::text[]) AS n (id, repository_id, repository)
 ORDER BY n.repository_id
ON CONFLICT ON CONSTRAINT projects_once DO UPDATE
   SET installation_id = EXCLUDED.installation_id, repository = EXCLUDED.repository, state = 'enrolled', removed_at = NULL,
       changed_at = GREATEST(p.changed_at, EXCLUDED.changed_at), sweep_at = NULL, sweep_claim = NULL, misses = 0
 WHERE p.tenant = EXCLUDED.tenant AND (@at::timestamptz IS NULL OR p.changed_at <= @at)
RETURNING p.id, EXISTS (SELECT FROM gone AS g WHERE g.id = p.id) AS restored`

	// The same choice again is no row, and no new version.
	chooseSurfaces = `
UPDATE ingest.projects AS p
   SET surfaces = @surfaces, surfaces_version = p.surfaces_version + 1
 WHERE p.tenant = @tenant AND p.id = @id AND p.surfaces <> @surfaces
RETURNING p.surfaces_version`

	removeProjects = `
UPDATE ingest.projects AS p
   SET state = 'removed', changed_at = @at, removed_at = clock_timestamp()
 WHERE p.tenant = @tenant AND p.host = @host AND p.installation_id = @installation
   AND p.repository_id = ANY (@repositories) AND p.changed_at <= @at
RETURNING p.id`

	installationColumns = `
SELECT i.tenant, i.host, i.installation_id, i.account_id, a.login, i.state, i.created_at
  FROM ingest.installations AS i
  JOIN ingest.accounts AS a ON a.tenant = i.tenant AND a.host = i.host AND a.account_id = i.account_id`

	getInstallation = installationColumns + `
 WHERE i.host = @host AND i.installation_id = @installation`

	listInstallations = installationColumns + `
 WHERE (@tenant::uuid IS NULL OR i.tenant = @tenant)
   AND (i.installation_id, i.host) > (@after, @after_host)
 ORDER BY i.installation_id, i.host
 LIMIT @limit`

	// With those that have moved, which are never a row of projects again.
	everyProject = `(
  SELECT p.id, p.tenant, p.host, p.repository_id, p.repository, p.installation_id, p.state, p.created_at, p.surfaces
    FROM ingest.projects AS p
   UNION ALL
  SELECT f.id, f.tenant, f.host, f.repository_id, f.repository, f.installation_id, 'moved', f.created_at, '{}'::text[]
    FROM ingest.former_projects AS f)`

	getProject = `
SELECT p.id, p.tenant, p.host, p.repository_id, p.repository, p.installation_id, p.state, p.created_at, p.surfaces
  FROM ` + everyProject + ` AS p
 WHERE p.tenant = @tenant AND p.id = @id`

	listProjects = `
SELECT p.id, p.tenant, p.host, p.repository_id, p.repository, p.installation_id, p.state, p.created_at, p.surfaces
  FROM ` + everyProject + ` AS p
 WHERE p.tenant = @tenant AND p.id > @after
 ORDER BY p.id
 LIMIT @limit`

	deliveryColumns = `
SELECT d.id, d.host, d.hook, d.delivery_id, d.digest, d.bytes, d.event, d.action, d.decision, d.reason,
       d.tenant, d.project_id, d.installation_id, d.repository_id, d.repository, d.number,
       d.head_sha, d.before_sha, d.base_ref, d.state, d.updated_at, d.traceparent, d.received_at, d.duplicates,
       (SELECT count(*) FROM ingest.replays AS r WHERE r.tenant = d.tenant AND r.receipt_id = d.id)::integer
  FROM ingest.deliveries AS d`

	listDeliveries = deliveryColumns + `
 WHERE (@tenant::uuid IS NULL OR d.tenant = @tenant)
   AND (@delivery = '' OR d.delivery_id = @delivery) AND (@event = '' OR d.event = @event)
   AND (@decision = '' OR d.decision = @decision) AND (@repository = 0 OR d.repository_id = @repository)
   AND d.id < @before
 ORDER BY d.id DESC
 LIMIT @limit`

	getDelivery = deliveryColumns + `
 WHERE (@tenant::uuid IS NULL OR d.tenant = @tenant)
   AND (d.delivery_id = @delivery OR d.id = @receipt)
 ORDER BY d.id
 LIMIT 20`

	// Locks the receipt, so that replays of one delivery are numbered one after another.
	lockDelivery = deliveryColumns + `
 WHERE d.id = @receipt
   FOR UPDATE OF d`

	getReplay = `
SELECT r.receipt_id, r.replay
  FROM ingest.replays AS r
 WHERE r.tenant = @tenant AND r.project_id = @project AND r.idempotency_key = @key`

	insertReplay = `
INSERT INTO ingest.replays (receipt_id, tenant, project_id, idempotency_key, replay)
SELECT @receipt, @tenant, @project, @key, 1 + COALESCE(max(r.replay), 0)
  FROM ingest.replays AS r
 WHERE r.tenant = @tenant AND r.receipt_id = @receipt
RETURNING replay`
)

// queries are prepared against the migrated schema by a test, so that a wrong column fails there.
var queries = map[string]string{
	"insertReceipt": insertReceipt, "countDuplicate": countDuplicate, "getIntegration": getIntegration,
	"bindAccount": bindAccount, "lockAccount": lockAccount, "insertInstallation": insertInstallation,
	"setInstallation": setInstallation, "enrolProjects": enrolProjects, "chooseSurfaces": chooseSurfaces, "removeProjects": removeProjects,
	"getInstallation": getInstallation, "listInstallations": listInstallations, "getProject": getProject, "listProjects": listProjects,
	"listDeliveries": listDeliveries, "getDelivery": getDelivery, "lockDelivery": lockDelivery,
	"getReplay": getReplay, "insertReplay": insertReplay,
}
