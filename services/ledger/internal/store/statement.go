package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/ledger/internal/ledger"
)

// Balance reads a tenant's account as of now. A tenant without one has the opening grant before it.
func (s *Store) Balance(ctx context.Context, tenant ledger.TenantID) (ledger.Account, time.Time, error) {
	a := ledger.Account{Tenant: tenant}
	var now time.Time
	err := s.db.Tenant(ctx, uuid.UUID(tenant), func(tx *pg.Tx) error {
		err := tx.QueryRow(ctx, getAccount, pgx.NamedArgs{"tenant": tenant}).Scan(&a.Granted, &a.Available,
			&a.Reserved, &a.Spent, &a.Overruns, &a.Sequence, &a.Budget.Period, &a.Budget.Limit, &a.Budget.Used,
			&a.Budget.StartAt, &now)
		if errors.Is(err, pgx.ErrNoRows) {
			a.Granted, a.Available = s.grant, s.grant
			return nil
		}
		return err
	})
	if err != nil {
		return ledger.Account{}, time.Time{}, fmt.Errorf("read balance: %w", err)
	}
	return a, now, nil
}

// SetBudget bounds what a tenant may hold and spend in a period; PeriodNone removes the bound.
func (s *Store) SetBudget(ctx context.Context, tenant ledger.TenantID, p ledger.Period, limit ledger.Micros) (ledger.Account, time.Time, error) {
	var a ledger.Account
	var now time.Time
	err := s.db.Tenant(ctx, uuid.UUID(tenant), func(tx *pg.Tx) error {
		l, err := s.lock(ctx, tx, tenant, ledger.AttemptID{})
		if err != nil {
			return err
		}
		opened, err := s.open(l)
		if err != nil {
			return err
		}
		var used ledger.Micros
		since := pgx.NamedArgs{"tenant": tenant, "since": p.Start(l.now)}
		if err := tx.QueryRow(ctx, usedSince, since).Scan(&used); err != nil {
			return err
		}
		now = l.now
		if opened.Account, err = opened.Account.WithBudget(p, limit, used, now); err != nil {
			return err
		}
		a = opened.Account
		if len(opened.Transfers) > 0 {
			return save(ctx, tx, opened)
		}
		_, err = tx.Exec(ctx, saveAccount, accountArgs(a))
		return err
	})
	if err != nil {
		return ledger.Account{}, time.Time{}, fmt.Errorf("set budget: %w", err)
	}
	return a, now, nil
}

// Transfers reads up to limit transfers below a sequence, newest first; run narrows to one run.
func (s *Store) Transfers(ctx context.Context, tenant ledger.TenantID, run *ledger.RunID, before int64, limit int) ([]ledger.Transfer, error) {
	var entries []ledger.Transfer
	err := s.db.Tenant(ctx, uuid.UUID(tenant), func(tx *pg.Tx) error {
		rows, err := tx.Query(ctx, listTransfers, pgx.NamedArgs{"tenant": tenant, "run": run, "before": before, "limit": limit})
		if err != nil {
			return err
		}
		entries, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (ledger.Transfer, error) {
			var e ledger.Transfer
			err := row.Scan(&e.ID, &e.Sequence, &e.Kind, &e.Attempt, &e.Run, &e.Note, &e.Estimate,
				&e.Grants, &e.Available, &e.Reserved, &e.Spent, &e.Overruns, &e.At)
			return e, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list transfers: %w", err)
	}
	return entries, nil
}
