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

// IssueReceipt records how a run ended, and completes its receipt where nothing is held any more.
// Idempotent on (run, epoch). One round trip; it waits for the account, so that whichever of this and
// the last settlement comes second sees the other.
func (s *Store) IssueReceipt(ctx context.Context, tenant ledger.TenantID, run ledger.RunID, target ledger.TargetID, end ledger.ReceiptEnd) error {
	b := &pg.Batch{}
	b.Queue(lockAccount, pgx.NamedArgs{"tenant": tenant})
	b.Queue(insertReceiptEnd, pgx.NamedArgs{
		"tenant": tenant, "run": run, "epoch": end.Epoch, "outcome": end.Outcome, "attempt": end.Attempt,
	})
	b.Queue(nameReceiptTarget, pgx.NamedArgs{"tenant": tenant, "run": run, "target": target})
	b.Queue(completeReceipt, pgx.NamedArgs{"tenant": tenant, "run": run})
	if err := s.db.TenantBatch(ctx, uuid.UUID(tenant), b); err != nil {
		return fmt.Errorf("issue receipt: %w", err)
	}
	return nil
}

// Receipts reads up to limit receipts before the cursor, newest first, with their ends and lines, and
// the cursor of the last one. All of them are as they were at one moment: a receipt that is complete says
// since when.
func (s *Store) Receipts(ctx context.Context, tenant ledger.TenantID, run *ledger.RunID, before ledger.ReceiptCursor, limit int) ([]ledger.Receipt, ledger.ReceiptCursor, error) {
	var receipts []ledger.Receipt
	var last ledger.ReceiptCursor
	err := s.db.TenantSnapshot(ctx, uuid.UUID(tenant), func(tx *pg.Tx) error {
		rows, err := tx.Query(ctx, listReceipts, pgx.NamedArgs{
			"tenant": tenant, "run": run, "before": before.CreatedAt, "before_run": before.Run, "limit": limit,
		})
		if err != nil {
			return err
		}
		receipts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (ledger.Receipt, error) {
			var r ledger.Receipt
			var target *ledger.TargetID
			var completed *time.Time
			err := row.Scan(&r.Run, &target, &last.CreatedAt, &completed)
			last.Run = r.Run
			if target != nil {
				r.Target = *target
			}
			if completed != nil {
				r.IssuedAt = *completed
			}
			return r, err
		})
		if err != nil || len(receipts) == 0 {
			return err
		}
		return fillReceipts(ctx, tx, tenant, receipts)
	})
	if err != nil {
		return nil, ledger.ReceiptCursor{}, fmt.Errorf("list receipts: %w", err)
	}
	return receipts, last, nil
}

func fillReceipts(ctx context.Context, tx *pg.Tx, tenant ledger.TenantID, receipts []ledger.Receipt) error {
	at := make(map[ledger.RunID]*ledger.Receipt, len(receipts))
	runs := make([]uuid.UUID, len(receipts))
	for i := range receipts {
		at[receipts[i].Run], runs[i] = &receipts[i], uuid.UUID(receipts[i].Run)
	}
	args := pgx.NamedArgs{"tenant": tenant, "runs": runs}
	b := &pgx.Batch{}
	b.Queue(receiptEnds, args).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var run ledger.RunID
			var e ledger.ReceiptEnd
			if err := rows.Scan(&run, &e.Epoch, &e.Outcome, &e.Attempt, &e.At); err != nil {
				return err
			}
			at[run].Ends = append(at[run].Ends, e)
		}
		return rows.Err()
	})
	b.Queue(receiptLines, args).Query(func(rows pgx.Rows) error {
		lines, err := pgx.CollectRows(rows, scanReservation)
		for _, l := range lines {
			at[l.Run].Lines = append(at[l.Run].Lines, l)
		}
		return err
	})
	return tx.SendBatch(ctx, b).Close()
}
