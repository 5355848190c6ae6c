package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// as runs a read for one tenant, or over all of them where tenant is nil: for operators.
func (s *Store) as(ctx context.Context, tenant *ingest.TenantID, fn func(*pg.Tx) error) error {
	if tenant == nil {
		return s.db.System(ctx, fn)
	}
	return s.db.Tenant(ctx, uuid.UUID(*tenant), fn)
}

func collect[T any](ctx context.Context, tx *pg.Tx, into *[]T, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) error {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return err
	}
	*into, err = pgx.CollectRows(rows, scan)
	return err
}

// Deliveries lists receipts, newest first.
func (s *Store) Deliveries(ctx context.Context, f ingest.DeliveryFilter, limit int) ([]ingest.Receipt, error) {
	var found []ingest.Receipt
	err := s.as(ctx, f.Tenant, func(tx *pg.Tx) error {
		return collect(ctx, tx, &found, listDeliveries, pgx.NamedArgs{
			"tenant": f.Tenant, "delivery": f.DeliveryID, "event": f.Event, "decision": f.Decision,
			"repository": f.RepositoryID, "before": f.Before, "limit": limit,
		}, scanReceipt)
	})
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	return found, nil
}

// Delivery finds receipts by GitHub's delivery id or by their own: several where two hooks delivered one
// event.
func (s *Store) Delivery(ctx context.Context, tenant *ingest.TenantID, id string) ([]ingest.Receipt, error) {
	receipt, err := uuid.Parse(id)
	if err != nil {
		receipt = uuid.Nil // then it can only be GitHub's
	}
	var found []ingest.Receipt
	err = s.as(ctx, tenant, func(tx *pg.Tx) error {
		return collect(ctx, tx, &found, getDelivery, pgx.NamedArgs{"tenant": tenant, "delivery": id, "receipt": receipt}, scanReceipt)
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read delivery: %w", err)
	case len(found) == 0:
		return nil, fmt.Errorf("read delivery: %w", ingest.ErrNotFound)
	}
	return found, nil
}

// Installations lists installations by ascending id and host, after the given one.
func (s *Store) Installations(ctx context.Context, tenant *ingest.TenantID, after ingest.InstallationCursor, limit int) ([]ingest.Installation, error) {
	var found []ingest.Installation
	err := s.as(ctx, tenant, func(tx *pg.Tx) error {
		return collect(ctx, tx, &found, listInstallations, pgx.NamedArgs{
			"tenant": tenant, "after": after.ID, "after_host": after.Host, "limit": limit,
		}, scanInstallation)
	})
	if err != nil {
		return nil, fmt.Errorf("list installations: %w", err)
	}
	return found, nil
}

// Projects lists a tenant's projects by ascending id, after the given one.
func (s *Store) Projects(ctx context.Context, tenant ingest.TenantID, after ingest.ProjectID, limit int) ([]ingest.Project, error) {
	var found []ingest.Project
	err := s.as(ctx, &tenant, func(tx *pg.Tx) error {
		return collect(ctx, tx, &found, listProjects, pgx.NamedArgs{"tenant": tenant, "after": after, "limit": limit}, scanProject)
	})
	if err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	return found, nil
}

func scanReceipt(row pgx.CollectableRow) (ingest.Receipt, error) {
	var r ingest.Receipt
	var digest []byte
	var updated *time.Time
	err := row.Scan(&r.ID, &r.Source.Host, &r.Source.Hook, &r.Source.DeliveryID, &digest, &r.Bytes, &r.Event, &r.Action,
		&r.Decision.Kind, &r.Decision.Reason, &r.Tenant, &r.Project, &r.InstallationID, &r.RepositoryID, &r.Repository,
		&r.Number, &r.Hint.HeadSHA, &r.Hint.BeforeSHA, &r.Hint.BaseRef, &r.Hint.State, &updated, &r.TraceParent,
		&r.ReceivedAt, &r.Duplicates, &r.Replays)
	copy(r.Digest[:], digest)
	if updated != nil {
		r.Hint.UpdatedAt = *updated
	}
	return r, err
}

func scanInstallation(row pgx.CollectableRow) (ingest.Installation, error) {
	var i ingest.Installation
	err := row.Scan(&i.Tenant, &i.Host, &i.ID, &i.Account.ID, &i.Account.Login, &i.State, &i.CreatedAt)
	return i, err
}

func scanProject(row pgx.CollectableRow) (ingest.Project, error) {
	var p ingest.Project
	err := row.Scan(&p.ID, &p.Tenant, &p.Host, &p.RepositoryID, &p.Repository, &p.InstallationID, &p.State, &p.CreatedAt, &p.Surfaces)
	return p, err
}
