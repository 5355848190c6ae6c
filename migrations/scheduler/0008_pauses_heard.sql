-- 0008: the later word of a pause stands. What ingest tells of installations and repositories has no order: a pause keeps
-- when that which set or ended it was recorded, by ingest's database, and one that was ended stays as a row, with its end
-- in the past, until it is purged like any other. Null: set by somebody who was there, such as a worker.

-- +goose Up
ALTER TABLE scheduler.pauses ADD COLUMN heard_at timestamptz;
