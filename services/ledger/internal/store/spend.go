package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/ledger/internal/ledger"
)

// Reserve holds an attempt's maximum cost. Idempotent on the attempt.
func (s *Store) Reserve(ctx context.Context, tenant ledger.TenantID, ask ledger.ReserveAsk) (ledger.Change, error) {
	c, err := s.change(ctx, tenant, ask.Attempt, func(a ledger.Account, held *ledger.Reservation, now time.Time) (ledger.Change, error) {
		return ledger.Reserve(a, held, ask, now)
	})
	if err != nil {
		return ledger.Change{}, fmt.Errorf("reserve: %w", err)
	}
	return c, nil
}

// Settle moves what an attempt cost from held to spent. Idempotent on the attempt.
func (s *Store) Settle(ctx context.Context, tenant ledger.TenantID, ask ledger.SettleAsk) (ledger.Change, error) {
	c, err := s.change(ctx, tenant, ask.Attempt, func(a ledger.Account, held *ledger.Reservation, now time.Time) (ledger.Change, error) {
		return ledger.Settle(a, held, ask, now)
	})
	if err != nil {
		return ledger.Change{}, fmt.Errorf("settle: %w", err)
	}
	return c, nil
}

// Void frees what was held for an attempt that never started. Idempotent on the attempt.
func (s *Store) Void(ctx context.Context, tenant ledger.TenantID, ask ledger.VoidAsk) error {
	_, err := s.change(ctx, tenant, ask.Attempt, func(a ledger.Account, held *ledger.Reservation, now time.Time) (ledger.Change, error) {
		return ledger.Void(a, held, ask, now)
	})
	if err != nil {
		return fmt.Errorf("void: %w", err)
	}
	return nil
}

// StaleReservations finds up to limit open reservations older than age, over all tenants.
func (s *Store) StaleReservations(ctx context.Context, age time.Duration, limit int) ([]ledger.Stale, error) {
	var stale []ledger.Stale
	err := s.db.System(ctx, func(tx *pg.Tx) error {
		rows, err := tx.Query(ctx, staleReservations, pgx.NamedArgs{"age": age, "limit": limit})
		if err != nil {
			return err
		}
		stale, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ledger.Stale])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find stale reservations: %w", err)
	}
	return stale, nil
}

// Grant adds to what a tenant may spend. Idempotent on the key: another amount under the same key is
// ErrGrantConflict.
func (s *Store) Grant(ctx context.Context, tenant ledger.TenantID, key string, amount ledger.Micros, note string) (ledger.Granted, error) {
	var g ledger.Granted
	err := s.db.Tenant(ctx, uuid.UUID(tenant), func(tx *pg.Tx) error {
		l, err := s.lock(ctx, tx, tenant, ledger.AttemptID{})
		if err != nil {
			return err
		}
		opened, err := s.open(l)
		if err != nil {
			return err
		}
		c, err := ledger.Grant(opened.Account, key, amount, note, l.now)
		if err != nil {
			return err
		}
		before, found, err := findGrant(ctx, tx, tenant, c.Transfers[0].Key)
		switch {
		case err != nil:
			return err
		case found && before.Available != amount:
			return ledger.ErrGrantConflict
		case found:
			g = ledger.Granted{Transfer: before.Transfer, Available: opened.Account.Available}
			return nil
		}
		c.Transfers = append(opened.Transfers, c.Transfers...)
		if err := save(ctx, tx, c); err != nil {
			return err
		}
		after, _, err := findGrant(ctx, tx, tenant, c.Transfers[len(c.Transfers)-1].Key)
		g = ledger.Granted{Transfer: after.Transfer, Available: c.Account.Available}
		return err
	})
	if err != nil {
		return ledger.Granted{}, fmt.Errorf("grant: %w", err)
	}
	return g, nil
}

func findGrant(ctx context.Context, tx *pg.Tx, tenant ledger.TenantID, key string) (ledger.Granted, bool, error) {
	rows, err := tx.Query(ctx, getGrant, pgx.NamedArgs{"tenant": tenant, "key": key})
	if err != nil {
		return ledger.Granted{}, false, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ledger.Granted])
	if err != nil || len(found) == 0 {
		return ledger.Granted{}, false, err
	}
	return found[0], true, nil
}
