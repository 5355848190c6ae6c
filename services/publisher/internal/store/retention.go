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
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// mostEpochs bounds the epochs of one transaction, since each takes its intents along.
const mostEpochs = 100

// PurgeLifecycle removes the epochs of a target's ended lifecycle with their intents; the surfaces that
// later lifecycles write on stay. An open intent ends with its epoch, but for one that may be out, or that a
// sender holds: those are waited for, and purge.Unfinished says how long. Idempotent.
func (s *Store) PurgeLifecycle(ctx context.Context, tenant publisher.Tenant, target publisher.TargetID, lifecycle int64) error {
	named := pgx.NamedArgs{"tenant": tenant, "target": target, "lifecycle": lifecycle}
	_, err := purge.Drain(ctx,
		s.epochs(named, lifecycleBusy, deleteLifecycle),
		func(ctx context.Context, limit int) (int, bool, error) {
			n, err := s.remove(ctx, deleteSurfaces, pgx.NamedArgs{"tenant": tenant, "target": target, "limit": limit})
			return n, n == limit, err
		})
	if err != nil {
		return fmt.Errorf("purge lifecycle: %w", err)
	}
	return nil
}

// EraseTenant removes all epochs, intents, surfaces, senders and projects of a tenant, and its messages;
// purge.Unfinished while a write may be out, a message is on its way, or there is more. Idempotent.
func (s *Store) EraseTenant(ctx context.Context, tenant uuid.UUID) (int64, error) {
	removed, err := purge.Drain(ctx,
		s.epochs(pgx.NamedArgs{"tenant": tenant}, tenantBusy, deleteTenant),
		purge.OfTenant(s.db, tenant, eraseSurfaces),
		purge.OfTenant(s.db, tenant, eraseSenders),
		purge.OfTenant(s.db, tenant, eraseProjects),
		s.out.Erase(s.db, tenant),
	)
	if err != nil {
		return removed, fmt.Errorf("erase tenant: %w", err)
	}
	return removed, nil
}

// epochs deletes epochs with their intents, unless a sender is at work on them: it holds what it read in
// memory, and would not notice. The senders are locked first, so that none begins meanwhile.
func (s *Store) epochs(named pgx.NamedArgs, busy, remove string) purge.Step {
	return func(ctx context.Context, _ int) (removed int, more bool, err error) {
		named["limit"], named["grace"] = mostEpochs, s.rules.Grace
		err = s.db.System(ctx, func(tx *pg.Tx) error {
			var wait time.Duration
			if err := tx.QueryRow(ctx, busy, named).Scan(&wait); err != nil {
				return err
			}
			if wait > 0 {
				return &purge.Unfinished{After: wait, Why: "a write to GitHub may be on its way"}
			}
			tag, err := tx.Exec(ctx, remove, named)
			removed = int(tag.RowsAffected())
			return err
		})
		return removed, removed == mostEpochs, err
	}
}

func (s *Store) remove(ctx context.Context, sql string, named pgx.NamedArgs) (n int, err error) {
	b := &pg.Batch{}
	b.Queue(sql, named).Exec(func(tag pgconn.CommandTag) error {
		n = int(tag.RowsAffected())
		return nil
	})
	return n, s.db.SystemBatch(ctx, b)
}

// Outdated is the purge of epochs that have ended and are replies, progress, or not their target's last, with their intents and
// bodies: nothing reads them but people. The last goes with its lifecycle.
func (s *Store) Outdated(retention time.Duration) purge.Kind {
	return purge.Kind{Name: "epochs", Retention: retention, Most: mostEpochs, Remove: purge.Statement(s.db, purgeOutdated)}
}

// Answered is the purge of where replies were written, once they are gone themselves.
func (s *Store) Answered(retention time.Duration) purge.Kind {
	return purge.Kind{Name: "surfaces", Retention: retention, Remove: purge.Statement(s.db, purgeAnswered)}
}
