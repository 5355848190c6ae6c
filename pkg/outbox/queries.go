package outbox

import (
	"strings"

	"github.com/fenceline-dev/fenceline/pkg/purge"
)

// statements are the SQL of one schema.
type statements struct {
	enqueue, enqueueOne                  string
	claim, take, rung, mark, peek, stats string
	list, listPending, listParked        string
	retryOne, exists, retrySet, countSet string
	purge, erase, waiting                string
}

// Queries returns every statement of a schema's outbox by name, so that a test can prepare them all.
func Queries(schema string) map[string]string {
	s := statementsOf(schema)
	return map[string]string{
		"enqueue": s.enqueue, "enqueueOne": s.enqueueOne, "claim": s.claim, "take": s.take, "rung": s.rung, "mark": s.mark, "peek": s.peek, "stats": s.stats,
		"list": s.list, "listPending": s.listPending, "listParked": s.listParked,
		"retryOne": s.retryOne, "exists": s.exists, "retrySet": s.retrySet, "countSet": s.countSet,
		"purge": s.purge, "erase": s.erase, "waiting": s.waiting,
	}
}

func statementsOf(schema string) statements {
	in := strings.NewReplacer("{schema}", schema, "{made}", purge.Made).Replace
	return statements{
		enqueue: in(enqueueManySQL), enqueueOne: in(enqueueOneSQL),
		claim: in(claimSQL), take: in(takeSQL), rung: in(rungSQL), mark: in(markSQL), peek: in(peekSQL), stats: in(statsSQL),
		list:        in(listSQL("")),
		listPending: in(listSQL("AND o.dispatched_at IS NULL AND o.parked_at IS NULL")),
		listParked:  in(listSQL("AND o.parked_at IS NOT NULL")),
		retryOne:    in(retryOneSQL), exists: in(existsSQL), retrySet: in(retrySetSQL), countSet: in(countSetSQL),
		purge: in(purgeSQL), erase: in(eraseSQL), waiting: in(waitingSQL),
	}
}

// The same key again changes nothing, not even the row's version, unless the digest differs: then
// NOT NULL refuses, and with it the whole business transaction.
const (
	enqueueHead = `
INSERT INTO {schema}.outbox
       (id, tenant, key, digest, destination, payload, traceparent, not_before, available_at)`

	enqueueTail = `
    ON CONFLICT (key) DO UPDATE SET digest = NULL
 WHERE outbox.digest <> EXCLUDED.digest
RETURNING id, destination, available_at, clock_timestamp()`
)

// The two times may lie a microsecond apart, which nothing minds.
const enqueueOneSQL = enqueueHead + `
VALUES ($2, $3, $4, $5, $6, $7, $1, GREATEST($8, clock_timestamp()), GREATEST($8, clock_timestamp()))` + enqueueTail

const enqueueManySQL = enqueueHead + `
SELECT m.id, m.tenant, m.key, m.digest, m.destination, m.payload, $1, m.due, m.due
  FROM (SELECT u.*, GREATEST(u.not_before, clock_timestamp()) AS due
          FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::bytea[], $6::text[], $7::bytea[], $8::timestamptz[])
            AS u (id, tenant, key, digest, destination, payload, not_before)) AS m` + enqueueTail

// The clock is read in a subquery, once, so that it can bound the index scan. $2 is the low-water mark: without it a held snapshot makes every claim
// walk the finished rows that vacuum cannot remove.
const claimSQL = `
UPDATE {schema}.outbox AS o
   SET claim = $4, claimed_until = clock_timestamp() + make_interval(secs => $5)` + dueSQL

// A ring is done with before it is tried.
const takeSQL = `
UPDATE {schema}.outbox AS o
   SET dispatched_at = clock_timestamp(), attempts = o.attempts + 1, claim = NULL, claimed_until = NULL` + dueSQL

// What was rung at its commit is done with too. Another dispatcher that takes it meanwhile rings again.
const rungSQL = `
UPDATE {schema}.outbox AS o
   SET dispatched_at = clock_timestamp(), attempts = o.attempts + 1
 WHERE o.id = ANY ($1::uuid[]) AND o.dispatched_at IS NULL AND o.parked_at IS NULL AND o.claim IS NULL`

const dueSQL = `
 WHERE o.id = ANY (ARRAY(
       SELECT d.id
         FROM {schema}.outbox AS d
        WHERE d.destination = $1 AND d.dispatched_at IS NULL AND d.parked_at IS NULL
          AND d.available_at >= $2 AND d.available_at <= (SELECT clock_timestamp())
          AND (d.claimed_until IS NULL OR d.claimed_until <= (SELECT clock_timestamp()))
        ORDER BY d.available_at, d.id
        LIMIT $3
          FOR UPDATE SKIP LOCKED))
RETURNING o.id, o.tenant, o.key, o.payload, o.traceparent, o.attempts, o.available_at, o.created_at,
          EXTRACT(EPOCH FROM clock_timestamp() - o.not_before)::float8`

