-- 0004: where a finding stands in the pinned diff, so that a comment can be placed without another read of GitHub;
-- what could stand in its place; what an attempt saw; and which omissions had nothing to review. A range lies in
-- its hunk, and a suggestion has a place to be applied, or neither is there.

-- +goose Up
ALTER TABLE reviewer.findings
    ADD COLUMN start_line integer NOT NULL DEFAULT 0,
    ADD COLUMN hunk_start integer NOT NULL DEFAULT 0,
    ADD COLUMN hunk_end   integer NOT NULL DEFAULT 0,
    ADD COLUMN suggestion text CHECK (octet_length(suggestion) <= 10000),
    ADD CONSTRAINT findings_anchor CHECK (CASE hunk_start
        WHEN 0 THEN start_line = 0 AND hunk_end = 0 AND suggestion IS NULL
        ELSE hunk_start >= 1 AND line BETWEEN hunk_start AND hunk_end
             AND (start_line = 0 OR start_line >= hunk_start AND start_line < line) END);

ALTER TABLE reviewer.omissions
    ADD COLUMN minor boolean NOT NULL DEFAULT false;

ALTER TABLE reviewer.attempts
    ADD COLUMN seen_files integer NOT NULL DEFAULT 0 CHECK (seen_files >= 0),
    ADD COLUMN seen_bytes bigint  NOT NULL DEFAULT 0 CHECK (seen_bytes >= 0),
    ADD CONSTRAINT attempts_seen CHECK (verdict <> '' OR seen_files = 0 AND seen_bytes = 0);
