-- 0005: repositories that are archived, or not their tenant's any more. An archive is a pause of its own, so that
-- its end doesn't end another's. The live targets of one project are listed by whoever compares them with GitHub:
-- of most projects nearly all pull requests are closed.

-- +goose Up
ALTER TABLE scheduler.pauses DROP CONSTRAINT pauses_cause_check;
ALTER TABLE scheduler.pauses ADD CONSTRAINT pauses_cause_check CHECK (cause IN ('operator', 'throttled', 'suspension', 'archive'));

CREATE INDEX targets_live ON scheduler.targets (tenant, project_id, id) WHERE state NOT IN ('closed', 'gone');
