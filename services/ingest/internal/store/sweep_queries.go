package store

const (
	// Takes or renews a sweep's lease, where its time has come and nobody else holds it.
	holdSweep = `
INSERT INTO ingest.sweeps AS s (name, holder, held_until)
VALUES (@name, @holder, clock_timestamp() + @lease::interval)
ON CONFLICT (name) DO UPDATE
   SET holder = EXCLUDED.holder, held_until = EXCLUDED.held_until
 WHERE s.holder = EXCLUDED.holder OR ((s.held_until IS NULL OR s.held_until < clock_timestamp()) AND s.next_at <= clock_timestamp())
RETURNING s.cursor, s.top_at, s.seen_at`

	// Every step of a sweep renews its lease; no row means that another holds it.
	renewSweep = `
UPDATE ingest.sweeps AS s
   SET held_until = clock_timestamp() + @lease::interval
 WHERE s.name = @name AND s.holder = @holder AND s.held_until > clock_timestamp()`

	leaveSweep = `
UPDATE ingest.sweeps AS s
   SET holder = NULL, held_until = NULL, next_at = clock_timestamp() + @after::interval
 WHERE s.name = @name AND s.holder = @holder`

	saveCursor = `
UPDATE ingest.sweeps AS s
   SET cursor = @cursor, top_at = COALESCE(s.top_at, @top), held_until = clock_timestamp() + @lease::interval
 WHERE s.name = @name AND s.holder = @holder AND s.held_until > clock_timestamp()`

	// A pass has come to its end: what is older than its beginning has been looked at. The next begins a
	// little before, since an attempt is listed only once it has ended.
	endPass = `
UPDATE ingest.sweeps AS s
   SET cursor = '', seen_at = COALESCE(s.top_at - @overlap::interval, s.seen_at), top_at = NULL
 WHERE s.name = @name AND s.holder = @holder AND s.held_until > clock_timestamp()`

	// What failed and has no receipt; an attempt that is newer than the known one decides anew.
	recordMissed = `
INSERT INTO ingest.missed AS m
       (host, hook, delivery_id, attempt_id, state, next_at, event, action, status, installation_id, repository_id, delivered_at, ended_at)
SELECT @host, @hook, n.guid, n.attempt, CASE WHEN n.refused THEN 'refused' ELSE 'waiting' END, clock_timestamp() + @after::interval,
       n.event, n.action, n.status, n.installation, n.repository, n.at, CASE WHEN n.refused THEN clock_timestamp() END
  FROM unnest(@guids::text[], @attempts::bigint[], @refused::boolean[], @events::text[], @actions::text[], @statuses::integer[],
              @installations::bigint[], @repositories::bigint[], @ats::timestamptz[])
    AS n (guid, attempt, refused, event, action, status, installation, repository, at)
 WHERE NOT EXISTS (SELECT FROM ingest.deliveries AS d WHERE d.delivery_id = n.guid AND d.host = @host AND d.hook = @hook)
 ORDER BY n.guid
ON CONFLICT (delivery_id, host, hook) DO UPDATE
   SET attempt_id = EXCLUDED.attempt_id, status = EXCLUDED.status,
       state    = CASE WHEN m.state = 'waiting' THEN EXCLUDED.state ELSE m.state END,
       ended_at = CASE WHEN m.state = 'waiting' THEN EXCLUDED.ended_at ELSE m.ended_at END
 WHERE m.attempt_id < EXCLUDED.attempt_id
RETURNING m.state, (xmax = 0) AS fresh`

	// What came after all, by a redelivery or late.
	endRecovered = `
UPDATE ingest.missed AS m
   SET state = 'recovered', ended_at = clock_timestamp()
  FROM ingest.deliveries AS d
 WHERE m.state = 'waiting' AND m.next_at <= clock_timestamp()
   AND d.delivery_id = m.delivery_id AND d.host = m.host AND d.hook = m.hook`

	endDelivered = `
UPDATE ingest.missed AS m
   SET state = 'recovered', ended_at = clock_timestamp()
 WHERE m.state = 'waiting' AND m.host = @host AND m.hook = @hook AND m.delivery_id = ANY (@guids)`

	endTried = `
UPDATE ingest.missed AS m
   SET state = 'given_up', ended_at = clock_timestamp()
 WHERE m.state = 'waiting' AND m.next_at <= clock_timestamp() AND m.tries >= @most`

	// The try is counted before it is made: a process that dies in between has used it up.
	takeMissed = `
WITH due AS (
  SELECT m.delivery_id, m.host, m.hook
    FROM ingest.missed AS m
   WHERE m.state = 'waiting' AND m.next_at <= clock_timestamp() AND m.tries < @most
     AND NOT EXISTS (SELECT FROM ingest.deliveries AS d WHERE d.delivery_id = m.delivery_id AND d.host = m.host AND d.hook = m.hook)
   ORDER BY m.next_at, m.attempt_id
   LIMIT 1
     FOR UPDATE SKIP LOCKED
)
UPDATE ingest.missed AS m
   SET tries = m.tries + 1,
       next_at = clock_timestamp() + LEAST(@after::interval * (4 ^ LEAST(m.tries, 8))::integer, interval '1 hour')
  FROM due AS x
 WHERE m.delivery_id = x.delivery_id AND m.host = x.host AND m.hook = x.hook
RETURNING m.delivery_id, m.attempt_id, m.tries, m.event, m.action`

	endMissed = `
UPDATE ingest.missed AS m
   SET state = @state, ended_at = clock_timestamp()
 WHERE m.state = 'waiting' AND m.host = @host AND m.hook = @hook AND m.delivery_id = @guid`

	// A limit is not the delivery's fault: its try is given back.
	putOffMissed = `
UPDATE ingest.missed AS m
   SET tries = GREATEST(m.tries - 1, 0), next_at = clock_timestamp() + @after::interval
 WHERE m.state = 'waiting' AND m.host = @host AND m.hook = @hook AND m.delivery_id = @guid`

	missedDepth = `
SELECT count(*), COALESCE(extract(epoch FROM clock_timestamp() - min(m.found_at)), 0)::float8
  FROM ingest.missed AS m
 WHERE m.state = 'waiting'`
)
