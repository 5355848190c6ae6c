package store

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/ledger/internal/ledger"
)

var (
	tenantA = ledger.TenantID{0xa}
	tenantB = ledger.TenantID{0xb}
	run     = ledger.RunID{1}
	target  = ledger.TargetID{2}
)

const grant ledger.Micros = 1000

func setup(t *testing.T) (*Store, *pgtest.DB) {
	t.Helper()
	db := pgtest.New(t, migrations.FS)
	return New(db.Open(t, "ledger"), grant), db
}

func reserve(n byte, amount ledger.Micros) ledger.ReserveAsk {
	return ledger.ReserveAsk{Attempt: ledger.AttemptID{n}, Run: run, Amount: amount, Engine: "builtin"}
}

func settle(n byte, amount ledger.Micros) ledger.SettleAsk {
	return ledger.SettleAsk{Attempt: ledger.AttemptID{n}, Run: run, Amount: amount, Outcome: "finished"}
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestQueriesPrepare(t *testing.T) {
	t.Parallel()
	all := maps.Clone(queries)
	maps.Copy(all, retentionQueries)
	pgtest.PrepareAll(t, pgtest.New(t, migrations.FS), "ledger", all)
}

func TestReserveSettleReceipt(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	ctx := t.Context()
	change := must[ledger.Change](t)
	change(s.Reserve(ctx, tenantA, reserve(1, 300)))
	change(s.Reserve(ctx, tenantA, reserve(1, 300))) // after a lost answer
	if err := s.IssueReceipt(ctx, tenantA, run, target, ledger.ReceiptEnd{Epoch: 4, Outcome: "accepted"}); err != nil {
		t.Fatal(err)
	}
	receipts, _, err := s.Receipts(ctx, tenantA, nil, ledger.ReceiptCursor{CreatedAt: time.Now().Add(time.Hour)}, 10)
	if err != nil || len(receipts) != 1 || receipts[0].Complete() || !receipts[0].IssuedAt.IsZero() {
		t.Fatalf("receipt before the settlement: %+v, %v; want one that is not complete", receipts, err)
	}
	change(s.Settle(ctx, tenantA, settle(1, 120)))
	change(s.Settle(ctx, tenantA, settle(1, 120)))
	a, _, err := s.Balance(ctx, tenantA)
	want := ledger.Account{Tenant: tenantA, Granted: 1000, Available: 880, Spent: 120, Sequence: 3, Budget: a.Budget}
	if diff := cmp.Diff(want, a); err != nil || diff != "" {
		t.Fatalf("balance: %v (-want +got):\n%s", err, diff)
	}
	receipts, _, err = s.Receipts(ctx, tenantA, &run, ledger.ReceiptCursor{CreatedAt: time.Now().Add(time.Hour)}, 10)
	if err != nil || len(receipts) != 1 || !receipts[0].Complete() || receipts[0].IssuedAt.IsZero() || receipts[0].Total() != 120 {
		t.Fatalf("receipt: %+v, %v; want a complete one over 120", receipts, err)
	}
	transfers, err := s.Transfers(ctx, tenantA, nil, 1<<62, 10)
	if err != nil || len(transfers) != 3 {
		t.Fatalf("%d transfers, %v; want grant, reserve, settle", len(transfers), err)
	}
	for _, tr := range transfers {
		if !tr.Balanced() {
			t.Errorf("transfer does not balance: %+v", tr)
		}
	}
}

// TestReceiptCompletesWhicheverComesLast lets the run's end and its last settlement race: whoever comes
// second completes the receipt.
func TestReceiptCompletesWhicheverComesLast(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for n := range byte(10) {
		r := ledger.RunID{0x10, n}
		ask := ledger.ReserveAsk{Attempt: ledger.AttemptID{0x10, n}, Run: r, Amount: 10, Engine: "builtin"}
		must[ledger.Change](t)(s.Reserve(t.Context(), tenantA, ask))
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := s.IssueReceipt(t.Context(), tenantA, r, target, ledger.ReceiptEnd{Outcome: "accepted"}); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := s.Settle(t.Context(), tenantA, ledger.SettleAsk{Attempt: ask.Attempt, Run: r, Amount: 5}); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		receipts, _, err := s.Receipts(t.Context(), tenantA, &r, ledger.ReceiptCursor{CreatedAt: time.Now().Add(time.Hour)}, 1)
		if err != nil || len(receipts) != 1 || receipts[0].IssuedAt.IsZero() {
			t.Fatalf("receipt of run %d: %+v, %v; want it completed", n, receipts, err)
		}
	}
}

func TestVoidLeavesATombstone(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	ctx := t.Context()
	if err := s.Void(ctx, tenantA, ledger.VoidAsk{Attempt: ledger.AttemptID{9}, Run: run, Reason: "never started"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reserve(ctx, tenantA, reserve(9, 10)); !errors.Is(err, ledger.ErrAttemptClosed) {
		t.Fatalf("late reserve: %v, want %v", err, ledger.ErrAttemptClosed)
	}
	must[ledger.Change](t)(s.Reserve(ctx, tenantA, reserve(1, 400)))
	if err := s.Void(ctx, tenantA, ledger.VoidAsk{Attempt: ledger.AttemptID{1}, Run: run}); err != nil {
		t.Fatal(err)
	}
	if a, _, err := s.Balance(ctx, tenantA); err != nil || a.Available != grant || a.Reserved != 0 {
		t.Fatalf("balance %+v, %v; want everything free again", a, err)
	}
}

func TestGrantIsIdempotentOnItsKey(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	ctx := t.Context()
	granted := must[ledger.Granted](t)
	first := granted(s.Grant(ctx, tenantA, "k1", 500, ""))
	if again := granted(s.Grant(ctx, tenantA, "k1", 500, "")); again != first {
		t.Fatalf("again %+v, first %+v", again, first)
	}
	if _, err := s.Grant(ctx, tenantA, "k1", 501, ""); !errors.Is(err, ledger.ErrGrantConflict) {
		t.Fatalf("another amount: %v, want %v", err, ledger.ErrGrantConflict)
	}
	if a, _, err := s.Balance(ctx, tenantA); err != nil || a.Available != grant+500 {
		t.Fatalf("balance %+v, %v", a, err)
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	ctx := t.Context()
	must[ledger.Change](t)(s.Reserve(ctx, tenantA, reserve(1, 100)))
	a, _, err := s.SetBudget(ctx, tenantA, ledger.PeriodMonth, 150)
	if err != nil || a.Budget.Used != 100 {
		t.Fatalf("budget %+v, %v; want what is held to count", a.Budget, err)
	}
	if _, err := s.Reserve(ctx, tenantA, reserve(2, 60)); !errors.Is(err, ledger.ErrBudgetExhausted) {
		t.Fatalf("over the budget: %v", err)
	}
	must[ledger.Change](t)(s.Settle(ctx, tenantA, settle(1, 20)))
	must[ledger.Change](t)(s.Reserve(ctx, tenantA, reserve(2, 60)))
	if _, _, err := s.SetBudget(ctx, tenantA, ledger.PeriodNone, 0); err != nil {
		t.Fatal(err)
	}
	must[ledger.Change](t)(s.Reserve(ctx, tenantA, reserve(3, 500)))
}

func TestStaleReservationsAreFoundAcrossTenants(t *testing.T) {
	t.Parallel()
	s, db := setup(t)
	ctx := t.Context()
	must[ledger.Change](t)(s.Reserve(ctx, tenantA, reserve(1, 10)))
	must[ledger.Change](t)(s.Reserve(ctx, tenantB, reserve(2, 10)))
	if _, err := db.Admin(t).Exec(ctx, `UPDATE ledger.reservations SET held_at = held_at - interval '3 hours'`); err != nil {
		t.Fatal(err)
	}
	stale, err := s.StaleReservations(ctx, 2*time.Hour, 10)
	if err != nil || len(stale) != 2 {
		t.Fatalf("%d stale, %v; want 2", len(stale), err)
	}
}

// TestTenantsSeeTheirOwn asks as one tenant with another's ids: the answer is as for ids nobody has.
func TestTenantsSeeTheirOwn(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	ctx := t.Context()
	must[ledger.Change](t)(s.Reserve(ctx, tenantA, reserve(1, 10)))
	if found, err := s.Transfers(ctx, tenantB, &run, 1<<62, 10); err != nil || len(found) != 0 {
		t.Errorf("Transfers: %d, %v", len(found), err)
	}
	if found, _, err := s.Receipts(ctx, tenantB, &run, ledger.ReceiptCursor{CreatedAt: time.Now().Add(time.Hour)}, 10); err != nil || len(found) != 0 {
		t.Errorf("Receipts: %d, %v", len(found), err)
	}
	c := must[ledger.Change](t)(s.Settle(ctx, tenantB, settle(1, 5)))
	if c.Reservation.State != ledger.StateTombstone {
		t.Errorf("Settle of another tenant's attempt: %+v, want what an unknown one leaves", c.Reservation)
	}
	if a, _, err := s.Balance(ctx, tenantA); err != nil || a.Reserved != 10 {
		t.Errorf("another tenant's call moved the balance: %+v, %v", a, err)
	}
}

// TestTransfersAreAppendOnly tries what neither role may.
func TestTransfersAreAppendOnly(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	must[ledger.Change](t)(s.Reserve(t.Context(), tenantA, reserve(1, 10)))
	for _, sql := range []string{`UPDATE ledger.transfers SET note = 'x'`, `UPDATE ledger.transfers SET kind = 'opening', sequence = 0`} {
		if _, err := s.exec(t.Context(), sql); err == nil {
			t.Errorf("%s went through", sql)
		}
	}
	if n, err := s.exec(t.Context(), `UPDATE ledger.transfers SET available = 0, reserved = 0`); n != 0 || err != nil {
		t.Errorf("the system role changed %d transfers that are no opening one, %v", n, err)
	}
	for _, sql := range []string{`UPDATE ledger.transfers SET available = 0`, `DELETE FROM ledger.transfers`, `DELETE FROM ledger.receipt_ends`} {
		err := s.db.Tenant(t.Context(), uuid.UUID(tenantA), func(tx *pg.Tx) error {
			_, err := tx.Exec(t.Context(), sql)
			return err
		})
		if err == nil {
			t.Errorf("as the tenant %s went through", sql)
		}
	}
}

// TestConcurrentHistory runs random calls from several goroutines against one account, then holds the
// stored balances against their postings.
func TestConcurrentHistory(t *testing.T) {
	t.Parallel()
	s, db := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		seeds := rapid.SliceOfN(rapid.IntRange(0, 1<<20), 8, 24).Draw(rt, "calls")
		var wg sync.WaitGroup
		for _, seed := range seeds {
			wg.Go(func() { call(context.WithoutCancel(t.Context()), s, seed) })
		}
		wg.Wait()
		off := pgtest.Query[int64](t, db, `
SELECT count(*) FROM ledger.accounts AS a
  LEFT JOIN (SELECT tenant, -sum(grants) AS granted, sum(available) AS available, sum(reserved) AS reserved,
                    sum(spent) AS spent, sum(overruns) AS overruns, sum(covers) AS n, max(sequence) AS last
               FROM ledger.transfers GROUP BY tenant) AS t USING (tenant)
 WHERE (a.granted, a.available, a.reserved, a.spent, a.overruns, a.sequence, a.sequence)
       IS DISTINCT FROM (t.granted, t.available, t.reserved, t.spent, t.overruns, t.n, t.last)`)
		open := pgtest.Query[int64](t, db, `
SELECT count(*) FROM ledger.accounts AS a
 WHERE a.reserved <> (SELECT COALESCE(sum(r.amount), 0) FROM ledger.reservations AS r WHERE r.tenant = a.tenant AND r.state = 'open')`)
		if off != 0 || open != 0 {
			rt.Fatalf("%d balances differ from their postings, %d from what is held", off, open)
		}
	})
}

func call(ctx context.Context, s *Store, seed int) {
	n, amount := byte(seed%7), ledger.Micros(seed>>8%50)
	switch seed / 7 % 4 {
	case 0, 1:
		_, _ = s.Reserve(ctx, tenantA, reserve(n, amount))
	case 2:
		_, _ = s.Settle(ctx, tenantA, settle(n, amount))
	default:
		_ = s.Void(ctx, tenantA, ledger.VoidAsk{Attempt: ledger.AttemptID{n}, Run: run})
	}
}

func (s *Store) exec(ctx context.Context, sql string) (n int64, err error) {
	err = s.db.System(ctx, func(tx *pg.Tx) error {
		tag, err := tx.Exec(ctx, sql)
		n = tag.RowsAffected()
		return err
	})
	return n, err
}
