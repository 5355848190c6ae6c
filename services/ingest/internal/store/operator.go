package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Bind binds an account and records its installation, on an operator's word. Idempotent; ErrAccountBound
// where the account is another tenant's, ErrInstallationTaken where the installation is another account's.
func (s *Store) Bind(ctx context.Context, in ingest.Installation) (ingest.Installation, error) {
	var out ingest.Installation
	err := s.db.System(ctx, func(tx *pg.Tx) error {
		tenant, err := s.bind(ctx, tx, binding{host: in.Host, installation: in.ID, account: in.Account, tenant: uuid.UUID(in.Tenant)})
		if err != nil {
			return err
		}
		out, err = collectOne(ctx, tx, getInstallation, pgx.NamedArgs{"host": in.Host, "installation": in.ID}, scanInstallation)
		if err == nil && (out.Tenant != tenant || out.Account.ID != in.Account.ID) {
			err = ingest.ErrInstallationTaken
		}
		return err
	})
	if err != nil {
		return ingest.Installation{}, fmt.Errorf("bind installation: %w", err)
	}
	return out, nil
}

// Enrol enrols a repository of a bound account. Idempotent; a removed project is enrolled again, and the
// scheduler is told. With surfaces the project chooses those, and the publisher is told where they are others than
// before.
func (s *Store) Enrol(ctx context.Context, p ingest.Project) (ingest.Project, error) {
	var out ingest.Project
	err := s.db.System(ctx, func(tx *pg.Tx) (err error) {
		out, err = s.enrolOne(ctx, tx, p)
		return err
	})
	if err != nil {
		return ingest.Project{}, fmt.Errorf("enrol project: %w", err)
	}
	return out, nil
}

func (s *Store) enrolOne(ctx context.Context, tx *pg.Tx, p ingest.Project) (ingest.Project, error) {
	o := owner{host: p.Host, installation: p.InstallationID, repository: p.RepositoryID}
	i, err := loadIntegration(ctx, tx, o)
	switch {
	case err != nil:
		return ingest.Project{}, err
	case i.InstalledBy == 0 || i.InstallationTenant != p.Tenant:
		return ingest.Project{}, ingest.ErrAccountUnknown
	}
	// With the account locked nothing is removed, or deleted, in between.
	if _, err := tx.Exec(ctx, lockAccount, pgx.NamedArgs{"tenant": p.Tenant, "host": p.Host, "account": i.InstalledBy}); err != nil {
		return ingest.Project{}, fmt.Errorf("lock account: %w", err)
	}
	if i, err = loadIntegration(ctx, tx, o); err != nil {
		return ingest.Project{}, err
	}
	if i.InstallationState == ingest.InstallationDeleted {
		return ingest.Project{}, ingest.ErrInstallationDeleted
	}
	added, err := enrol(ctx, tx, enrolment{
		tenant: p.Tenant, owner: o, repositories: []ingest.Repository{{ID: p.RepositoryID, Name: p.Repository}},
	})
	switch {
	case err != nil:
		return ingest.Project{}, err
	case len(added) == 0:
		return ingest.Project{}, ingest.ErrProjectTaken
	}
	tx.OnCommit(s.known.forget)
	tx.OnCommit(s.tell)
	cause := "enrol:" + added[0].ID.String() + ":" + newID().String()
	msgs := changeMessages(p.Tenant, cause, p.Host, p.InstallationID, ingest.ChangeAdded, restored(added))
	chosen, err := choose(ctx, tx, p.Tenant, added[0].ID, ingest.Surfaces(p.Surfaces))
	if err != nil {
		return ingest.Project{}, err
	}
	msgs = append(msgs, chosen...)
	if err := s.outbox.Enqueue(ctx, tx, msgs...); err != nil {
		return ingest.Project{}, err
	}
	return collectOne(ctx, tx, getProject, pgx.NamedArgs{"tenant": p.Tenant, "id": added[0].ID}, scanProject)
}

