-- 0003: retention. Epochs go with their lifecycle; those that a later one has replaced go by age, and are found
-- by it.
-- +goose Up
CREATE INDEX epochs_ended ON publisher.epochs (ended_at) WHERE ended_at IS NOT NULL;
