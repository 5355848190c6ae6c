-- 0003: why. Activities make recording idempotent; decisions are append-only; pauses are rows that claims
-- and sends skip; turns say which tenant was served last.

-- +goose Up
CREATE TABLE scheduler.activities (
    tenant      uuid        NOT NULL,
    activity_id text        NOT NULL CHECK (activity_id <> ''),
    target_id   uuid        NOT NULL,
    cause       text        NOT NULL CHECK (cause IN ('webhook', 'sweep', 'replay', 'request')),
    event       text        NOT NULL DEFAULT '',
    delivery_id text        NOT NULL DEFAULT '',
    generation  bigint      NOT NULL,
    decision    text        NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, activity_id)
);

CREATE INDEX activities_delivery ON scheduler.activities (delivery_id) WHERE delivery_id <> '';

CREATE TABLE scheduler.decisions (
    sequence    bigint      NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant      uuid        NOT NULL,
    target_id   uuid        NOT NULL,
    kind        text        NOT NULL CHECK (kind <> ''),
    reason      text        NOT NULL DEFAULT '',
    detail      text        NOT NULL DEFAULT '',
    generation  bigint      NOT NULL,
    lifecycle   bigint      NOT NULL,
    epoch       bigint      NOT NULL,
    run_id      uuid,
    claim_id    uuid,
    activity_id text        NOT NULL DEFAULT '',
    request_id  text        NOT NULL DEFAULT '',
    trace       text        NOT NULL DEFAULT '',
    at          timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX decisions_target ON scheduler.decisions (tenant, target_id, sequence);

CREATE TABLE scheduler.pauses (
    id              uuid        NOT NULL PRIMARY KEY,
    tenant          uuid,
    scope           text        NOT NULL CHECK (scope IN ('host', 'installation', 'project', 'target')),
    host            text        NOT NULL DEFAULT '',
    installation_id bigint      NOT NULL DEFAULT 0,
    project_id      uuid,
    target_id       uuid,
    cause           text        NOT NULL CHECK (cause IN ('operator', 'throttled', 'suspension')),
    reason          text        NOT NULL CHECK (reason <> ''),
    until           timestamptz,
    set_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The last call for a scope and cause stands. A pause may hold up several tenants.
    CONSTRAINT pauses_scope UNIQUE NULLS NOT DISTINCT (scope, host, installation_id, project_id, target_id, cause),
    CONSTRAINT pauses_end   CHECK (until IS NOT NULL OR cause <> 'throttled')
);

CREATE TABLE scheduler.turns (
    tenant     uuid        NOT NULL PRIMARY KEY,
    claimed_at timestamptz NOT NULL
) WITH (fillfactor = 50);

REVOKE UPDATE, DELETE ON scheduler.decisions  FROM fl_scheduler, fl_scheduler_tenant;
REVOKE UPDATE, DELETE ON scheduler.activities FROM fl_scheduler, fl_scheduler_tenant;

ALTER TABLE scheduler.activities ENABLE ROW LEVEL SECURITY;
ALTER TABLE scheduler.activities FORCE ROW LEVEL SECURITY;
ALTER TABLE scheduler.decisions  ENABLE ROW LEVEL SECURITY;
ALTER TABLE scheduler.decisions  FORCE ROW LEVEL SECURITY;
ALTER TABLE scheduler.pauses     ENABLE ROW LEVEL SECURITY;
ALTER TABLE scheduler.pauses     FORCE ROW LEVEL SECURITY;
ALTER TABLE scheduler.turns      ENABLE ROW LEVEL SECURITY;
ALTER TABLE scheduler.turns      FORCE ROW LEVEL SECURITY;

CREATE POLICY activities_system ON scheduler.activities TO fl_scheduler USING (true) WITH CHECK (true);
CREATE POLICY decisions_system  ON scheduler.decisions  TO fl_scheduler USING (true) WITH CHECK (true);
CREATE POLICY pauses_system     ON scheduler.pauses     TO fl_scheduler USING (true) WITH CHECK (true);
CREATE POLICY turns_system      ON scheduler.turns      TO fl_scheduler USING (true) WITH CHECK (true);

CREATE POLICY activities_tenant ON scheduler.activities TO fl_scheduler_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY decisions_tenant  ON scheduler.decisions  TO fl_scheduler_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY turns_tenant      ON scheduler.turns      TO fl_scheduler_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
-- A tenant sees its own pauses and those of a host or installation, which have no tenant; it writes its own.
CREATE POLICY pauses_tenant     ON scheduler.pauses     TO fl_scheduler_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid OR (tenant IS NULL AND scope IN ('host', 'installation')))
    WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
