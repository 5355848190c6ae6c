package store

const (
	// How long a write may still be out: until a sender's lease ends, and the grace of what was sent. Zero:
	// nothing is, and the senders are locked. Only senders of open intents matter: nobody else reads them.
	busyHead = `
WITH open AS (
    SELECT i.tenant, i.host, i.installation_id, max(i.sent_at) FILTER (WHERE i.state = 'sending') AS sent_at
      FROM publisher.intents AS i
     WHERE i.tenant = @tenant AND i.state IN ('pending', 'sending')`

	busyTail = `
     GROUP BY i.tenant, i.host, i.installation_id
), locked AS (
    SELECT s.lease_until, o.sent_at
      FROM open AS o
      JOIN publisher.senders AS s ON s.tenant = o.tenant AND s.host = o.host AND s.installation_id = o.installation_id
       FOR UPDATE OF s
)
SELECT COALESCE(max(GREATEST(l.lease_until, l.sent_at + @grace::interval) - clock_timestamp()), interval '0')
  FROM locked AS l
 WHERE GREATEST(l.lease_until, l.sent_at + @grace::interval) > clock_timestamp()`

	lifecycleBusy = busyHead + ` AND i.target_id = @target AND i.lifecycle = @lifecycle` + busyTail

	tenantBusy = busyHead + busyTail

	deleteLifecycle = `
DELETE FROM publisher.epochs AS e
 WHERE e.tenant = @tenant AND e.target_id = @target AND e.lifecycle = @lifecycle
   AND (e.epoch, e.step) IN (
       SELECT d.epoch, d.step FROM publisher.epochs AS d
        WHERE d.tenant = @tenant AND d.target_id = @target AND d.lifecycle = @lifecycle
        ORDER BY d.epoch, d.step
        LIMIT @limit)`

	// The comment is found and edited in later lifecycles, and what is open is taken back there; everything else
	// belongs to one run or head.
	deleteSurfaces = `
DELETE FROM publisher.surfaces AS f
 WHERE f.tenant = @tenant AND f.target_id = @target
   AND (f.surface, f.surface_key) IN (
       SELECT d.surface, d.surface_key FROM publisher.surfaces AS d
        WHERE d.tenant = @tenant AND d.target_id = @target AND d.surface <> 'summary' AND NOT d.open
          AND NOT EXISTS (SELECT FROM publisher.intents AS i
                           WHERE i.tenant = d.tenant AND i.target_id = d.target_id
                             AND i.surface = d.surface AND i.surface_key = d.surface_key)
        LIMIT @limit)`

	deleteTenant = `
DELETE FROM publisher.epochs AS e
 WHERE (e.tenant, e.target_id, e.lifecycle, e.epoch, e.step) IN (
       SELECT d.tenant, d.target_id, d.lifecycle, d.epoch, d.step FROM publisher.epochs AS d
        WHERE d.tenant = @tenant
        LIMIT @limit)`

	eraseSurfaces = `
DELETE FROM publisher.surfaces AS f
 WHERE (f.tenant, f.target_id, f.surface, f.surface_key) IN (
       SELECT d.tenant, d.target_id, d.surface, d.surface_key FROM publisher.surfaces AS d
        WHERE d.tenant = @tenant
        LIMIT @limit)`

	eraseSenders = `
DELETE FROM publisher.senders AS s
 WHERE (s.tenant, s.host, s.installation_id) IN (
       SELECT d.tenant, d.host, d.installation_id FROM publisher.senders AS d
        WHERE d.tenant = @tenant
        LIMIT @limit)`

	eraseProjects = `
DELETE FROM publisher.projects AS p
 WHERE (p.tenant, p.project_id) IN (
       SELECT d.tenant, d.project_id FROM publisher.projects AS d
        WHERE d.tenant = @tenant
        LIMIT @limit)`

	purgeOutdated = `
DELETE FROM publisher.epochs AS e
 WHERE (e.tenant, e.target_id, e.lifecycle, e.epoch, e.step) IN (
       SELECT d.tenant, d.target_id, d.lifecycle, d.epoch, d.step
         FROM publisher.epochs AS d
        WHERE d.ended_at < (SELECT clock_timestamp() - @age::interval)
          AND (d.kind = 'reply' OR d.step > 0
               OR EXISTS (SELECT FROM publisher.epochs AS l
                           WHERE l.tenant = d.tenant AND l.target_id = d.target_id AND l.step = 0
                             AND (l.lifecycle, l.epoch) > (d.lifecycle, d.epoch)))
        ORDER BY d.ended_at
        LIMIT @limit
          FOR UPDATE SKIP LOCKED)`

	// A reply's surfaces are its own, and go after it.
	purgeAnswered = `
DELETE FROM publisher.surfaces AS f
 WHERE (f.tenant, f.target_id, f.surface, f.surface_key) IN (
       SELECT d.tenant, d.target_id, d.surface, d.surface_key
         FROM publisher.surfaces AS d
        WHERE d.surface IN ('reaction', 'reply') AND d.updated_at < (SELECT clock_timestamp() - @age::interval)
          AND NOT EXISTS (SELECT FROM publisher.intents AS i
                           WHERE i.tenant = d.tenant AND i.target_id = d.target_id
                             AND i.surface = d.surface AND i.surface_key = d.surface_key)
        ORDER BY d.updated_at
        LIMIT @limit
          FOR UPDATE SKIP LOCKED)`
)
