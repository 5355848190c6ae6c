-- 0008: what is unique across tenants says why. A service refuses to start on any other unique index without the
-- tenant, since it would reveal that another tenant's value exists.

-- +goose Up
COMMENT ON INDEX ingest.accounts_bound_once IS 'across tenants: an account of a host has one tenant, and only the system binds';
COMMENT ON INDEX ingest.installations_once IS 'across tenants: an installation has one account, and only the system records it';
COMMENT ON INDEX ingest.projects_once IS 'across tenants: a repository is enrolled once, and only the system enrols';
