-- 0007: an installation's repositories are listed, since an event may name only some of them, or be lost.

-- +goose Up
ALTER TABLE ingest.installations
    ADD COLUMN sweep_at    timestamptz,
    ADD COLUMN sweep_claim uuid;

CREATE INDEX installations_sweep ON ingest.installations (sweep_at NULLS FIRST) WHERE state = 'active';
