package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/services/ledger/internal/ledger"
)

// sums are what every purge must leave as it is: the balances of a tenant's account, and that they are
// those of its postings, whose transfers stand for every number that was given.
const sums = `
SELECT format('%s granted, %s available, %s reserved, %s spent, %s overruns, number %s, %s', a.granted, a.available, a.reserved,
              a.spent, a.overruns, a.sequence,
              CASE WHEN (a.granted, a.available, a.reserved, a.spent, a.overruns, a.sequence)
                      = (-t.granted, t.available, t.reserved, t.spent, t.overruns, t.n) THEN 'as posted' ELSE 'off' END)
  FROM ledger.accounts AS a,
       LATERAL (SELECT sum(grants) AS granted, sum(available) AS available, sum(reserved) AS reserved, sum(spent) AS spent,
                       sum(overruns) AS overruns, sum(covers) AS n FROM ledger.transfers AS t WHERE t.tenant = a.tenant) AS t
 WHERE a.tenant = $1`

// spend makes a run with one attempt that is settled, over its reservation where cost is.
func spend(t testing.TB, s *Store, tenant ledger.TenantID, run ledger.RunID, cost ledger.Micros) {
	t.Helper()
	attempt := ledger.AttemptID(run)
	ctx := context.WithoutCancel(t.Context())
	must[ledger.Change](t)(s.Reserve(ctx, tenant, ledger.ReserveAsk{Attempt: attempt, Run: run, Amount: 10, Engine: "builtin"}))
	must[ledger.Change](t)(s.Settle(ctx, tenant, ledger.SettleAsk{Attempt: attempt, Run: run, Amount: cost, Outcome: "finished"}))
	if err := s.IssueReceipt(ctx, tenant, run, target, ledger.ReceiptEnd{Epoch: 1, Outcome: "accepted"}); err != nil {
		t.Fatal(err)
	}
}

// rows counts what the tables of the ledger hold for a tenant beside its account.
func rows(t testing.TB, db *pgtest.DB, tenant ledger.TenantID) string {
	t.Helper()
	return pgtest.Query[string](t, db, `
SELECT format('%s transfers, %s reservations, %s receipts, %s ends',
              (SELECT count(*) FROM ledger.transfers WHERE tenant = $1), (SELECT count(*) FROM ledger.reservations WHERE tenant = $1),
              (SELECT count(*) FROM ledger.receipts WHERE tenant = $1), (SELECT count(*) FROM ledger.receipt_ends WHERE tenant = $1))`, tenant)
}

