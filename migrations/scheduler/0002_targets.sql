-- 0002: targets and their runs. A target's row is what every fenced write locks and checks. A claim and
-- its lease come and go together; a run is one exact comparison; what is due is found by one partial
-- index in the claim's own order, tenant first, so that one tenant's backlog hides nobody else's target.

-- +goose Up
CREATE TABLE scheduler.targets (
    id                uuid        NOT NULL PRIMARY KEY,
    tenant            uuid        NOT NULL,
    project_id        uuid        NOT NULL,
    host              text        NOT NULL CHECK (host <> ''),
    installation_id   bigint      NOT NULL,
    repository_id     bigint      NOT NULL CHECK (repository_id > 0),
    repository        text        NOT NULL DEFAULT '',
    number            bigint      NOT NULL CHECK (number > 0),

    state             text        NOT NULL DEFAULT '' CHECK (state IN ('', 'open', 'draft', 'closed', 'gone')),
    generation        bigint      NOT NULL DEFAULT 0,
    resolved_generation bigint    NOT NULL DEFAULT 0,
    activities        bigint      NOT NULL DEFAULT 0,
    lifecycle         bigint      NOT NULL DEFAULT 1 CHECK (lifecycle >= 1),

    -- What the last epoch says.
    epoch             bigint      NOT NULL DEFAULT 0,
    page_kind         text        NOT NULL DEFAULT '' CHECK (page_kind IN ('', 'result', 'skipped', 'refused', 'over_budget', 'superseded')),
    page_reason       text        NOT NULL DEFAULT '',
    page_detail       text        NOT NULL DEFAULT '',
    page_run_id       uuid,
    page_head         text        NOT NULL DEFAULT '',
    page_base_ref     text        NOT NULL DEFAULT '',
    page_base_sha     text        NOT NULL DEFAULT '',
    page_merge_base   text        NOT NULL DEFAULT '',
    page_delivery     text        NOT NULL DEFAULT '' CHECK (page_delivery IN ('', 'pending', 'delivered', 'ended')),
    comment_url       text        NOT NULL DEFAULT '',

    due_at            timestamptz,
    not_before        timestamptz,
    not_before_lapsed boolean     NOT NULL DEFAULT false,
    first_activity_at timestamptz,
    requests          jsonb       NOT NULL DEFAULT '[]',
    wants_publish     boolean     NOT NULL DEFAULT false,

    -- The newest that was heard.
    hint_state        text        NOT NULL DEFAULT '',
    hint_head         text        NOT NULL DEFAULT '',
    hint_base_ref     text        NOT NULL DEFAULT '',
    hint_before       text        NOT NULL DEFAULT '',
    hint_updated_at   timestamptz,
    hint_heard_at     timestamptz,

    -- The last read that was accepted.
    read_state        text        NOT NULL DEFAULT '',
    read_head         text        NOT NULL DEFAULT '',
    read_base_ref     text        NOT NULL DEFAULT '',
    read_base_sha     text        NOT NULL DEFAULT '',
    read_merge_base   text        NOT NULL DEFAULT '',
    read_updated_at   timestamptz,
    read_at           timestamptz,
    read_generation   bigint      NOT NULL DEFAULT 0,
    read_served_not_dry boolean   NOT NULL DEFAULT false,

    claim_id          uuid,
    lease_until       timestamptz,
    claim_worker      text        NOT NULL DEFAULT '',
    claimed_at        timestamptz,
    claim_run_id      uuid,
    claim_activities  bigint      NOT NULL DEFAULT 0,
    cancel_requested  boolean     NOT NULL DEFAULT false,
    in_work_run_id    uuid,
    superseded_in_row integer     NOT NULL DEFAULT 0,
    lapses            integer     NOT NULL DEFAULT 0,

    -- How the last claim ended, for a call that is repeated after a lost answer.
    end_claim_id      uuid,
    end_call          text        NOT NULL DEFAULT '',
    end_answer        text        NOT NULL DEFAULT '',
    end_run_id        uuid,
    end_reason        text        NOT NULL DEFAULT '',
    end_epoch         bigint      NOT NULL DEFAULT 0,
    end_refused       text        NOT NULL DEFAULT '',

    trace             text        NOT NULL DEFAULT '',
    links             text[],
    latest_delivery   text        NOT NULL DEFAULT '',
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    touched_at        timestamptz NOT NULL,

    -- When it may be claimed: the claim's order.
    ready_at          timestamptz GENERATED ALWAYS AS (CASE WHEN due_at IS NULL THEN NULL ELSE GREATEST(due_at, not_before) END) STORED,

    UNIQUE (tenant, host, repository_id, number),
    CONSTRAINT targets_claim_whole    CHECK ((claim_id IS NULL) = (lease_until IS NULL)),
    CONSTRAINT targets_claim_run      CHECK (claim_run_id IS NULL OR claim_id IS NOT NULL),
    CONSTRAINT targets_lease_bounded  CHECK (lease_until <= claimed_at + interval '1 hour'),
    CONSTRAINT targets_resolved_heard CHECK (resolved_generation <= generation),
    CONSTRAINT targets_page_said      CHECK ((epoch = 0) = (page_kind = ''))
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.02
);

