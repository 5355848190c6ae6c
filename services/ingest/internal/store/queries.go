package store

const (
	insertReceipt = `
INSERT INTO ingest.deliveries
       (id, host, hook, delivery_id, digest, bytes, event, action, decision, reason, tenant, project_id,
        installation_id, repository_id, repository, number, head_sha, before_sha, base_ref, state, updated_at, traceparent)
VALUES (@id, @host, @hook, @delivery, @digest, @bytes, @event, @action, @decision, @reason, @tenant, @project,
        @installation, @repository_id, @repository, @number, @head, @before, @base_ref, @state, @updated_at, @trace)`

	countDuplicate = `
UPDATE ingest.deliveries AS d
   SET duplicates = duplicates + CASE WHEN d.digest = @digest THEN 1 ELSE 0 END
 WHERE d.host = @host AND d.hook = @hook AND d.delivery_id = @delivery
RETURNING d.id, d.decision, d.reason, d.digest`

	getIntegration = `
SELECT i.tenant, i.account_id, i.state, p.id, p.tenant, p.state
  FROM (VALUES (1)) AS one
  LEFT JOIN ingest.installations AS i ON i.host = @host AND i.installation_id = @installation
  LEFT JOIN ingest.projects AS p ON p.host = @host AND p.repository_id = @repository`

	// The update that changes nothing is what returns the tenant of a bound account.
	bindAccount = `
INSERT INTO ingest.accounts AS a (tenant, host, account_id, login)
VALUES (@tenant, @host, @account, @login)
ON CONFLICT ON CONSTRAINT accounts_bound_once DO UPDATE
   SET login = CASE WHEN EXCLUDED.login = '' THEN a.login ELSE EXCLUDED.login END
RETURNING a.tenant`

	insertInstallation = `
INSERT INTO ingest.installations (tenant, host, installation_id, account_id, state, changed_at)
VALUES (@tenant, @host, @installation, @account, 'active', @changed_at)
ON CONFLICT ON CONSTRAINT installations_once DO NOTHING`

	setInstallation = `
UPDATE ingest.installations AS i
   SET state = @state, changed_at = @changed_at
 WHERE i.host = @host AND i.installation_id = @installation
   AND i.changed_at <= @changed_at AND i.state <> 'deleted'`

	enrolProject = `
INSERT INTO ingest.projects AS p (id, tenant, host, repository_id, repository, installation_id, state)
VALUES (@id, @tenant, @host, @repository_id, @repository, @installation, 'enrolled')
ON CONFLICT ON CONSTRAINT projects_once DO UPDATE
   SET installation_id = EXCLUDED.installation_id, repository = EXCLUDED.repository
 WHERE p.tenant = EXCLUDED.tenant`

	restoreProject = `
UPDATE ingest.projects AS p
   SET state = 'enrolled'
 WHERE p.host = @host AND p.repository_id = @repository`

	removeProject = `
UPDATE ingest.projects AS p
   SET state = 'removed'
 WHERE p.tenant = @tenant AND p.host = @host AND p.repository_id = ANY (@repositories)
RETURNING p.id`

	listInstallations = `
SELECT i.tenant, i.host, i.installation_id, i.account_id, a.login, i.state, i.created_at
  FROM ingest.installations AS i
  JOIN ingest.accounts AS a ON a.tenant = i.tenant AND a.host = i.host AND a.account_id = i.account_id
 WHERE (@tenant::uuid IS NULL OR i.tenant = @tenant)
   AND (@id = 0 OR i.installation_id = @id) AND (@host = '' OR i.host = @host)
   AND i.installation_id > @after
 ORDER BY i.installation_id, i.host
 LIMIT @limit`

	getProject = `
SELECT p.id, p.tenant, p.host, p.repository_id, p.repository, p.installation_id, p.state, p.created_at
  FROM ingest.projects AS p
 WHERE p.host = @host AND p.repository_id = @repository`

	listProjects = `
SELECT p.id, p.tenant, p.host, p.repository_id, p.repository, p.installation_id, p.state, p.created_at
  FROM ingest.projects AS p
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
SELECT r.replay
  FROM ingest.replays AS r
 WHERE r.tenant = @tenant AND r.receipt_id = @receipt AND r.idempotency_key = @key`

	insertReplay = `
INSERT INTO ingest.replays (receipt_id, tenant, idempotency_key, replay)
SELECT @receipt, @tenant, @key, 1 + COALESCE(max(r.replay), 0)
  FROM ingest.replays AS r
 WHERE r.tenant = @tenant AND r.receipt_id = @receipt
RETURNING replay`
)

// queries are prepared against the migrated schema by a test, so that a wrong column fails there.
var queries = map[string]string{
	"insertReceipt": insertReceipt, "countDuplicate": countDuplicate, "getIntegration": getIntegration,
	"bindAccount": bindAccount, "insertInstallation": insertInstallation, "setInstallation": setInstallation,
	"enrolProject": enrolProject, "restoreProject": restoreProject, "removeProject": removeProject,
	"listInstallations": listInstallations, "getProject": getProject, "listProjects": listProjects,
	"listDeliveries": listDeliveries, "getDelivery": getDelivery, "lockDelivery": lockDelivery,
	"getReplay": getReplay, "insertReplay": insertReplay,
}