// The claim id is the whole fence: a takeover replaces it under the row's lock. That the lease has run
// out without a takeover is no reason to forget that the message was sent.
const markSQL = `
UPDATE {schema}.outbox AS o
   SET dispatched_at = CASE WHEN m.sent THEN clock_timestamp() END,
       parked_at     = CASE WHEN m.reason <> '' THEN clock_timestamp() END,
       park_reason   = NULLIF(m.reason, ''),
       available_at  = CASE WHEN m.delay > 0 THEN clock_timestamp() + make_interval(secs => m.delay)
                            ELSE o.available_at END,
       attempts      = o.attempts + m.attempts,
       last_error    = COALESCE(NULLIF(m.error, ''), o.last_error),
       claim         = NULL,
       claimed_until = NULL
  FROM unnest($1::uuid[], $2::uuid[], $3::bool[], $4::text[], $5::float8[], $6::int[], $7::text[])
    AS m (id, claim, sent, reason, delay, attempts, error)
 WHERE o.id = ANY (ARRAY(SELECT unnest($1::uuid[]))) -- of unknown length to the planner: no plan walks the table
   AND o.id = m.id AND o.claim = m.claim AND o.dispatched_at IS NULL AND o.parked_at IS NULL
RETURNING o.id, o.available_at, m.delay`

// The oldest unclaimed row of each destination: the poll's one statement, a few index pages.
const peekSQL = `
SELECT w.destination, m.available_at, EXTRACT(EPOCH FROM m.available_at - (SELECT clock_timestamp()))::float8
  FROM unnest($1::text[]) AS w (destination)
 CROSS JOIN LATERAL (
       SELECT d.available_at
         FROM {schema}.outbox AS d
        WHERE d.destination = w.destination AND d.dispatched_at IS NULL AND d.parked_at IS NULL
          AND (d.claimed_until IS NULL OR d.claimed_until <= (SELECT clock_timestamp()))
        ORDER BY d.available_at, d.id
        LIMIT 1) AS m`

// Two scans, each of its own partial index; finished rows are not looked at.
const statsSQL = `
SELECT d.destination, '' AS reason, count(*) AS messages,
       count(*) FILTER (WHERE d.not_before <= (SELECT clock_timestamp())) AS due,
       count(*) FILTER (WHERE d.not_before <= (SELECT clock_timestamp()) - make_interval(secs => $1)) AS stale,
       GREATEST(EXTRACT(EPOCH FROM (SELECT clock_timestamp()) - min(d.not_before)), 0)::float8 AS oldest,
       max(d.not_before) FILTER (WHERE d.not_before <= (SELECT clock_timestamp()) - make_interval(secs => $1)) AS newest_stale
  FROM {schema}.outbox AS d
 WHERE d.dispatched_at IS NULL AND d.parked_at IS NULL
 GROUP BY d.destination
 UNION ALL
SELECT p.destination, p.park_reason, count(*), 0, 0, 0, NULL
  FROM {schema}.outbox AS p
 WHERE p.parked_at IS NOT NULL
 GROUP BY p.destination, p.park_reason
 ORDER BY 1, 2`

// listSQL reads one page. The state is part of the text, so that open and parked rows are found by their
// partial indexes. $3 and $4: of the system alone, or of one tenant.
func listSQL(state string) string {
	return `
SELECT o.id, o.tenant, o.key, o.destination, octet_length(o.payload)::bigint, o.attempts,
       COALESCE(o.last_error, ''), COALESCE(o.park_reason, ''), o.traceparent, o.created_at, o.not_before,
       o.available_at, o.claimed_until, o.dispatched_at, o.parked_at
  FROM {schema}.outbox AS o
 WHERE ($1::uuid IS NULL OR o.id < $1)
   AND ($2::text = '' OR o.destination = $2)
   AND (NOT $3::bool OR o.tenant IS NULL)
   AND ($4::uuid IS NULL OR o.tenant = $4)
   AND (NOT $5::bool OR o.dispatched_at IS NOT NULL) ` + state + `
 ORDER BY o.id DESC
 LIMIT $6`
}

const retryOneSQL = `
UPDATE {schema}.outbox AS o
   SET parked_at = NULL, park_reason = NULL, attempts = 0, available_at = clock_timestamp()
 WHERE o.id = $1 AND o.parked_at IS NOT NULL
RETURNING o.destination, o.available_at`

const existsSQL = `SELECT EXISTS (SELECT 1 FROM {schema}.outbox AS o WHERE o.id = $1)`

const retrySetSQL = `
UPDATE {schema}.outbox AS o
   SET parked_at = NULL, park_reason = NULL, attempts = 0, available_at = clock_timestamp()
 WHERE o.id = ANY (ARRAY(
       SELECT p.id
         FROM {schema}.outbox AS p
        WHERE p.parked_at IS NOT NULL AND p.destination = $1 AND p.park_reason = $2
        ORDER BY p.id
        LIMIT $3
          FOR UPDATE SKIP LOCKED))
RETURNING o.destination, o.available_at`

const countSetSQL = `
SELECT count(*)
  FROM {schema}.outbox AS p
 WHERE p.parked_at IS NOT NULL AND p.destination = $1 AND p.park_reason = $2`
