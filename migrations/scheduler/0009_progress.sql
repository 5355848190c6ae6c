-- 0009: progress. The last that the publisher was told of a run without a result, so that nothing is told twice
-- and the end of a run that a page shows has something to say.

-- +goose Up
ALTER TABLE scheduler.targets
    ADD COLUMN told_epoch      bigint NOT NULL DEFAULT 0,
    ADD COLUMN told_generation bigint NOT NULL DEFAULT 0,
    ADD COLUMN told_state      text   NOT NULL DEFAULT '' CHECK (told_state IN ('', 'queued', 'in_progress'));
