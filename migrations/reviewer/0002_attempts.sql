-- 0002: attempts at reviewing runs, what they found and what they left out. The constraints carry the
-- invariants: a number is used once per run, a claim makes one attempt, a target has one engine at work,
-- an attempt that never started costs nothing, and only a finished one (or the evidence of an expired
-- one) has a verdict.

-- +goose Up
CREATE TABLE reviewer.attempts (
    id             uuid        NOT NULL,
    tenant         uuid        NOT NULL,
    target_id      uuid        NOT NULL,
    lifecycle      bigint      NOT NULL CHECK (lifecycle >= 1),
    run_id         uuid        NOT NULL,
    ordinal        integer     NOT NULL CHECK (ordinal >= 0),
    claim_id       uuid        NOT NULL,
    generation     bigint      NOT NULL CHECK (generation >= 0),
    base_sha       text        NOT NULL,
    head_sha       text        NOT NULL,
    merge_base_sha text        NOT NULL,
    from_fork      boolean     NOT NULL,
    diff_bytes     bigint      NOT NULL CHECK (diff_bytes >= 0),
    engine         text        NOT NULL,
    number         integer     NOT NULL DEFAULT 0 CHECK (number BETWEEN 0 AND 100),
    state          text        NOT NULL CHECK (state IN ('created', 'started', 'finished', 'failed', 'cancelled', 'voided', 'expired')),
    reserved       bigint      NOT NULL CHECK (reserved > 0),
    cost           bigint      NOT NULL DEFAULT 0 CHECK (cost >= 0),
    estimate       boolean     NOT NULL DEFAULT false,
    verdict        text        NOT NULL DEFAULT '' CHECK (verdict IN ('', 'clean', 'findings')),
    errors         integer     NOT NULL DEFAULT 0 CHECK (errors >= 0),
    warnings       integer     NOT NULL DEFAULT 0 CHECK (warnings >= 0),
    infos          integer     NOT NULL DEFAULT 0 CHECK (infos >= 0),
    reason         text        NOT NULL DEFAULT '',
    traceparent    text        NOT NULL DEFAULT '',
    lease_until    timestamptz NOT NULL,
    created_at     timestamptz NOT NULL,
    started_at     timestamptz,
    ended_at       timestamptz,
    PRIMARY KEY (tenant, id),
    CONSTRAINT attempts_one_per_claim  UNIQUE (tenant, claim_id),
    CONSTRAINT attempts_open           CHECK ((ended_at IS NULL) = (state IN ('created', 'started'))),
    CONSTRAINT attempts_started        CHECK ((started_at IS NULL) = (state IN ('created', 'voided'))),
    CONSTRAINT attempts_numbered       CHECK ((number = 0) = (state IN ('created', 'voided', 'cancelled'))),
    CONSTRAINT attempts_unspent        CHECK (started_at IS NOT NULL OR (cost = 0 AND NOT estimate)),
    CONSTRAINT attempts_estimate       CHECK (NOT estimate OR cost = reserved),
    CONSTRAINT attempts_verdict        CHECK (CASE state WHEN 'finished' THEN verdict <> '' WHEN 'expired' THEN true ELSE verdict = '' END),
    CONSTRAINT attempts_verdict_counts CHECK ((verdict = 'findings') = (errors + warnings + infos > 0))
) WITH (fillfactor = 70);

-- At most as many starts as numbers, whoever races.
CREATE UNIQUE INDEX attempts_number ON reviewer.attempts (tenant, run_id, number) WHERE number > 0;
-- One engine per target.
CREATE UNIQUE INDEX attempts_one_engine ON reviewer.attempts (tenant, target_id) WHERE state = 'started';
-- What the reaper walks, in its order: open attempts alone.
CREATE INDEX attempts_orphans ON reviewer.attempts (lease_until) WHERE state IN ('created', 'started');
CREATE INDEX attempts_adoptable ON reviewer.attempts (tenant, target_id, head_sha) WHERE state = 'finished';
CREATE INDEX attempts_of_target ON reviewer.attempts (tenant, target_id, created_at, id);
CREATE INDEX attempts_of_run ON reviewer.attempts (tenant, run_id, created_at, id);

CREATE TABLE reviewer.findings (
    tenant     uuid    NOT NULL,
    attempt_id uuid    NOT NULL,
    sequence   integer NOT NULL CHECK (sequence >= 1),
    path       text    NOT NULL CHECK (octet_length(path) BETWEEN 1 AND 4096),
    line       integer NOT NULL CHECK (line >= 1),
    severity   text    NOT NULL CHECK (severity IN ('info', 'warning', 'error')),
    rule       text    NOT NULL CHECK (octet_length(rule) BETWEEN 1 AND 200),
    message    text    NOT NULL CHECK (octet_length(message) BETWEEN 1 AND 1000),
    PRIMARY KEY (tenant, attempt_id, sequence),
    FOREIGN KEY (tenant, attempt_id) REFERENCES reviewer.attempts (tenant, id) ON DELETE CASCADE
);

CREATE TABLE reviewer.omissions (
    tenant     uuid    NOT NULL,
    attempt_id uuid    NOT NULL,
    sequence   integer NOT NULL CHECK (sequence >= 1),
    path       text    NOT NULL CHECK (octet_length(path) <= 4096),
    reason     text    NOT NULL CHECK (octet_length(reason) BETWEEN 1 AND 1000),
    PRIMARY KEY (tenant, attempt_id, sequence),
    FOREIGN KEY (tenant, attempt_id) REFERENCES reviewer.attempts (tenant, id) ON DELETE CASCADE
);

-- What was found is never edited.
REVOKE UPDATE ON reviewer.findings FROM fl_reviewer, fl_reviewer_tenant;
REVOKE UPDATE ON reviewer.omissions FROM fl_reviewer, fl_reviewer_tenant;

ALTER TABLE reviewer.attempts  ENABLE ROW LEVEL SECURITY;
ALTER TABLE reviewer.attempts  FORCE ROW LEVEL SECURITY;
ALTER TABLE reviewer.findings  ENABLE ROW LEVEL SECURITY;
ALTER TABLE reviewer.findings  FORCE ROW LEVEL SECURITY;
ALTER TABLE reviewer.omissions ENABLE ROW LEVEL SECURITY;
ALTER TABLE reviewer.omissions FORCE ROW LEVEL SECURITY;

-- Unset and empty tenant both raise an error in the cast: refused, never an empty answer.
CREATE POLICY attempts_system  ON reviewer.attempts  TO fl_reviewer USING (true) WITH CHECK (true);
CREATE POLICY findings_system  ON reviewer.findings  TO fl_reviewer USING (true) WITH CHECK (true);
CREATE POLICY omissions_system ON reviewer.omissions TO fl_reviewer USING (true) WITH CHECK (true);

CREATE POLICY attempts_tenant  ON reviewer.attempts  TO fl_reviewer_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY findings_tenant  ON reviewer.findings  TO fl_reviewer_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY omissions_tenant ON reviewer.omissions TO fl_reviewer_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
