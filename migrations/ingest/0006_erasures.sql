-- 0006: tenants that have uninstalled. Once none of a tenant's accounts has an installation, its erasure waits
-- for the grace; an account that installs again ends the wait. When it is due, the binding goes first, so that
-- whoever installs from then on is a new tenant, and no erasure can meet new work.
-- +goose Up
CREATE TABLE ingest.erasures (
    tenant     uuid        NOT NULL PRIMARY KEY,
    state      text        NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'erasing', 'done')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    due_at     timestamptz NOT NULL,
    done_at    timestamptz,
    CONSTRAINT erasures_done CHECK ((state = 'done') = (done_at IS NOT NULL))
);
CREATE INDEX erasures_open ON ingest.erasures (due_at) WHERE state <> 'done';
-- Who has uninstalled is found by what is deleted, which is little.
CREATE INDEX installations_deleted ON ingest.installations (tenant) WHERE state = 'deleted';

ALTER TABLE ingest.erasures ENABLE ROW LEVEL SECURITY;
ALTER TABLE ingest.erasures FORCE ROW LEVEL SECURITY;
CREATE POLICY erasures_system ON ingest.erasures TO fl_ingest USING (true) WITH CHECK (true);
CREATE POLICY erasures_tenant ON ingest.erasures TO fl_ingest_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
