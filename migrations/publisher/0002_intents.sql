-- 0002: what is meant to be written to GitHub, and what became of it. GitHub takes no idempotency key and
-- no fence, so the write is recorded before it is sent, one sender per installation holds a lease, and at
-- most one write of a surface may be out at a time.

-- +goose Up

-- One row per installation: who sends, how fast, and until when not at all. due_at is never later than the
-- first open intent: it is lowered by whoever records one and set anew when the lease is given back.
CREATE TABLE publisher.senders (
    tenant          uuid        NOT NULL,
    host            text        NOT NULL,
    installation_id bigint      NOT NULL CHECK (installation_id > 0),
    lease_id        uuid,
    lease_until     timestamptz,
    -- Raised by every save under a lease; a save whose lease is lost fails on it, NOT NULL.
    version         bigint      NOT NULL DEFAULT 0,
    due_at          timestamptz,
    next_write_at   timestamptz,
    paused_until    timestamptz,
    pause_reason    text,
    throttles       integer     NOT NULL DEFAULT 0 CHECK (throttles >= 0),
    PRIMARY KEY (tenant, host, installation_id),
    CONSTRAINT senders_lease_whole CHECK ((lease_id IS NULL) = (lease_until IS NULL)),
    CONSTRAINT senders_pause_whole CHECK ((paused_until IS NULL) = (pause_reason IS NULL))
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 500
);

-- The claim's own order, and what a claim holds.
CREATE INDEX senders_due ON publisher.senders (due_at) WHERE due_at IS NOT NULL;
CREATE UNIQUE INDEX senders_lease ON publisher.senders (lease_id) WHERE lease_id IS NOT NULL;

-- What a target's page is to say: one row per epoch, written once.
CREATE TABLE publisher.epochs (
    tenant          uuid        NOT NULL,
    target_id       uuid        NOT NULL,
    lifecycle       bigint      NOT NULL CHECK (lifecycle >= 1),
    epoch           bigint      NOT NULL CHECK (epoch >= 1),
    kind            text        NOT NULL CHECK (kind IN ('result', 'superseded', 'skipped', 'refused', 'over_budget')),
    digest          bytea       NOT NULL,
    project_id      uuid        NOT NULL,
    host            text        NOT NULL,
    installation_id bigint      NOT NULL,
    repository_id   bigint      NOT NULL,
    repository      text        NOT NULL,
    number          bigint      NOT NULL,
    run_id          uuid,
    base_ref        text        NOT NULL DEFAULT '',
    base_sha        text        NOT NULL DEFAULT '',
    head_sha        text        NOT NULL DEFAULT '',
    merge_base_sha  text        NOT NULL DEFAULT '',
    ordinal         integer     NOT NULL DEFAULT 0,
    attempt_id      uuid,
    clean           boolean     NOT NULL DEFAULT false,
    errors          integer     NOT NULL DEFAULT 0,
    warnings        integer     NOT NULL DEFAULT 0,
    infos           integer     NOT NULL DEFAULT 0,
    engine          text        NOT NULL DEFAULT '',
    cost_micros     bigint      NOT NULL DEFAULT 0,
    reason          text        NOT NULL DEFAULT '',
    detail          text        NOT NULL DEFAULT '',
    newer_head_sha  text        NOT NULL DEFAULT '',
    traceparent     text        NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- How its delivery ended, told to the scheduler in the same transaction.
    ended_at        timestamptz,
    delivered       boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, target_id, lifecycle, epoch),
    CONSTRAINT epochs_result_whole CHECK (kind <> 'result' OR (run_id IS NOT NULL AND attempt_id IS NOT NULL AND head_sha <> '')),
    CONSTRAINT epochs_delivered_ended CHECK (NOT delivered OR ended_at IS NOT NULL)
) WITH (fillfactor = 80);

CREATE INDEX epochs_open ON publisher.epochs (tenant, target_id) WHERE ended_at IS NULL;