func TestPurgeFoldsTheTransfersOfRuns(t *testing.T) {
	t.Parallel()
	s, db := setup(t)
	ctx := t.Context()
	old, older, live := ledger.RunID{1}, ledger.RunID{2}, ledger.RunID{3}
	for _, tenant := range []ledger.TenantID{tenantA, tenantB} {
		spend(t, s, tenant, old, 7)
		spend(t, s, tenant, older, 15) // 5 above what was held
		spend(t, s, tenant, live, 3)
	}
	before, other := pgtest.Query[string](t, db, sums, tenantA), rows(t, db, tenantB)
	for range 2 {
		if err := s.PurgeRuns(ctx, tenantA, []ledger.RunID{old, older, {9}}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, pgtest.Query[string](t, db, sums, tenantA)); diff != "" {
		t.Errorf("balances (-before +after)\n%s", diff)
	}
	if got, want := rows(t, db, tenantA), "4 transfers, 1 reservations, 1 receipts, 1 ends"; got != want {
		t.Errorf("%s are left, want %s", got, want)
	}
	if got := rows(t, db, tenantB); got != other {
		t.Errorf("another tenant has %s, had %s", got, other)
	}
	transfers, err := s.Transfers(ctx, tenantA, nil, 1<<62, 10)
	if err != nil {
		t.Fatal(err)
	}
	first := transfers[len(transfers)-1]
	want := ledger.Transfer{ID: first.ID, Kind: ledger.KindOpening, Note: "earlier transfers", Available: -22, Spent: 17, Overruns: 5, At: first.At}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("the opening transfer (-want +got)\n%s", diff)
	}
	// Later runs are folded into the same one, and numbers go on.
	if err := s.PurgeRuns(ctx, tenantA, []ledger.RunID{live}); err != nil {
		t.Fatal(err)
	}
	spend(t, s, tenantA, ledger.RunID{4}, 1)
	if got, want := pgtest.Query[string](t, db, sums, tenantA), "1000 granted, 974 available, 0 reserved, 21 spent, 5 overruns, number 10, as posted"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestPurgeWaitsForWhatIsHeld(t *testing.T) {
	t.Parallel()
	s, db := setup(t)
	must[ledger.Change](t)(s.Reserve(t.Context(), tenantA, reserve(1, 300)))
	spend(t, s, tenantA, ledger.RunID{2}, 5)
	runs := []ledger.RunID{run, {2}}
	unfinished := &purge.Unfinished{}
	if err := s.PurgeRuns(t.Context(), tenantA, runs); !errors.As(err, &unfinished) || unfinished.After != heldRetry {
		t.Fatalf("PurgeRuns = %v, want it to be asked again", err)
	}
	if got, want := rows(t, db, tenantA), "3 transfers, 1 reservations, 1 receipts, 0 ends"; got != want {
		t.Errorf("%s are left, want %s: what holds nothing goes", got, want)
	}
	if _, err := s.EraseTenant(t.Context(), uuid.UUID(tenantA)); !errors.As(err, &unfinished) {
		t.Errorf("EraseTenant = %v, want it to be asked again", err)
	}
	must[ledger.Change](t)(s.Settle(t.Context(), tenantA, settle(1, 300)))
	if err := s.PurgeRuns(t.Context(), tenantA, runs); err != nil {
		t.Fatal(err)
	}
	if got, want := rows(t, db, tenantA), "2 transfers, 0 reservations, 0 receipts, 0 ends"; got != want {
		t.Errorf("%s are left, want %s", got, want)
	}
}

// TestFoldKeepsBalances folds any runs of any history, while others go on.
func TestFoldKeepsBalances(t *testing.T) {
	t.Parallel()
	s, db := setup(t)
	n := byte(0)
	rapid.Check(t, func(rt *rapid.T) {
		n++
		tenant := ledger.TenantID{0xf0, n, byte(rapid.Int().Draw(rt, "tenant"))}
		ctx := context.WithoutCancel(t.Context())
		anyRun := rapid.Custom(func(t *rapid.T) ledger.RunID { return ledger.RunID{1 + rapid.Byte().Draw(t, "run")%5} })
		rt.Repeat(map[string]func(*rapid.T){
			"reserve": func(rt *rapid.T) {
				r := anyRun.Draw(rt, "run")
				a := ledger.AttemptID{r[0], rapid.Byte().Draw(rt, "attempt") % 3}
				_, _ = s.Reserve(ctx, tenant, ledger.ReserveAsk{Attempt: a, Run: r, Amount: ledger.Micros(rapid.Int64Range(1, 99).Draw(rt, "amount"))})
			},
			"settle": func(rt *rapid.T) {
				r := anyRun.Draw(rt, "run")
				a := ledger.AttemptID{r[0], rapid.Byte().Draw(rt, "attempt") % 3}
				_, _ = s.Settle(ctx, tenant, ledger.SettleAsk{Attempt: a, Run: r, Amount: ledger.Micros(rapid.Int64Range(0, 120).Draw(rt, "cost")), Estimate: rapid.Bool().Draw(rt, "estimate")})
			},
			"void": func(rt *rapid.T) {
				r := anyRun.Draw(rt, "run")
				_ = s.Void(ctx, tenant, ledger.VoidAsk{Attempt: ledger.AttemptID{r[0], rapid.Byte().Draw(rt, "attempt") % 3}, Run: r})
			},
			"grant": func(rt *rapid.T) {
				_, _ = s.Grant(ctx, tenant, fmt.Sprint(rapid.IntRange(0, 3).Draw(rt, "key")), 50, "")
			},
			"purge": func(rt *rapid.T) {
				before, _, err := s.Balance(ctx, tenant)
				if err != nil {
					rt.Fatal(err)
				}
				var more *purge.Unfinished
				runs := rapid.SliceOfNDistinct(anyRun, 1, 3, rapid.ID).Draw(rt, "runs")
				if err := s.PurgeRuns(ctx, tenant, runs); err != nil && !errors.As(err, &more) {
					rt.Fatal(err)
				}
				after, _, err := s.Balance(ctx, tenant)
				if diff := cmp.Diff(before, after); err != nil || diff != "" {
					rt.Fatalf("balances moved: %v (-before +after)\n%s", err, diff)
				}
			},
		})
		if line := pgtest.Query[string](t, db, `SELECT COALESCE((`+sums+`), 'as posted')`, tenant); !strings.HasSuffix(line, "as posted") {
			rt.Fatal(line)
		}
	})
}

func TestEraseLeavesTotals(t *testing.T) {
	t.Parallel()
	s, db := setup(t)
	for n := range byte(40) {
		spend(t, s, tenantA, ledger.RunID{1, n}, 7)
	}
	must[ledger.Granted](t)(s.Grant(t.Context(), tenantA, "k", 500, "for acme/secret"))
	if err := s.Void(t.Context(), tenantA, ledger.VoidAsk{Attempt: ledger.AttemptID{9}, Run: run}); err != nil {
		t.Fatal(err)
	}
	spend(t, s, tenantB, run, 7)
	other := rows(t, db, tenantB)
	before := pgtest.Query[string](t, db, sums, tenantA)
	n, err := s.EraseTenant(t.Context(), uuid.UUID(tenantA))
	if err != nil || n == 0 {
		t.Fatalf("EraseTenant = %d, %v", n, err)
	}
	if n, err := s.EraseTenant(t.Context(), uuid.UUID(tenantA)); err != nil || n != 0 {
		t.Fatalf("again: %d, %v", n, err)
	}
	if diff := cmp.Diff(before, pgtest.Query[string](t, db, sums, tenantA)); diff != "" {
		t.Errorf("balances (-before +after)\n%s", diff)
	}
	if got, want := rows(t, db, tenantA), "1 transfers, 0 reservations, 0 receipts, 0 ends"; got != want {
		t.Errorf("%s are left, want %s", got, want)
	}
	if got := rows(t, db, tenantB); got != other {
		t.Errorf("another tenant has %s, had %s", got, other)
	}
	if text := pgtest.Query[string](t, db, `SELECT string_agg(t::text, ' ') FROM ledger.transfers AS t WHERE tenant = $1 AND (run_id IS NOT NULL OR attempt_id IS NOT NULL OR note ~ 'acme')`, tenantB); text == "" {
		t.Error("the other tenant's transfers name no run: the test sees nothing")
	}
	if n := pgtest.Query[int](t, db, `SELECT count(*)::int FROM ledger.transfers WHERE tenant = $1 AND (run_id IS NOT NULL OR attempt_id IS NOT NULL OR note ~ 'acme')`, tenantA); n != 0 {
		t.Errorf("%d transfers still name something", n)
	}
}

func TestTombstonesGoByAge(t *testing.T) {
	t.Parallel()
	s, db := setup(t)
	for n := range byte(5) {
		if err := s.Void(t.Context(), tenantA, ledger.VoidAsk{Attempt: ledger.AttemptID{n}, Run: run}); err != nil {
			t.Fatal(err)
		}
	}
	must[ledger.Change](t)(s.Reserve(t.Context(), tenantA, reserve(9, 300)))
	must[ledger.Change](t)(s.Settle(t.Context(), tenantA, settle(9, 300)))
	if _, err := db.Admin(t).Exec(t.Context(), `UPDATE ledger.reservations SET closed_at = closed_at - interval '91 days' WHERE get_byte(uuid_send(attempt_id), 0) <> 4`); err != nil {
		t.Fatal(err)
	}
	kind := s.Tombstones(90 * 24 * time.Hour)
	for _, want := range []int{3, 1, 0} {
		if n, err := kind.Remove(t.Context(), kind.Retention, 3); err != nil || n != want {
			t.Fatalf("removed %d, %v; want %d", n, err, want)
		}
	}
}
