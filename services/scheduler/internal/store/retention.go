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
)

// Retention is how long each kind of row is kept that goes by age; 0 is for ever.
type Retention struct {
	Activities time.Duration
	Decisions  time.Duration
	Pauses     time.Duration // once they have ended
}

// Kinds are the purges of rows that go by age.
func (s *Store) Kinds(r Retention) []purge.Kind {
	return []purge.Kind{
		{Name: "activities", Retention: r.Activities, Remove: purge.Statement(s.db, purgeActivities)},
		{Name: "decisions", Retention: r.Decisions, Remove: purge.Statement(s.db, purgeDecisions)},
		{Name: "pauses", Retention: r.Pauses, Remove: purge.Statement(s.db, purgePauses)},
	}
}

// EraseTenant removes everything that names a tenant's pull requests, and its messages; purge.Unfinished
// while a target is claimed, a message is on its way, or there is more. Pauses of its installations stay:
// they hold numbers alone, and keep a deleted one from being asked for a token. Idempotent.
func (s *Store) EraseTenant(ctx context.Context, tenant uuid.UUID) (int64, error) {
	removed, err := purge.Drain(ctx,
		s.eraseTargets(tenant),
		purge.OfTenant(s.db, tenant, eraseRuns),
		purge.OfTenant(s.db, tenant, eraseDecisions),
		purge.OfTenant(s.db, tenant, eraseActivities),
		purge.OfTenant(s.db, tenant, erasePauses),
		purge.OfTenant(s.db, tenant, eraseTurns),
		s.outbox.Erase(s.db, tenant),
	)
	if err != nil {
		return removed, fmt.Errorf("erase tenant: %w", err)
	}
	return removed, nil
}

// claimRetry is when to ask again while a target is claimed: its worker ends the claim, or it lapses.
const claimRetry = 30 * time.Second

// eraseTargets leaves those that are claimed: their workers must not find nothing.
func (s *Store) eraseTargets(tenant uuid.UUID) purge.Step {
	return func(ctx context.Context, limit int) (n int, more bool, err error) {
		claimed, named := false, pgx.NamedArgs{"tenant": tenant, "limit": limit}
		b := &pg.Batch{}
		b.Queue(eraseTargets, named).Exec(func(tag pgconn.CommandTag) error {
			n = int(tag.RowsAffected())
			return nil
		})
		b.Queue(anyClaimed, named).QueryRow(func(row pgx.Row) error { return row.Scan(&claimed) })
		if err := s.db.SystemBatch(ctx, b); err != nil {
			return 0, false, err
		}
		if more = n == limit; claimed && !more {
			err = &purge.Unfinished{After: claimRetry, Why: "a target is still claimed"}
		}
		return n, more, err
	}
}
