-- 0003: receipts. One row per delivery, written in the commit that GitHub's 2xx follows. The payload is
-- not kept, only its digest and what a replay records again.

-- +goose Up
CREATE TABLE ingest.deliveries (
    id              uuid        NOT NULL PRIMARY KEY,
    host            text        NOT NULL,
    hook            text        NOT NULL,
    delivery_id     text        NOT NULL CHECK (delivery_id <> ''),
    digest          bytea       NOT NULL CHECK (octet_length(digest) = 32),
    bytes           bigint      NOT NULL,
    event           text        NOT NULL,
    action          text        NOT NULL DEFAULT '',
    decision        text        NOT NULL CHECK (decision IN ('trigger_review', 'update_target', 'integration_change', 'ignore')),
    reason          text        NOT NULL CHECK (reason <> ''),
    tenant          uuid,
    project_id      uuid,
    installation_id bigint      NOT NULL DEFAULT 0,
    repository_id   bigint      NOT NULL DEFAULT 0,
    repository      text        NOT NULL DEFAULT '',
    number          bigint      NOT NULL DEFAULT 0,
    head_sha        text        NOT NULL DEFAULT '',
    before_sha      text        NOT NULL DEFAULT '',
    base_ref        text        NOT NULL DEFAULT '',
    state           text        NOT NULL DEFAULT '',
    updated_at      timestamptz,
    traceparent     text        NOT NULL DEFAULT '',
    duplicates      integer     NOT NULL DEFAULT 0,
    received_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Without the tenant, on purpose: the receipt is what makes a delivery unique, whoever it is for.
    -- The delivery's id first, by which alone it is also looked up.
    CONSTRAINT deliveries_once UNIQUE (delivery_id, host, hook),
    -- Work for the scheduler always has an owner.
    CONSTRAINT deliveries_owned CHECK (decision = 'ignore' OR (tenant IS NOT NULL AND (decision = 'integration_change' OR project_id IS NOT NULL)))
);

CREATE INDEX deliveries_tenant ON ingest.deliveries (tenant, id);

CREATE TABLE ingest.replays (
    receipt_id      uuid        NOT NULL,
    tenant          uuid        NOT NULL,
    project_id      uuid        NOT NULL,
    idempotency_key text        NOT NULL,
    replay          integer     NOT NULL CHECK (replay > 0),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, receipt_id, replay),
    -- A key means one thing in a project.
    CONSTRAINT replays_key_once UNIQUE (tenant, project_id, idempotency_key)
);

ALTER TABLE ingest.deliveries ENABLE ROW LEVEL SECURITY;
ALTER TABLE ingest.deliveries FORCE ROW LEVEL SECURITY;
ALTER TABLE ingest.replays    ENABLE ROW LEVEL SECURITY;
ALTER TABLE ingest.replays    FORCE ROW LEVEL SECURITY;

CREATE POLICY deliveries_system ON ingest.deliveries TO fl_ingest USING (true) WITH CHECK (true);
CREATE POLICY replays_system    ON ingest.replays    TO fl_ingest USING (true) WITH CHECK (true);

CREATE POLICY deliveries_tenant ON ingest.deliveries TO fl_ingest_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY replays_tenant    ON ingest.replays    TO fl_ingest_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
