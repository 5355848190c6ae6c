-- 0004: answers to slash commands. A reply is an epoch of its own little target, named by its cause, so that
-- it is recorded, sent, looked up and paced like everything else. Publishers are replaced before ingest has
-- any replies to make: an older one does not know the surfaces.

-- +goose Up
ALTER TABLE publisher.epochs
    ADD COLUMN reply_id   text   NOT NULL DEFAULT '',
    ADD COLUMN comment_id bigint NOT NULL DEFAULT 0,
    ADD COLUMN reaction   text   NOT NULL DEFAULT '',
    DROP CONSTRAINT epochs_kind_check,
    ADD CONSTRAINT epochs_kind_check CHECK (kind IN ('result', 'superseded', 'skipped', 'refused', 'over_budget', 'reply')) NOT VALID,
    ADD CONSTRAINT epochs_reply_whole CHECK ((kind = 'reply') = (reply_id <> '' AND comment_id > 0 AND reaction <> '')) NOT VALID;
ALTER TABLE publisher.intents
    DROP CONSTRAINT intents_surface_check,
    ADD CONSTRAINT intents_surface_check CHECK (surface IN ('summary', 'check_run', 'reaction', 'reply')) NOT VALID;
ALTER TABLE publisher.surfaces
    DROP CONSTRAINT surfaces_surface_check,
    ADD CONSTRAINT surfaces_surface_check CHECK (surface IN ('summary', 'check_run', 'reaction', 'reply')) NOT VALID;

-- Reads the tables, and lets writes go on.
ALTER TABLE publisher.epochs   VALIDATE CONSTRAINT epochs_kind_check;
ALTER TABLE publisher.epochs   VALIDATE CONSTRAINT epochs_reply_whole;
ALTER TABLE publisher.intents  VALIDATE CONSTRAINT intents_surface_check;
ALTER TABLE publisher.surfaces VALIDATE CONSTRAINT surfaces_surface_check;

CREATE INDEX surfaces_answered ON publisher.surfaces (updated_at) WHERE surface IN ('reaction', 'reply');
