package e2e

import (
	"fmt"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	typev1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/type/v1"
)

// overBudget waits until the page says so, or would where there is one.
func (w *world) overBudget() *schedulerv1.Target {
	w.Helper()
	var at *schedulerv1.Target
	eventually(w.T, "over budget", func() error {
		t, err := w.target()
		if err == nil && (t.GetPage() != "over_budget" || t.GetDelivery() != "delivered") {
			err = fmt.Errorf("the page is %s, %s", t.GetPage(), t.GetDelivery())
		}
		at = t
		return err
	})
	return at
}

// TestOverBudgetThenGranted opens an account with nothing in it: no engine is called, the page says so
// once, and after a grant the review is made.
func TestOverBudgetThenGranted(t *testing.T) {
	w := newWorld(t)
	w.env["ledger"]["LEDGER_OPENING_GRANT_MICROS"] = "0"
	w.up()
	w.repository()
	opened := w.open(control.Send)
	n := opened.Pull.Number
	at := w.overBudget()
	if got := w.started(at); got != 0 {
		t.Errorf("%d engine calls without money", got)
	}
	p := w.page(n, opened.Pull.HeadSHA)
	if len(p.comments) != 0 || len(p.checks) != 1 || p.checks[0].Conclusion != "neutral" {
		t.Errorf("over budget shows %d comments and %+v", len(p.comments), p.checks)
	}
	eventually(t, "it is tried again", func() error {
		if n := w.count(`SELECT count(*) FROM reviewer.attempts`); n < 3 {
			return fmt.Errorf("%d attempts", n)
		}
		return nil
	})
	if n := w.count(`SELECT count(*) FROM scheduler.decisions WHERE kind = 'over_budget'`); n != 1 {
		t.Errorf("%d decisions say over budget, want 1 per comparison", n)
	}
	if now, _ := w.target(); now.GetEpoch() != 1 {
		t.Errorf("epoch %d: the page was told more than once", now.GetEpoch())
	}
	for range 2 { // the same grant twice is one
		if _, err := w.accounts().GrantCredits(t.Context(), &ledgerv1.GrantCreditsRequest{
			Tenant: at.GetTenant(), IdempotencyKey: "first", Amount: &typev1.Money{Micros: 50_000}, Reason: "a test",
		}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the head is shown", func() error { return w.shows(opened.Pull.HeadSHA) })
	w.oneReview(w.atRest(), n, opened.Pull.HeadSHA)
	if b := w.settled(at.GetTenant()); b.GetGranted().GetMicros() != 50_000 {
		t.Errorf("granted %v, want the grant once", b.GetGranted())
	}
}

// TestBudgetOfZeroThenRaised sets the budget to nothing after a review: the next head is not reviewed,
// what is shown is taken back, and after the budget is raised it is.
func TestBudgetOfZeroThenRaised(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	n := opened.Pull.Number
	at := w.atRest()
	w.oneReview(at, n, opened.Pull.HeadSHA)
	budget := func(micros int64) {
		if _, err := w.accounts().SetBudget(t.Context(), &ledgerv1.SetBudgetRequest{
			Tenant: at.GetTenant(), Limit: &typev1.Money{Micros: micros}, Period: ledgerv1.BudgetPeriod_BUDGET_PERIOD_DAY,
		}); err != nil {
			t.Fatal(err)
		}
	}
	budget(0)
	pushed := w.change(1, control.Send)
	w.overBudget()
	if got := w.started(at); got != 1 {
		t.Errorf("%d engine calls, want the first one only", got)
	}
	budget(1_000_000)
	eventually(t, "the new head is shown", func() error { return w.shows(pushed.After) })
	w.oneReview(w.atRest(), n, pushed.After)
}

// TestLedgerAway calls no engine while the ledger is away, and uses up nothing.
func TestLedgerAway(t *testing.T) {
	w := newWorld(t)
	w.up("ingest", "scheduler", "reviewer", "publisher")
	w.repository()
	opened := w.open(control.Send)
	eventually(t, "the claim was released three times", func() error {
		if n := w.count(`SELECT count(*) FROM scheduler.decisions WHERE kind = 'released'`); n < 3 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	if n := w.count(`SELECT count(*) FROM reviewer.attempts WHERE started_at IS NOT NULL OR number > 0`); n != 0 {
		t.Errorf("%d attempts were started without the ledger", n)
	}
	w.up("ledger")
	eventually(t, "the head is shown", func() error { return w.shows(opened.Pull.HeadSHA) })
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
}

// TestLateReserve lets a reservation arrive after its attempt was given up: it is refused or freed, never
// held for ever.
func TestLateReserve(t *testing.T) {
	w := newWorld(t)
	held := newGate()
	w.proxies["ledger"].fault(ledgerv1.LedgerService_Reserve_FullMethodName, held.late)
	w.env["scheduler"]["SCHEDULER_LEASE"] = "2s"
	w.up()
	w.repository()
	opened := w.open(control.Send)
	wait(t, "a reservation is on its way", held.reached)
	eventually(t, "its attempt is given up", func() error {
		if n := w.count(`SELECT count(*) FROM reviewer.attempts WHERE state = 'voided'`); n == 0 {
			return fmt.Errorf("none is")
		}
		return nil
	})
	w.proxies["ledger"].fault(ledgerv1.LedgerService_Reserve_FullMethodName, nil)
	held.release()
	eventually(t, "the head is shown", func() error { return w.shows(opened.Pull.HeadSHA) })
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
}
