-- 0007: what is unique across tenants says why. A service refuses to start on any other unique index without the
-- tenant, since it would reveal that another tenant's value exists.

-- +goose Up
COMMENT ON INDEX scheduler.decisions_pkey IS 'across tenants: a number that the database makes, and that no tenant asks for';
