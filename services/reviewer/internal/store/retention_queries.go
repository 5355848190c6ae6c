package store

// System: a purge has no tenant of its own. Findings and omissions go with their attempt.
const (
	lifecycleOpen = `
SELECT EXISTS (SELECT FROM reviewer.attempts AS a
                WHERE a.tenant = @tenant AND a.target_id = @target AND a.lifecycle = @lifecycle
                  AND a.state IN ('created', 'started'))`

	deleteLifecycle = `
DELETE FROM reviewer.attempts AS a
 WHERE a.tenant = @tenant AND a.id = ANY (ARRAY(
       SELECT d.id
         FROM reviewer.attempts AS d
        WHERE d.tenant = @tenant AND d.target_id = @target AND d.lifecycle = @lifecycle
          AND d.state NOT IN ('created', 'started')
        LIMIT @limit))`

	tenantOpen = `
SELECT EXISTS (SELECT FROM reviewer.attempts AS a
                WHERE a.tenant = @tenant AND a.state IN ('created', 'started'))`

	deleteTenant = `
DELETE FROM reviewer.attempts AS a
 WHERE a.tenant = @tenant AND a.id = ANY (ARRAY(
       SELECT d.id
         FROM reviewer.attempts AS d
        WHERE d.tenant = @tenant AND d.state NOT IN ('created', 'started')
        LIMIT @limit))`

	purgeUncounted = `
DELETE FROM reviewer.attempts AS a
 WHERE (a.tenant, a.id) IN (
       SELECT d.tenant, d.id
         FROM reviewer.attempts AS d
        WHERE d.number = 0 AND d.ended_at < (SELECT clock_timestamp() - @age::interval)
        ORDER BY d.ended_at
        LIMIT @limit
          FOR UPDATE SKIP LOCKED)`
)

// retentionQueries are prepared by the same test as queries.
var retentionQueries = map[string]string{
	"lifecycleOpen": lifecycleOpen, "deleteLifecycle": deleteLifecycle, "tenantOpen": tenantOpen,
	"deleteTenant": deleteTenant, "purgeUncounted": purgeUncounted,
}
