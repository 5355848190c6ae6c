-- 0003: retention. What a run's attempts found goes with its lifecycle; attempts that never counted as one go
-- by age, and are found by it.
-- +goose Up
CREATE INDEX attempts_uncounted ON reviewer.attempts (ended_at) WHERE number = 0 AND ended_at IS NOT NULL;
