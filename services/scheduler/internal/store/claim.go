package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// lapsedBatch bounds how many lapsed claims one call ends.
const lapsedBatch = 50

// ClaimTargets ends lapsed claims, then leases up to limit due targets to the worker, fair between
// tenants. It also returns the decisions that somebody should look at.
func (s *Store) ClaimTargets(ctx context.Context, worker string, limit int) ([]scheduler.Claimed, []scheduler.Decision, error) {
	var claimed []scheduler.Claimed
	var alerts []scheduler.Decision
	err := s.db.System(ctx, func(tx *pg.Tx) error {
		claimed, alerts = nil, nil
		lapsed, err := lockMany(ctx, tx, lockLapsed, lapsedBatch)
		if err != nil {
			return err
		}
		for _, l := range lapsed {
			t, e := s.rules.Lapse(l.Target, l.now)
			if err := s.save(ctx, tx, t, e, write{sql: saveTarget}); err != nil {
				return err
			}
			for _, d := range e.Decisions {
				if d.Alert {
					alerts = append(alerts, d)
				}
			}
		}
		ready, err := lockMany(ctx, tx, lockReady, limit)
		if err != nil || len(ready) == 0 {
			return err
		}
		claimed, err = s.claim(ctx, tx, worker, ready)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("claim targets: %w", err)
	}
	return claimed, alerts, nil
}

// claim saves the claims and the turns of their tenants in one trip. The leases begin now: the rows were
// locked by a statement that may have taken a while.
func (s *Store) claim(ctx context.Context, tx *pg.Tx, worker string, ready []loaded) ([]scheduler.Claimed, error) {
	var claimed []scheduler.Claimed
	tenants := make([]uuid.UUID, len(ready))
	b := &pgx.Batch{}
	for i, l := range ready {
		t, err := s.rules.Claim(l.Target, scheduler.ClaimID(newID()), worker, false, l.now)
		if err != nil {
			return nil, err
		}
		tenants[i] = uuid.UUID(t.Tenant)
		b.Queue(saveTarget, args(targetColumns, t))
		claimed = append(claimed, scheduler.Claimed{Target: t, Lease: t.Claim.LeaseUntil.Sub(l.now)})
	}
	b.Queue(takeTurns, pgx.NamedArgs{"tenants": tenants})
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	return claimed, nil
}

func lockMany(ctx context.Context, tx *pg.Tx, sql string, limit int) ([]loaded, error) {
	rows, err := tx.Query(ctx, sql, pgx.NamedArgs{"limit": limit})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanLoaded)
}

// Renew extends a live claim's lease, fenced by claim and lease alone. starting says that the engine is called
// next, which the publisher is told.
func (s *Store) Renew(ctx context.Context, tenant scheduler.TenantID, f scheduler.Fence, starting bool) (lease time.Duration, cancel bool, err error) {
	err = s.fenced(ctx, tenant, f, "", func(l loaded, known []scheduler.Run) (t scheduler.Target, e scheduler.Effects, w write, err error) {
		var renewal scheduler.Renewal
		if starting {
			t, renewal, e, err = s.rules.Start(l.Target, f.Claim, runIn(known, l.Claim.Run), l.now)
		} else {
			t, renewal, err = s.rules.Renew(l.Target, f.Claim, l.now)
		}
		lease, cancel = renewal.LeaseUntil.Sub(l.now), renewal.CancelRequested
		return t, e, write{sql: saveHeld, fence: f}, err
	})
	if err != nil {
		return 0, false, fmt.Errorf("renew lease: %w", err)
	}
	return lease, cancel, nil
}
