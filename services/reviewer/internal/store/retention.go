package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

const (
	// mostAttempts bounds the attempts of one transaction, since each takes its findings along.
	mostAttempts = 100
	// openRetry is when to ask again while an attempt is open: its worker or the reaper closes it.
	openRetry = 30 * time.Second
)

// PurgeLifecycle removes the attempts of a target's ended lifecycle and what they found; purge.Unfinished
// while one of them is open, or there are more. Idempotent.
func (s *Store) PurgeLifecycle(ctx context.Context, tenant reviewer.TenantID, target reviewer.TargetID, lifecycle int64) error {
	named := pgx.NamedArgs{"tenant": tenant, "target": target, "lifecycle": lifecycle}
	if _, err := purge.Drain(ctx, s.removal(named, lifecycleOpen, deleteLifecycle)); err != nil {
		return fmt.Errorf("purge lifecycle: %w", err)
	}
	return nil
}

// EraseTenant removes all attempts of a tenant, what they found, and its messages; purge.Unfinished while
// an attempt is open, a message is on its way, or there is more. Idempotent.
func (s *Store) EraseTenant(ctx context.Context, tenant uuid.UUID) (int64, error) {
	removed, err := purge.Drain(ctx, s.removal(pgx.NamedArgs{"tenant": tenant}, tenantOpen, deleteTenant), s.out.Erase(s.db, tenant))
	if err != nil {
		return removed, fmt.Errorf("erase tenant: %w", err)
	}
	return removed, nil
}

// removal deletes what has ended, and then asks to be called again where something is open.
func (s *Store) removal(named pgx.NamedArgs, anyOpen, remove string) purge.Step {
	return func(ctx context.Context, _ int) (removed int, more bool, err error) {
		open := false
		named["limit"] = mostAttempts
		b := &pg.Batch{}
		b.Queue(remove, named).Exec(func(tag pgconn.CommandTag) error {
			removed = int(tag.RowsAffected())
			return nil
		})
		b.Queue(anyOpen, named).QueryRow(func(row pgx.Row) error { return row.Scan(&open) })
		if err := s.db.SystemBatch(ctx, b); err != nil {
			return 0, false, err
		}
		if more = removed == mostAttempts; open && !more {
			err = &purge.Unfinished{After: openRetry, Why: "an attempt is still open"}
		}
		return removed, more, err
	}
}

// Uncounted is the purge of attempts that were voided or cancelled: they took no number of their run. Those
// that took one, and what they found, go with the lifecycle of their target.
func (s *Store) Uncounted(retention time.Duration) purge.Kind {
	return purge.Kind{
		Name: "attempts", Retention: retention, Most: mostAttempts, Remove: purge.Statement(s.db, purgeUncounted),
	}
}
