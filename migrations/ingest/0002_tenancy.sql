-- 0002: who pays, and for which repositories. Identity is numeric: a login or a name that is reused
-- reaches no other tenant. One account of a host belongs to one tenant, one repository to one project.

-- +goose Up
CREATE TABLE ingest.accounts (
    tenant     uuid        NOT NULL,
    host       text        NOT NULL CHECK (host <> ''),
    account_id bigint      NOT NULL CHECK (account_id > 0),
    login      text        NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, host, account_id),
    -- Without the tenant, on purpose: an account bound twice must fail.
    CONSTRAINT accounts_bound_once UNIQUE (host, account_id)
);

CREATE TABLE ingest.installations (
    tenant          uuid        NOT NULL,
    host            text        NOT NULL,
    installation_id bigint      NOT NULL CHECK (installation_id > 0),
    account_id      bigint      NOT NULL,
    state           text        NOT NULL CHECK (state IN ('active', 'suspended', 'deleted')),
    -- GitHub's updated_at of the installation: an older event changes nothing.
    changed_at      timestamptz NOT NULL DEFAULT 'epoch',
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, host, installation_id),
    FOREIGN KEY (tenant, host, account_id) REFERENCES ingest.accounts (tenant, host, account_id),
    CONSTRAINT installations_once UNIQUE (host, installation_id)
);

CREATE TABLE ingest.projects (
    id              uuid        NOT NULL PRIMARY KEY,
    tenant          uuid        NOT NULL,
    host            text        NOT NULL,
    repository_id   bigint      NOT NULL CHECK (repository_id > 0),
    repository      text        NOT NULL DEFAULT '',
    installation_id bigint      NOT NULL,
    state           text        NOT NULL CHECK (state IN ('enrolled', 'removed')),
    -- GitHub's time of the event that added or removed it last: an older one changes nothing.
    changed_at      timestamptz NOT NULL DEFAULT 'epoch',
    -- When a removal was received: what happened later on GitHub shows that access is back.
    removed_at      timestamptz,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    FOREIGN KEY (tenant, host, installation_id) REFERENCES ingest.installations (tenant, host, installation_id),
    CONSTRAINT projects_once UNIQUE (host, repository_id),
    CONSTRAINT projects_removed_at CHECK ((state = 'removed') = (removed_at IS NOT NULL))
);

CREATE INDEX projects_tenant ON ingest.projects (tenant, id);
CREATE INDEX projects_installation ON ingest.projects (tenant, host, installation_id);

ALTER TABLE ingest.accounts      ENABLE ROW LEVEL SECURITY;
ALTER TABLE ingest.accounts      FORCE ROW LEVEL SECURITY;
ALTER TABLE ingest.installations ENABLE ROW LEVEL SECURITY;
ALTER TABLE ingest.installations FORCE ROW LEVEL SECURITY;
ALTER TABLE ingest.projects      ENABLE ROW LEVEL SECURITY;
ALTER TABLE ingest.projects      FORCE ROW LEVEL SECURITY;

CREATE POLICY accounts_system      ON ingest.accounts      TO fl_ingest USING (true) WITH CHECK (true);
CREATE POLICY installations_system ON ingest.installations TO fl_ingest USING (true) WITH CHECK (true);
CREATE POLICY projects_system      ON ingest.projects      TO fl_ingest USING (true) WITH CHECK (true);

-- Unset and empty tenant both raise an error in the cast: refused, never an empty answer.
CREATE POLICY accounts_tenant      ON ingest.accounts      TO fl_ingest_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY installations_tenant ON ingest.installations TO fl_ingest_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY projects_tenant      ON ingest.projects      TO fl_ingest_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
