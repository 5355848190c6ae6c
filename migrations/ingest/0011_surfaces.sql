-- 0011: what a project's results are shown on. The publisher is told of each change by its version; a project
-- that never chose is at version 0, of which the publisher need not know.

-- +goose Up
ALTER TABLE ingest.projects
    ADD COLUMN surfaces         text[] NOT NULL DEFAULT '{summary,review,check_run}',
    ADD COLUMN surfaces_version bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT projects_surfaces CHECK (
        cardinality(surfaces) > 0 AND surfaces <@ ARRAY['summary', 'review', 'check_run', 'commit_status']);
