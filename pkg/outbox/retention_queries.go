package outbox

// Ids are made in the order of time: the primary key finds what is old. Rings that waited for long and
// parked messages are passed over.
const purgeSQL = `
DELETE FROM {schema}.outbox AS o
 WHERE o.id = ANY (ARRAY(
       SELECT d.id
         FROM {schema}.outbox AS d
        WHERE d.id < {made} AND d.dispatched_at < (SELECT clock_timestamp() - @age::interval)
        ORDER BY d.id
        LIMIT @limit
          FOR UPDATE SKIP LOCKED))`

const eraseSQL = `
DELETE FROM {schema}.outbox AS o
 WHERE o.id = ANY (ARRAY(
       SELECT d.id
         FROM {schema}.outbox AS d
        WHERE d.key >= @from AND d.key < @to AND d.tenant = @tenant
          AND (d.dispatched_at IS NOT NULL OR d.parked_at IS NOT NULL OR d.destination LIKE 'doorbell:%')
        LIMIT @limit
          FOR UPDATE))`

const waitingSQL = `
SELECT EXISTS (
       SELECT 1
         FROM {schema}.outbox AS d
        WHERE d.key >= @from AND d.key < @to AND d.tenant = @tenant
          AND d.dispatched_at IS NULL AND d.parked_at IS NULL AND d.destination NOT LIKE 'doorbell:%')`
