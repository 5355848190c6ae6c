-- 0003: retention. The transfers of runs that are past it are folded into the tenant's one opening
-- transfer: it has number 0 and says how many it stands for, so that numbers still tell whether one is
-- missing: those that all transfers of a tenant stand for, together, are as many as the account has
-- numbered. The tenant role stays unable to touch a transfer; the system role may add to an opening one, and
-- delete others, which the restrictive policies hold apart.
-- +goose Up
ALTER TABLE ledger.transfers DROP CONSTRAINT transfers_kind_check;
ALTER TABLE ledger.transfers
    ADD COLUMN covers bigint NOT NULL DEFAULT 1,
    ADD CONSTRAINT transfers_kind_check
        CHECK (kind IN ('opening', 'grant', 'reserve', 'settle', 'void', 'correct', 'overrun')),
    ADD CONSTRAINT transfers_opening CHECK ((kind = 'opening') = (sequence = 0)),
    ADD CONSTRAINT transfers_covers CHECK (covers >= 1 AND (kind = 'opening' OR covers = 1));

GRANT DELETE ON ledger.transfers, ledger.receipt_ends TO fl_ledger;
GRANT UPDATE (covers, grants, available, reserved, spent, overruns, at) ON ledger.transfers TO fl_ledger;
CREATE POLICY transfers_fold ON ledger.transfers AS RESTRICTIVE FOR UPDATE TO fl_ledger
    USING (kind = 'opening') WITH CHECK (kind = 'opening');
CREATE POLICY transfers_keep ON ledger.transfers AS RESTRICTIVE FOR DELETE TO fl_ledger
    USING (kind <> 'opening');

-- Found by age: attempts that were closed before they were held.
CREATE INDEX reservations_tombstones ON ledger.reservations (closed_at) WHERE state = 'tombstone';
