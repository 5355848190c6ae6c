-- 0010: another tenant lays claim to a repository whose project here is not listed: it was removed, or its installation is
-- suspended or gone. GitHub is asked, as the App itself, whose it is.

-- +goose Up
ALTER TABLE ingest.projects ADD COLUMN contested_at timestamptz;

CREATE INDEX projects_contested ON ingest.projects (contested_at) WHERE contested_at IS NOT NULL;
