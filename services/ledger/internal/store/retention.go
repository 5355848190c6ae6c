package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/services/ledger/internal/ledger"
)

const schema = "ledger"

const (
	// foldRuns bounds the runs of one transaction: each has a few attempts of a few transfers.
	foldRuns = 50
	// heldRetry is when to ask again while money is held: until the sweeper at the latest.
	heldRetry = time.Minute
)

// held says that a reservation is open, which must be closed before its transfers are folded.
var held = &purge.Unfinished{After: heldRetry, Why: "money is still held"}

// PurgeRuns folds the transfers of the runs into the tenant's opening transfer, and removes their
// reservations and receipts, some runs at a time, each whole. Balances stay as they are. A run that still
// holds money is left, and the error says so. Idempotent.
func (s *Store) PurgeRuns(ctx context.Context, tenant ledger.TenantID, runs []ledger.RunID) error {
	var left error
	next := 0
	_, err := purge.Drain(ctx, func(ctx context.Context, _ int) (int, bool, error) {
		part := runs[next:min(next+foldRuns, len(runs))]
		next += len(part)
		some, err := s.purgeRuns(ctx, tenant, part)
		if some {
			left = held
		}
		return len(part), next < len(runs), err
	})
	if err == nil {
		err = left
	}
	if err != nil {
		return fmt.Errorf("purge runs: %w", err)
	}
	return nil
}

// purgeRuns does so in one transaction; left says that some hold money.
func (s *Store) purgeRuns(ctx context.Context, tenant ledger.TenantID, runs []ledger.RunID) (left bool, err error) {
	ids := make([]uuid.UUID, len(runs))
	for i, r := range runs {
		ids[i] = uuid.UUID(r)
	}
	err = s.db.System(ctx, func(tx *pg.Tx) error {
		named := pgx.NamedArgs{"tenant": tenant, "runs": ids}
		var closed []uuid.UUID
		b := &pgx.Batch{}
		b.Queue(lockAccount, named)
		b.Queue(closedRuns, named).Query(func(rows pgx.Rows) (err error) {
			closed, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			return err
		})
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		left = len(closed) < len(ids)
		named["runs"], named["id"] = closed, uuid.Must(uuid.NewV7())
		b = &pgx.Batch{}
		for _, sql := range []string{foldRunTransfers, deleteRunReservations, deleteRunEnds, deleteRunReceipts} {
			b.Queue(sql, named)
		}
		return tx.SendBatch(ctx, b).Close()
	})
	return left, err
}

// EraseTenant leaves the totals of a tenant's account, and nothing that names a run: every transfer is
// folded, grants among them. Idempotent; purge.Unfinished while money is held or there is more.
func (s *Store) EraseTenant(ctx context.Context, tenant uuid.UUID) (int64, error) {
	removed, err := purge.Drain(ctx,
		func(ctx context.Context, _ int) (int, bool, error) { return 0, false, s.nothingHeld(ctx, tenant) },
		func(ctx context.Context, limit int) (int, bool, error) { return s.foldTenant(ctx, tenant, limit) },
		purge.OfTenant(s.db, tenant, eraseReservations),
		purge.OfTenant(s.db, tenant, eraseReceiptEnds),
		purge.OfTenant(s.db, tenant, eraseReceipts),
		outbox.New(schema).Erase(s.db, tenant),
	)
	if err != nil {
		return removed, fmt.Errorf("erase tenant: %w", err)
	}
	return removed, nil
}

func (s *Store) nothingHeld(ctx context.Context, tenant uuid.UUID) error {
	open := false
	b := &pg.Batch{}
	b.Queue(anyHeld, pgx.NamedArgs{"tenant": tenant}).QueryRow(func(row pgx.Row) error { return row.Scan(&open) })
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return err
	}
	if open {
		return held
	}
	return nil
}

func (s *Store) foldTenant(ctx context.Context, tenant uuid.UUID, limit int) (n int, more bool, err error) {
	b := &pg.Batch{}
	named := pgx.NamedArgs{"tenant": tenant, "limit": limit, "id": uuid.Must(uuid.NewV7())}
	b.Queue(lockAccount, named)
	b.Queue(foldAllTransfers, named).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	err = s.db.SystemBatch(ctx, b)
	return n, n == limit, err
}

// Tombstones is the purge of what was closed before it was held, and so belongs to no run with money. Each
// stays for much longer than a Reserve that it has to refuse can be late.
func (s *Store) Tombstones(retention time.Duration) purge.Kind {
	return purge.Kind{Name: "tombstones", Retention: retention, Remove: purge.Statement(s.db, purgeTombstones)}
}
