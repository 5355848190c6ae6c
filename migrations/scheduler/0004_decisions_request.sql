-- 0004: a manual request is followed by the decisions that name it. Built beside the writes, which go on.

-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX CONCURRENTLY IF NOT EXISTS decisions_request ON scheduler.decisions (tenant, request_id, sequence) WHERE request_id <> '';