-- Claimed rows stay in it, since a claim writes no column of it: few are in work at once.
CREATE INDEX targets_ready ON scheduler.targets (tenant, ready_at, id) WHERE ready_at IS NOT NULL;
CREATE INDEX targets_claimed ON scheduler.targets (lease_until) WHERE claim_id IS NOT NULL;
CREATE INDEX targets_list ON scheduler.targets (tenant, id);
CREATE INDEX targets_name ON scheduler.targets (lower(repository), number);

-- What a person has may be a trace id.
CREATE INDEX targets_trace ON scheduler.targets (substr(trace, 4, 32)) WHERE trace <> '';

CREATE TABLE scheduler.runs (
    id            uuid        NOT NULL PRIMARY KEY,
    tenant        uuid        NOT NULL,
    target_id     uuid        NOT NULL,
    lifecycle     bigint      NOT NULL,
    base_sha      text        NOT NULL CHECK (base_sha <> ''),
    head_sha      text        NOT NULL CHECK (head_sha <> ''),
    ordinal       integer     NOT NULL CHECK (ordinal >= 0),
    base_ref      text        NOT NULL DEFAULT '',
    merge_base    text        NOT NULL DEFAULT '',
    state         text        NOT NULL CHECK (state IN ('open', 'done', 'refused')),
    attempt_id    uuid,
    result_claim  uuid,
    result_generation bigint  NOT NULL DEFAULT 0,
    verdict       text        NOT NULL DEFAULT '' CHECK (verdict IN ('', 'clean', 'findings')),
    errors        integer     NOT NULL DEFAULT 0,
    warnings      integer     NOT NULL DEFAULT 0,
    infos         integer     NOT NULL DEFAULT 0,
    engine        text        NOT NULL DEFAULT '',
    cost          bigint      NOT NULL DEFAULT 0,
    adopted       boolean     NOT NULL DEFAULT false,
    taken_from    uuid,
    reason        text        NOT NULL DEFAULT '',
    detail        text        NOT NULL DEFAULT '',
    over_budget   boolean     NOT NULL DEFAULT false,
    receipted     boolean     NOT NULL DEFAULT false,
    receipt_epoch bigint      NOT NULL DEFAULT 0,
    delivery      text        NOT NULL DEFAULT '' CHECK (delivery IN ('', 'pending', 'delivered', 'ended')),
    trace         text        NOT NULL DEFAULT '',
    version       bigint      NOT NULL DEFAULT 1,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at      timestamptz,
    -- One exact comparison is one run.
    CONSTRAINT runs_comparison UNIQUE (tenant, target_id, lifecycle, base_sha, head_sha, ordinal),
    CONSTRAINT runs_result CHECK ((state = 'done') = (attempt_id IS NOT NULL)),
    CONSTRAINT runs_ended CHECK ((state = 'open') = (ended_at IS NULL))
) WITH (fillfactor = 80);

CREATE INDEX runs_head ON scheduler.runs (head_sha);
CREATE INDEX runs_trace ON scheduler.runs (substr(trace, 4, 32)) WHERE trace <> '';
CREATE INDEX runs_target ON scheduler.runs (tenant, target_id, id);

ALTER TABLE scheduler.targets ENABLE ROW LEVEL SECURITY;
ALTER TABLE scheduler.targets FORCE ROW LEVEL SECURITY;
ALTER TABLE scheduler.runs    ENABLE ROW LEVEL SECURITY;
ALTER TABLE scheduler.runs    FORCE ROW LEVEL SECURITY;

CREATE POLICY targets_system ON scheduler.targets TO fl_scheduler USING (true) WITH CHECK (true);
CREATE POLICY runs_system    ON scheduler.runs    TO fl_scheduler USING (true) WITH CHECK (true);

-- Unset and empty tenant both raise an error in the cast: refused, never an empty answer.
CREATE POLICY targets_tenant ON scheduler.targets TO fl_scheduler_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY runs_tenant    ON scheduler.runs    TO fl_scheduler_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
