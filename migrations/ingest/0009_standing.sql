-- 0009: an installation's standing is looked at by itself, since the event that tells of its end, its suspension or
-- the end of that may be lost for good. lost_at is when GitHub, asked several times, had no such installation any
-- more; NULL again once it has.

-- +goose Up
ALTER TABLE ingest.installations
    ADD COLUMN misses  integer NOT NULL DEFAULT 0,
    ADD COLUMN lost_at timestamptz;

CREATE INDEX installations_look ON ingest.installations (sweep_at NULLS FIRST) WHERE state <> 'deleted';
CREATE INDEX installations_lost ON ingest.installations (tenant) WHERE lost_at IS NOT NULL;
