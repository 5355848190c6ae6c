-- 0005: reviews, remarks, commit statuses and progress. What is open on a page is found by an index when something
-- is to be taken back; what was written is looked at again at a time of its own, without any open intent. A project
-- chooses its surfaces. Publishers are replaced before the scheduler has any progress to tell: an older one does not
-- know the step of a position.

-- +goose Up
ALTER TABLE publisher.intents  DROP CONSTRAINT intents_epoch;
ALTER TABLE publisher.epochs
    ADD COLUMN step bigint NOT NULL DEFAULT 0 CHECK (step >= 0),
    DROP CONSTRAINT epochs_pkey,
    ADD CONSTRAINT epochs_pkey PRIMARY KEY (tenant, target_id, lifecycle, epoch, step),
    DROP CONSTRAINT epochs_epoch_check,
    ADD CONSTRAINT epochs_epoch_check CHECK (epoch >= 1 OR epoch = 0 AND step > 0),
    DROP CONSTRAINT epochs_kind_check,
    ADD CONSTRAINT epochs_kind_check CHECK (kind IN ('result', 'superseded', 'skipped', 'refused', 'over_budget', 'reply', 'queued', 'in_progress')),
    ADD CONSTRAINT epochs_progress_whole CHECK ((kind IN ('queued', 'in_progress')) = (step > 0) AND (step = 0 OR run_id IS NOT NULL AND head_sha <> ''));

ALTER TABLE publisher.intents
    ADD COLUMN step    bigint NOT NULL DEFAULT 0,
    -- Fingerprints that a review says: as it was last sent, or, of a part, as it is to be.
    ADD COLUMN remarks text[] NOT NULL DEFAULT '{}',
    DROP CONSTRAINT intents_surface_check,
    ADD CONSTRAINT intents_surface_check CHECK (surface IN ('summary', 'review', 'remark', 'check_run', 'commit_status', 'reaction', 'reply')),
    ADD CONSTRAINT intents_epoch FOREIGN KEY (tenant, target_id, lifecycle, epoch, step)
        REFERENCES publisher.epochs (tenant, target_id, lifecycle, epoch, step) ON DELETE CASCADE;

ALTER TABLE publisher.surfaces
    ADD COLUMN shown_step bigint   NOT NULL DEFAULT 0,
    ADD COLUMN open       boolean  NOT NULL DEFAULT false,
    ADD COLUMN checks     smallint NOT NULL DEFAULT 0 CHECK (checks >= 0),
    ADD COLUMN check_at   timestamptz,
    ADD CONSTRAINT surfaces_check_whole CHECK ((checks > 0) = (check_at IS NOT NULL)),
    DROP CONSTRAINT surfaces_surface_check,
    ADD CONSTRAINT surfaces_surface_check CHECK (surface IN ('summary', 'review', 'remark', 'check_run', 'commit_status', 'reaction', 'reply'));

-- Of a target few are open, and of a tenant few are to be looked at.
CREATE INDEX surfaces_open  ON publisher.surfaces (tenant, target_id) WHERE open;
CREATE INDEX surfaces_check ON publisher.surfaces (tenant, check_at) WHERE check_at IS NOT NULL;

-- Which surfaces a project's results are shown on. No row: the summary, the review and the check run.
CREATE TABLE publisher.projects (
    tenant     uuid        NOT NULL,
    project_id uuid        NOT NULL,
    version    bigint      NOT NULL CHECK (version >= 1),
    surfaces   text[]      NOT NULL CHECK (cardinality(surfaces) >= 1),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, project_id),
    CONSTRAINT projects_surfaces_known CHECK (surfaces <@ ARRAY['summary', 'review', 'check_run', 'commit_status'])
);

ALTER TABLE publisher.projects ENABLE ROW LEVEL SECURITY;
ALTER TABLE publisher.projects FORCE ROW LEVEL SECURITY;

CREATE POLICY projects_system ON publisher.projects TO fl_publisher USING (true) WITH CHECK (true);
CREATE POLICY projects_tenant ON publisher.projects TO fl_publisher_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