// choose stores the surfaces that a project chooses, and returns what the publisher has to be told: nothing where
// none are named, or the same.
func choose(ctx context.Context, tx *pg.Tx, tenant ingest.TenantID, project ingest.ProjectID, surfaces []ingest.Surface) ([]outbox.Message, error) {
	if len(surfaces) == 0 {
		return nil, nil
	}
	var version int64
	err := tx.QueryRow(ctx, chooseSurfaces, pgx.NamedArgs{"tenant": tenant, "id": project, "surfaces": surfaces}).Scan(&version)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("choose surfaces: %w", err)
	}
	return []outbox.Message{surfacesMessage(tenant, project, version, surfaces)}, nil
}

// Replay makes new activity out of a receipt and returns the replay's number. Idempotent on the key, which
// means one thing in a project: for another receipt there it is ErrKeyConflict.
func (s *Store) Replay(ctx context.Context, id ingest.ReceiptID, key string) (replay int32, activity string, err error) {
	err = s.db.System(ctx, func(tx *pg.Tx) error {
		r, err := collectOne(ctx, tx, lockDelivery, pgx.NamedArgs{"receipt": id}, scanReceipt)
		if err == nil {
			replay, err = s.replay(ctx, tx, r, key)
			activity = r.ActivityID(replay)
		}
		return err
	})
	if err != nil {
		return 0, "", fmt.Errorf("replay delivery: %w", err)
	}
	return replay, activity, nil
}

func (s *Store) replay(ctx context.Context, tx *pg.Tx, r ingest.Receipt, key string) (replay int32, err error) {
	if r.Number == 0 || !r.Decision.Activity() && !r.Late() {
		return 0, ingest.ErrNotReplayable
	}
	now, refused := relocate(ctx, tx, r)
	if refused != nil && !errors.Is(refused, ingest.ErrNotReplayable) {
		return 0, refused
	}
	if r.Project == nil { // nobody's then: the key is of the project that has it now
		r.Tenant, r.Project = now.Tenant, now.Project
	}
	if r.Project == nil {
		return 0, refused
	}
	args := pgx.NamedArgs{"tenant": r.Tenant, "project": r.Project, "receipt": r.ID, "key": key}
	var used ingest.ReceiptID
	err = tx.QueryRow(ctx, getReplay, args).Scan(&used, &replay)
	switch {
	case err == nil && used != r.ID:
		return 0, ingest.ErrKeyConflict
	case err == nil: // answered as then, whatever became of the project since
		return replay, nil
	case !errors.Is(err, pgx.ErrNoRows):
		return 0, err
	case refused != nil:
		return 0, refused
	}
	if err := tx.QueryRow(ctx, insertReplay, args).Scan(&replay); err != nil {
		if pg.IsUnique(err, "replays_key_once") { // another receipt's replay came first; this one is locked
			return 0, ingest.ErrKeyConflict
		}
		return 0, err
	}
	return replay, s.outbox.Enqueue(ctx, tx, activityMessage(now, replay))
}

// relocate returns a receipt with the project, installation and name that its repository has now. ErrNotReplayable
// where that is enrolled nowhere, or under another tenant than the receipt's. One that was nobody's, since its
// account was not bound, becomes the tenant's who has the repository now.
func relocate(ctx context.Context, tx *pg.Tx, r ingest.Receipt) (ingest.Receipt, error) {
	var tenant ingest.TenantID
	var project ingest.ProjectID
	now := r
	err := tx.QueryRow(ctx, enrolledNow, pgx.NamedArgs{"host": r.Source.Host, "repository": r.RepositoryID}).
		Scan(&tenant, &project, &now.InstallationID, &now.Repository)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && r.Tenant != nil && *r.Tenant != tenant:
		return r, ingest.ErrNotReplayable
	case err != nil:
		return r, err
	}
	now.Tenant, now.Project = &tenant, &project
	return now, nil
}

func collectOne[T any](ctx context.Context, tx *pg.Tx, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) (T, error) {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		var none T
		return none, err
	}
	one, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return one, ingest.ErrNotFound
	}
	return one, err
}
