-- 0001: what leaves a transaction leaves through this table, so that a change and the message it causes
-- commit together. A row is one durable unary call (or one ring of a doorbell): messages have no order,
-- the key names the cause, and a key that comes back with another digest fails on digest NOT NULL.
--
-- Claims write only claim and claimed_until, which no index holds: with half of each page left free such an
-- update stays on its page. The one index a claim reads is in the claim's own order and holds open rows
-- only, so that finished rows cost disk, never time.

-- +goose Up
CREATE TABLE scheduler.outbox (
    id            uuid        PRIMARY KEY,
    tenant        uuid,
    key           text        NOT NULL,
    digest        bytea       NOT NULL,
    destination   text        NOT NULL,
    payload       bytea       NOT NULL,
    traceparent   text        NOT NULL DEFAULT '',
    attempts      integer     NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    not_before    timestamptz NOT NULL,
    available_at  timestamptz NOT NULL,
    claim         uuid,
    claimed_until timestamptz,
    dispatched_at timestamptz,
    parked_at     timestamptz,
    park_reason   text,
    last_error    text,
    CONSTRAINT outbox_key_unique    UNIQUE (key),
    -- The server parses each CHECK anew in every statement that writes: these hold the states apart, the
    -- bounds of key and payload are Enqueue's.
    CONSTRAINT outbox_claim_whole   CHECK ((claim IS NULL) = (claimed_until IS NULL)),
    CONSTRAINT outbox_parked_reason CHECK ((parked_at IS NULL) = (park_reason IS NULL)),
    CONSTRAINT outbox_one_state     CHECK (num_nonnulls(claim, dispatched_at, parked_at) <= 1)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);

CREATE INDEX outbox_due ON scheduler.outbox (destination, available_at, id)
    WHERE dispatched_at IS NULL AND parked_at IS NULL;

CREATE INDEX outbox_parked ON scheduler.outbox (destination, park_reason, id)
    WHERE parked_at IS NOT NULL;

ALTER TABLE scheduler.outbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE scheduler.outbox FORCE ROW LEVEL SECURITY;

-- The dispatcher and what no tenant asked for see every row; a tenant's transaction its own rows alone. An unset or
-- empty tenant is an error here, not an empty result.
CREATE POLICY outbox_system ON scheduler.outbox TO fl_scheduler USING (true) WITH CHECK (true);
CREATE POLICY outbox_tenant ON scheduler.outbox TO fl_scheduler_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid)
    WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
