-- 0004: what people ask for. A request is unique by its key within a project, so that a lost answer can be
-- asked for again. A command waits in its row while GitHub is asked who gave it: the webhook has been
-- answered by then, and no transaction is open during the call.

-- +goose Up
CREATE TABLE ingest.requests (
    id              uuid        NOT NULL PRIMARY KEY,
    tenant          uuid        NOT NULL,
    project_id      uuid        NOT NULL,
    number          bigint      NOT NULL CHECK (number > 0),
    source          text        NOT NULL CHECK (source IN ('api', 'command', 'rerun')),
    idempotency_key text        NOT NULL CHECK (idempotency_key <> ''),
    -- Of the request as it was understood: the same key with another one is a conflict.
    digest          bytea       NOT NULL CHECK (octet_length(digest) = 32),
    rerun           boolean     NOT NULL,
    dry_run         boolean     NOT NULL,
    requested_by    text        NOT NULL DEFAULT '',
    traceparent     text        NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- With the source, so that no caller's key can be a comment's or a delivery's.
    CONSTRAINT requests_key_once UNIQUE (tenant, project_id, source, idempotency_key)
);

CREATE INDEX requests_tenant ON ingest.requests (tenant, id);

CREATE TABLE ingest.commands (
    id              uuid        NOT NULL PRIMARY KEY,
    tenant          uuid        NOT NULL,
    project_id      uuid        NOT NULL,
    -- A slash command's comment, or a re-run of a check run or of all of a head's.
    source          text        NOT NULL CHECK (source IN ('comment', 'check_run', 'check_suite')),
    -- The comment's id, or the delivery's.
    cause           text        NOT NULL CHECK (cause <> ''),
    verb            text        NOT NULL CHECK (verb IN ('review', 'rerun', 'explain', 'pause', 'resume', 'unknown')),
    host            text        NOT NULL,
    installation_id bigint      NOT NULL CHECK (installation_id > 0),
    repository_id   bigint      NOT NULL CHECK (repository_id > 0),
    repository      text        NOT NULL DEFAULT '',
    number          bigint      NOT NULL DEFAULT 0,
    comment_id      bigint      NOT NULL DEFAULT 0,
    account_id      bigint      NOT NULL DEFAULT 0,
    login           text        NOT NULL DEFAULT '',
    external_id     text        NOT NULL DEFAULT '',
    head_sha        text        NOT NULL DEFAULT '',
    state           text        NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'done')),
    outcome         text        NOT NULL DEFAULT '' CHECK (outcome IN ('', 'accepted', 'refused', 'dropped')),
    reason          text        NOT NULL DEFAULT '',
    tries           integer     NOT NULL DEFAULT 0,
    available_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- GitHub throttles the installation until then: none of its commands is tried.
    held_until      timestamptz,
    claim_id        uuid,
    claim_until     timestamptz,
    last_error      text        NOT NULL DEFAULT '',
    traceparent     text        NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    done_at         timestamptz,
    CONSTRAINT commands_once        UNIQUE (tenant, project_id, source, cause),
    CONSTRAINT commands_claim_whole CHECK ((claim_id IS NULL) = (claim_until IS NULL)),
    CONSTRAINT commands_done        CHECK ((state = 'done') = (done_at IS NOT NULL) AND (state = 'done') = (outcome <> '')),
    CONSTRAINT commands_comment     CHECK (source <> 'comment' OR (comment_id > 0 AND account_id > 0 AND number > 0))
) WITH (fillfactor = 70);

-- Pending commands only: what was answered costs disk, never time.
CREATE INDEX commands_due     ON ingest.commands (available_at) WHERE state = 'pending';
CREATE INDEX commands_in_turn ON ingest.commands (tenant, project_id, number, id) WHERE state = 'pending';
CREATE INDEX commands_held    ON ingest.commands (tenant, host, installation_id) WHERE state = 'pending' AND held_until IS NOT NULL;
CREATE INDEX commands_refused ON ingest.commands (tenant, project_id, account_id, done_at) WHERE outcome = 'refused';

-- By name, as in the address of a pull request.
CREATE INDEX projects_named ON ingest.projects (tenant, host, lower(repository));

ALTER TABLE ingest.requests ENABLE ROW LEVEL SECURITY;
ALTER TABLE ingest.requests FORCE ROW LEVEL SECURITY;
ALTER TABLE ingest.commands ENABLE ROW LEVEL SECURITY;
ALTER TABLE ingest.commands FORCE ROW LEVEL SECURITY;

CREATE POLICY requests_system ON ingest.requests TO fl_ingest USING (true) WITH CHECK (true);
CREATE POLICY commands_system ON ingest.commands TO fl_ingest USING (true) WITH CHECK (true);

CREATE POLICY requests_tenant ON ingest.requests TO fl_ingest_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY commands_tenant ON ingest.commands TO fl_ingest_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