CREATE TABLE publisher.intents (
    id              uuid        NOT NULL PRIMARY KEY,
    tenant          uuid        NOT NULL,
    key             text        NOT NULL,
    target_id       uuid        NOT NULL,
    lifecycle       bigint      NOT NULL,
    epoch           bigint      NOT NULL,
    host            text        NOT NULL,
    installation_id bigint      NOT NULL,
    -- Surfaces are written in the order of their rank within an epoch.
    surface         text        NOT NULL CHECK (surface IN ('summary', 'check_run')),
    surface_key     text        NOT NULL DEFAULT '',
    rank            integer     NOT NULL,
    state           text        NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sending', 'confirmed', 'ended')),
    op              text        NOT NULL DEFAULT '' CHECK (op IN ('', 'create', 'edit')),
    reason          text        NOT NULL DEFAULT '',
    attempts        integer     NOT NULL DEFAULT 0,
    holds           integer     NOT NULL DEFAULT 0,
    github_id       bigint      NOT NULL DEFAULT 0,
    url             text        NOT NULL DEFAULT '',
    body            text        NOT NULL DEFAULT '',
    last_error      text        NOT NULL DEFAULT '',
    -- A save of a state that was read before another's save fails on it, NOT NULL.
    version         bigint      NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    available_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    sent_at         timestamptz,
    ended_at        timestamptz,
    CONSTRAINT intents_key_unique UNIQUE (tenant, key),
    CONSTRAINT intents_epoch FOREIGN KEY (tenant, target_id, lifecycle, epoch)
        REFERENCES publisher.epochs (tenant, target_id, lifecycle, epoch) ON DELETE CASCADE,
    CONSTRAINT intents_ended_at CHECK ((state IN ('confirmed', 'ended')) = (ended_at IS NOT NULL)),
    CONSTRAINT intents_sent_at CHECK (state <> 'sending' OR (sent_at IS NOT NULL AND op <> '')),
    CONSTRAINT intents_confirmed_id CHECK (state <> 'confirmed' OR github_id > 0),
    CONSTRAINT intents_ended_reason CHECK (state <> 'ended' OR reason <> '')
) WITH (
    fillfactor = 60,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000
);

-- Open intents only: what ended costs disk, never time.
CREATE INDEX intents_open ON publisher.intents (tenant, host, installation_id, available_at)
    WHERE state IN ('pending', 'sending');
CREATE INDEX intents_of_epoch ON publisher.intents (tenant, target_id, lifecycle, epoch);
CREATE INDEX intents_newest ON publisher.intents (tenant, id DESC);
-- At most one write of a surface may be out.
CREATE UNIQUE INDEX intents_one_out ON publisher.intents (tenant, target_id, surface, surface_key)
    WHERE state = 'sending';

-- Where one kind of output lives on a pull request, and which epoch it shows as far as is known.
CREATE TABLE publisher.surfaces (
    tenant          uuid        NOT NULL,
    target_id       uuid        NOT NULL,
    surface         text        NOT NULL CHECK (surface IN ('summary', 'check_run')),
    surface_key     text        NOT NULL DEFAULT '',
    github_id       bigint      NOT NULL DEFAULT 0,
    url             text        NOT NULL DEFAULT '',
    shown_lifecycle bigint      NOT NULL DEFAULT 0,
    shown_epoch     bigint      NOT NULL DEFAULT 0,
    run_id          uuid,
    recreated       boolean     NOT NULL DEFAULT false,
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, target_id, surface, surface_key)
) WITH (fillfactor = 70);

ALTER TABLE publisher.senders  ENABLE ROW LEVEL SECURITY;
ALTER TABLE publisher.senders  FORCE ROW LEVEL SECURITY;
ALTER TABLE publisher.epochs   ENABLE ROW LEVEL SECURITY;
ALTER TABLE publisher.epochs   FORCE ROW LEVEL SECURITY;
ALTER TABLE publisher.intents  ENABLE ROW LEVEL SECURITY;
ALTER TABLE publisher.intents  FORCE ROW LEVEL SECURITY;
ALTER TABLE publisher.surfaces ENABLE ROW LEVEL SECURITY;
ALTER TABLE publisher.surfaces FORCE ROW LEVEL SECURITY;

-- Unset and empty tenant both raise an error in the cast: refused, never an empty answer. The system role
-- claims senders of all tenants; everything else is done as the tenant.
CREATE POLICY senders_system  ON publisher.senders  TO fl_publisher USING (true) WITH CHECK (true);
CREATE POLICY epochs_system   ON publisher.epochs   TO fl_publisher USING (true) WITH CHECK (true);
CREATE POLICY intents_system  ON publisher.intents  TO fl_publisher USING (true) WITH CHECK (true);
CREATE POLICY surfaces_system ON publisher.surfaces TO fl_publisher USING (true) WITH CHECK (true);

CREATE POLICY senders_tenant  ON publisher.senders  TO fl_publisher_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY epochs_tenant   ON publisher.epochs   TO fl_publisher_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY intents_tenant  ON publisher.intents  TO fl_publisher_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY surfaces_tenant ON publisher.surfaces TO fl_publisher_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
