// Package store keeps the ledger's accounts in Postgres: every exported method is one transaction.
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

// Store is the ledger's door to Postgres.
type Store struct {
	db    *pg.DB
	grant ledger.Micros
}

// New returns a store whose accounts open with the grant.
func New(db *pg.DB, openingGrant ledger.Micros) *Store {
	return &Store{db: db, grant: openingGrant}
}

// decision is a pure rule applied to what was locked. It may run again after a serialization failure,
// so it keeps no state.
type decision func(a ledger.Account, held *ledger.Reservation, now time.Time) (ledger.Change, error)

// change locks the tenant's account, opening it where it is new, and the attempt's reservation; then
// decides and saves. The two loads are two statements: the second must see what the holder of the
// account's lock has committed.
func (s *Store) change(ctx context.Context, tenant ledger.TenantID, attempt ledger.AttemptID, decide decision) (ledger.Change, error) {
	var done ledger.Change
	err := s.db.Tenant(ctx, uuid.UUID(tenant), func(tx *pg.Tx) error {
		locked, err := s.lock(ctx, tx, tenant, attempt)
		if err != nil {
			return err
		}
		opened, err := s.open(locked)
		if err != nil {
			return err
		}
		done, err = decide(opened.Account, locked.held, locked.now)
		if err != nil {
			return err
		}
		done.Transfers = append(opened.Transfers, done.Transfers...)
		return save(ctx, tx, done)
	})
	if err != nil {
		return ledger.Change{}, err
	}
	return done, nil
}

type locked struct {
	account ledger.Account
	held    *ledger.Reservation
	now     time.Time
}

// open gives a new account its opening grant.
func (s *Store) open(l locked) (ledger.Change, error) {
	if l.account.Sequence > 0 || s.grant == 0 {
		return ledger.Change{Account: l.account}, nil
	}
	return ledger.Grant(l.account, "opening", s.grant, "opening grant", l.now)
}

func (s *Store) lock(ctx context.Context, tx *pg.Tx, tenant ledger.TenantID, attempt ledger.AttemptID) (locked, error) {
	l, err := loadLocked(ctx, tx, tenant, attempt)
	if !errors.Is(err, pgx.ErrNoRows) {
		return l, err
	}
	if _, err := tx.Exec(ctx, openAccount, pgx.NamedArgs{"tenant": tenant}); err != nil {
		return locked{}, fmt.Errorf("open account: %w", err)
	}
	return loadLocked(ctx, tx, tenant, attempt)
}

func loadLocked(ctx context.Context, tx *pg.Tx, tenant ledger.TenantID, attempt ledger.AttemptID) (locked, error) {
	var l locked
	l.account.Tenant = tenant
	b := &pgx.Batch{}
	b.Queue(lockAccount, pgx.NamedArgs{"tenant": tenant}).QueryRow(func(row pgx.Row) error {
		a := &l.account
		return row.Scan(&a.Granted, &a.Available, &a.Reserved, &a.Spent, &a.Overruns, &a.Sequence,
			&a.Budget.Period, &a.Budget.Limit, &a.Budget.Used, &a.Budget.StartAt, &l.now)
	})
	b.Queue(getReservation, pgx.NamedArgs{"tenant": tenant, "attempt": attempt}).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, scanReservation)
		if len(found) > 0 {
			l.held = &found[0]
		}
		return err
	})
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return locked{}, fmt.Errorf("lock account: %w", err)
	}
	return l, nil
}

func scanReservation(row pgx.CollectableRow) (ledger.Reservation, error) {
	var r ledger.Reservation
	var closed *time.Time
	err := row.Scan(&r.Attempt, &r.Run, &r.State, &r.Amount, &r.Settled, &r.Overrun, &r.Estimate, &r.Engine,
		&r.Outcome, &r.HeldAt, &closed)
	if closed != nil {
		r.ClosedAt = *closed
	}
	return r, err
}

// save writes a change in one statement, and completes the run's receipt where its last reservation
// has closed. A change without transfers writes only what it must: a tombstone.
func save(ctx context.Context, tx *pg.Tx, c ledger.Change) error {
	tombstone := c.Reservation != nil && c.Reservation.State == ledger.StateTombstone
	if len(c.Transfers) == 0 && !tombstone {
		return nil
	}
	b := &pgx.Batch{}
	b.Queue(saveAccount, accountArgs(c.Account))
	for _, t := range c.Transfers {
		b.Queue(insertTransfer, transferArgs(c.Account.Tenant, t))
	}
	if r := c.Reservation; r != nil {
		b.Queue(saveReservation, reservationArgs(c.Account.Tenant, *r))
		if r.Open() {
			b.Queue(openReceipt, pgx.NamedArgs{"tenant": c.Account.Tenant, "run": r.Run})
		} else {
			b.Queue(completeReceipt, pgx.NamedArgs{"tenant": c.Account.Tenant, "run": r.Run})
		}
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("save change: %w", err)
	}
	return nil
}

func accountArgs(a ledger.Account) pgx.NamedArgs {
	return pgx.NamedArgs{
		"tenant": a.Tenant, "granted": a.Granted, "available": a.Available, "reserved": a.Reserved,
		"spent": a.Spent, "overruns": a.Overruns, "sequence": a.Sequence, "budget_period": a.Budget.Period,
		"budget_limit": a.Budget.Limit, "budget_used": a.Budget.Used, "budget_start_at": a.Budget.StartAt,
	}
}

func transferArgs(tenant ledger.TenantID, t ledger.Transfer) pgx.NamedArgs {
	return pgx.NamedArgs{
		"id": uuid.Must(uuid.NewV7()), "tenant": tenant, "sequence": t.Sequence, "kind": t.Kind, "key": t.Key,
		"attempt": t.Attempt, "run": t.Run, "note": t.Note, "estimate": t.Estimate, "grants": t.Grants,
		"available": t.Available, "reserved": t.Reserved, "spent": t.Spent, "overruns": t.Overruns, "at": t.At,
	}
}

func reservationArgs(tenant ledger.TenantID, r ledger.Reservation) pgx.NamedArgs {
	var closed *time.Time
	if !r.ClosedAt.IsZero() {
		closed = &r.ClosedAt
	}
	return pgx.NamedArgs{
		"tenant": tenant, "attempt": r.Attempt, "run": r.Run, "state": r.State, "amount": r.Amount,
		"settled": r.Settled, "overrun": r.Overrun, "estimate": r.Estimate, "engine": r.Engine,
		"outcome": r.Outcome, "held_at": r.HeldAt, "closed_at": closed,
	}
}
