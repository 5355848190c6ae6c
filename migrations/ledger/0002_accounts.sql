-- 0002: balances, reservations, transfers and receipts. The constraints carry the invariants: no
-- transfer that does not balance, no settlement above its reservation, no negative holding. Transfers
-- are append-only: no role may update or delete one.

-- +goose Up
CREATE TABLE ledger.accounts (
    tenant          uuid        NOT NULL PRIMARY KEY,
    granted         bigint      NOT NULL DEFAULT 0 CHECK (granted >= 0),
    available       bigint      NOT NULL DEFAULT 0,
    reserved        bigint      NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    spent           bigint      NOT NULL DEFAULT 0 CHECK (spent >= 0),
    overruns        bigint      NOT NULL DEFAULT 0 CHECK (overruns >= 0),
    sequence        bigint      NOT NULL DEFAULT 0,
    budget_period   text        NOT NULL DEFAULT '' CHECK (budget_period IN ('', 'day', 'month')),
    budget_limit    bigint      NOT NULL DEFAULT 0 CHECK (budget_limit >= 0),
    budget_used     bigint      NOT NULL DEFAULT 0 CHECK (budget_used >= 0),
    budget_start_at timestamptz NOT NULL DEFAULT 'epoch',
    opened_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT accounts_balanced CHECK (granted = available + reserved + spent + overruns),
    -- Only what a provider reported above its reservation may take an account below zero.
    CONSTRAINT accounts_covered CHECK (available >= -overruns)
) WITH (fillfactor = 70);

CREATE TABLE ledger.reservations (
    tenant     uuid        NOT NULL,
    attempt_id uuid        NOT NULL,
    run_id     uuid        NOT NULL,
    state      text        NOT NULL CHECK (state IN ('open', 'settled', 'voided', 'tombstone')),
    amount     bigint      NOT NULL CHECK (amount >= 0),
    settled    bigint      NOT NULL DEFAULT 0,
    overrun    bigint      NOT NULL DEFAULT 0 CHECK (overrun >= 0),
    estimate   boolean     NOT NULL DEFAULT false,
    engine     text        NOT NULL DEFAULT '',
    outcome    text        NOT NULL DEFAULT '',
    held_at    timestamptz NOT NULL,
    closed_at  timestamptz,
    PRIMARY KEY (tenant, attempt_id),
    CONSTRAINT reservations_bounded CHECK (settled >= 0 AND settled <= amount),
    CONSTRAINT reservations_closed CHECK ((state = 'open') = (closed_at IS NULL)),
    CONSTRAINT reservations_spend CHECK (state = 'settled' OR settled = 0)
) WITH (fillfactor = 70);

CREATE INDEX reservations_run ON ledger.reservations (tenant, run_id);
-- What the sweeper walks: nothing but what is held.
CREATE INDEX reservations_open ON ledger.reservations (held_at) WHERE state = 'open';

CREATE TABLE ledger.transfers (
    id         uuid        NOT NULL PRIMARY KEY,
    tenant     uuid        NOT NULL REFERENCES ledger.accounts (tenant),
    sequence   bigint      NOT NULL,
    kind       text        NOT NULL CHECK (kind IN ('grant', 'reserve', 'settle', 'void', 'correct', 'overrun')),
    key        text        NOT NULL,
    attempt_id uuid,
    run_id     uuid,
    note       text        NOT NULL DEFAULT '',
    estimate   boolean     NOT NULL DEFAULT false,
    grants     bigint      NOT NULL DEFAULT 0,
    available  bigint      NOT NULL DEFAULT 0,
    reserved   bigint      NOT NULL DEFAULT 0,
    spent      bigint      NOT NULL DEFAULT 0,
    overruns   bigint      NOT NULL DEFAULT 0,
    at         timestamptz NOT NULL,
    UNIQUE (tenant, sequence),
    UNIQUE (tenant, key),
    CONSTRAINT transfers_balanced CHECK (grants + available + reserved + spent + overruns = 0)
);

CREATE INDEX transfers_run ON ledger.transfers (tenant, run_id, sequence) WHERE run_id IS NOT NULL;

CREATE TABLE ledger.receipts (
    tenant       uuid        NOT NULL,
    run_id       uuid        NOT NULL,
    target_id    uuid,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    completed_at timestamptz,
    PRIMARY KEY (tenant, run_id)
);

CREATE INDEX receipts_newest ON ledger.receipts (tenant, created_at DESC, run_id);

CREATE TABLE ledger.receipt_ends (
    tenant     uuid        NOT NULL,
    run_id     uuid        NOT NULL,
    epoch      bigint      NOT NULL,
    outcome    text        NOT NULL,
    attempt_id uuid,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, run_id, epoch)
);

REVOKE UPDATE, DELETE ON ledger.transfers FROM fl_ledger, fl_ledger_tenant;
REVOKE UPDATE, DELETE ON ledger.receipt_ends FROM fl_ledger, fl_ledger_tenant;

ALTER TABLE ledger.accounts     ENABLE ROW LEVEL SECURITY;
ALTER TABLE ledger.accounts     FORCE ROW LEVEL SECURITY;
ALTER TABLE ledger.reservations ENABLE ROW LEVEL SECURITY;
ALTER TABLE ledger.reservations FORCE ROW LEVEL SECURITY;
ALTER TABLE ledger.transfers    ENABLE ROW LEVEL SECURITY;
ALTER TABLE ledger.transfers    FORCE ROW LEVEL SECURITY;
ALTER TABLE ledger.receipts     ENABLE ROW LEVEL SECURITY;
ALTER TABLE ledger.receipts     FORCE ROW LEVEL SECURITY;
ALTER TABLE ledger.receipt_ends ENABLE ROW LEVEL SECURITY;
ALTER TABLE ledger.receipt_ends FORCE ROW LEVEL SECURITY;

-- Unset and empty tenant both raise an error in the cast: refused, never an empty answer.
CREATE POLICY accounts_system     ON ledger.accounts     TO fl_ledger USING (true) WITH CHECK (true);
CREATE POLICY reservations_system ON ledger.reservations TO fl_ledger USING (true) WITH CHECK (true);
CREATE POLICY transfers_system    ON ledger.transfers    TO fl_ledger USING (true) WITH CHECK (true);
CREATE POLICY receipts_system     ON ledger.receipts     TO fl_ledger USING (true) WITH CHECK (true);
CREATE POLICY receipt_ends_system ON ledger.receipt_ends TO fl_ledger USING (true) WITH CHECK (true);

CREATE POLICY accounts_tenant     ON ledger.accounts     TO fl_ledger_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY reservations_tenant ON ledger.reservations TO fl_ledger_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY transfers_tenant    ON ledger.transfers    TO fl_ledger_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY receipts_tenant     ON ledger.receipts     TO fl_ledger_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
CREATE POLICY receipt_ends_tenant ON ledger.receipt_ends TO fl_ledger_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
