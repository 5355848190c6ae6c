package store

import (
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/ledger/internal/ledger"
)

// TestReceiptIsReadAtOneMoment completes a receipt while it is being read: after its row, before its lines.
// What is read must be all of before, or all of after.
func TestReceiptIsReadAtOneMoment(t *testing.T) {
	t.Parallel()
	s, db := setup(t)
	ctx := t.Context()
	must[ledger.Change](t)(s.Reserve(ctx, tenantA, reserve(1, 300)))
	if err := s.IssueReceipt(ctx, tenantA, run, target, ledger.ReceiptEnd{Epoch: 4, Outcome: "accepted"}); err != nil {
		t.Fatal(err)
	}
	tx, err := db.Admin(t).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `LOCK TABLE ledger.reservations IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		receipts []ledger.Receipt
		err      error
	}
	read := make(chan answer, 1)
	go func() {
		receipts, _, err := s.Receipts(ctx, tenantA, &run, ledger.ReceiptCursor{CreatedAt: time.Now().Add(time.Hour)}, 10)
		read <- answer{receipts, err}
	}()
	const waiting = `SELECT count(*) FROM pg_locks WHERE relation = 'ledger.reservations'::regclass AND NOT granted`
	for pgtest.Query[int64](t, db, waiting) == 0 {
		if ctx.Err() != nil || len(read) > 0 {
			t.Fatal("the reader did not come to wait for the lines")
		}
	}
	_, err = tx.Exec(ctx, `
WITH closed AS (UPDATE ledger.reservations SET state = 'settled', settled = 120, closed_at = clock_timestamp())
UPDATE ledger.receipts SET completed_at = clock_timestamp()`)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	got := <-read
	if got.err != nil || len(got.receipts) != 1 {
		t.Fatalf("%d receipts, %v", len(got.receipts), got.err)
	}
	if r := got.receipts[0]; r.Complete() == r.IssuedAt.IsZero() {
		t.Errorf("complete %t, issued at %v: two moments in one receipt", r.Complete(), r.IssuedAt)
	}
}
