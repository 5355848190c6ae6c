-- 0005: catching up. GitHub delivers once and never again by itself: what was missed is found by reading the
-- App's delivery log and by listing open pull requests. Who sweeps, and how far it has come, are rows, so that
-- any replica can go on where another stopped.

-- +goose Up
CREATE TABLE ingest.sweeps (
    name       text        NOT NULL PRIMARY KEY,
    -- Who sweeps, and until when nobody else does.
    holder     uuid,
    held_until timestamptz,
    next_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Of the pass under way through the delivery log: where it goes on, and the newest entry it began with.
    cursor     text        NOT NULL DEFAULT '',
    top_at     timestamptz,
    -- Everything older has been looked at, by a pass that came to its end.
    seen_at    timestamptz,
    CONSTRAINT sweeps_held CHECK ((holder IS NULL) = (held_until IS NULL))
);

CREATE TABLE ingest.missed (
    host            text        NOT NULL,
    hook            text        NOT NULL,
    delivery_id     text        NOT NULL CHECK (delivery_id <> ''),
    -- GitHub's newest attempt that is known: what a redelivery names.
    attempt_id      bigint      NOT NULL,
    state           text        NOT NULL CHECK (state IN ('waiting', 'recovered', 'refused', 'given_up', 'expired')),
    tries           integer     NOT NULL DEFAULT 0,
    next_at         timestamptz NOT NULL,
    event           text        NOT NULL DEFAULT '',
    action          text        NOT NULL DEFAULT '',
    status          integer     NOT NULL,
    installation_id bigint      NOT NULL DEFAULT 0,
    repository_id   bigint      NOT NULL DEFAULT 0,
    delivered_at    timestamptz NOT NULL,
    found_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at        timestamptz,
    PRIMARY KEY (delivery_id, host, hook),
    CONSTRAINT missed_ended CHECK ((state = 'waiting') = (ended_at IS NULL))
);

CREATE INDEX missed_due ON ingest.missed (next_at) WHERE state = 'waiting';
CREATE INDEX missed_ended ON ingest.missed (ended_at) WHERE ended_at IS NOT NULL;

-- Neither belongs to a tenant: a delivery that never came has no owner yet.
REVOKE ALL ON ingest.sweeps, ingest.missed FROM fl_ingest_tenant;

-- When a project's open pull requests are listed next; NULL: at once. Whoever has news of it clears the claim,
-- so that a listing under way doesn't put off the next one.
ALTER TABLE ingest.projects
    ADD COLUMN sweep_at    timestamptz,
    ADD COLUMN sweep_claim uuid,
    ADD COLUMN swept_at    timestamptz,
    ADD COLUMN misses      integer NOT NULL DEFAULT 0,
    ADD COLUMN archived    boolean NOT NULL DEFAULT false;

CREATE INDEX projects_sweep ON ingest.projects (sweep_at NULLS FIRST) WHERE state = 'enrolled';

-- Projects whose repository moved to another tenant's account: the repository is enrolled there under a new id.
CREATE TABLE ingest.former_projects (
    id              uuid        NOT NULL PRIMARY KEY,
    tenant          uuid        NOT NULL,
    host            text        NOT NULL,
    repository_id   bigint      NOT NULL,
    repository      text        NOT NULL DEFAULT '',
    installation_id bigint      NOT NULL,
    created_at      timestamptz NOT NULL,
    moved_at        timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX former_projects_tenant ON ingest.former_projects (tenant, id);

ALTER TABLE ingest.former_projects ENABLE ROW LEVEL SECURITY;
ALTER TABLE ingest.former_projects FORCE ROW LEVEL SECURITY;

CREATE POLICY former_projects_system ON ingest.former_projects TO fl_ingest USING (true) WITH CHECK (true);
CREATE POLICY former_projects_tenant ON ingest.former_projects TO fl_ingest_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
