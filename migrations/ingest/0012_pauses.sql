-- 0012: what GitHub tells one call of an installation, to wait, holds for all of them: for sweeps and commands, in
-- every replica. Until now it held for the listings that were there, or for the commands.

-- +goose Up
ALTER TABLE ingest.installations ADD COLUMN paused_until timestamptz;

ALTER TABLE ingest.commands DROP COLUMN held_until;
