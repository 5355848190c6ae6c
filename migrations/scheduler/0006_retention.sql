-- 0006: retention. What rests is found by when it was last touched, in an index of its own: a target that is
-- due, in work or was never read is not in it. Activities are found by their age. What was decided and heard
-- stays append-only for the tenant role; the system role removes it past its retention.
-- +goose Up
CREATE INDEX targets_resting ON scheduler.targets (touched_at)
    WHERE due_at IS NULL AND claim_id IS NULL AND read_at IS NOT NULL;
CREATE INDEX activities_recorded ON scheduler.activities (recorded_at);

GRANT DELETE ON scheduler.activities, scheduler.decisions TO fl_scheduler;
