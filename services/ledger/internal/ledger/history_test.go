package ledger

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// book applies changes the way the store does, so that histories can be checked as a whole.
type book struct {
	account   Account
	held      map[AttemptID]Reservation
	transfers []Transfer
	keys      map[string]bool
}

func (b *book) apply(t *rapid.T, c Change, err error) {
	if err != nil {
		return
	}
	for _, tr := range c.Transfers {
		if !tr.Balanced() {
			t.Fatalf("transfer does not balance: %+v", tr)
		}
		if b.keys[tr.Key] {
			t.Fatalf("transfer key used twice: %s", tr.Key)
		}
		b.keys[tr.Key] = true
		if want := int64(len(b.transfers)) + 1; tr.Sequence != want {
			t.Fatalf("sequence %d, want %d", tr.Sequence, want)
		}
		b.transfers = append(b.transfers, tr)
	}
	b.account = c.Account
	if c.Reservation != nil {
		b.held[c.Reservation.Attempt] = *c.Reservation
	}
}

func (b *book) check(t *rapid.T) {
	var sum Account
	for _, tr := range b.transfers {
		sum, _ = sum.apply(tr)
	}
	got := b.account
	got.Budget = Budget{}
	if sum != got {
		t.Fatalf("balances %+v differ from their postings %+v", got, sum)
	}
	var open, settled, overrun Micros
	for _, r := range b.held {
		if r.Settled < 0 || r.Settled > r.Amount {
			t.Fatalf("settled outside of the reservation: %+v", r)
		}
		if r.Open() {
			open += r.Amount
		}
		settled, overrun = settled+r.Settled, overrun+r.Overrun
	}
	if got.Reserved != open || got.Spent != settled || got.Overruns != overrun {
		t.Fatalf("account %+v does not match its reservations: open %d, settled %d, overrun %d", got, open, settled, overrun)
	}
	if got.Available < -got.Overruns {
		t.Fatalf("available below zero without an overrun: %+v", got)
	}
	if b.account.Budget.Period != PeriodNone && b.account.Budget.Used > b.account.Budget.Limit {
		t.Fatalf("budget overdrawn: %+v", b.account.Budget)
	}
}

// TestLedgerHistory runs any order of reserves, settlements, voids, repeats and grants: balances equal
// their postings, every transfer balances, nothing is settled twice or above its reservation.
func TestLedgerHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := &book{held: map[AttemptID]Reservation{}, keys: map[string]bool{}}
		now := noon
		c, err := Grant(b.account, "opening", 1000, "", now)
		b.apply(t, c, err)
		if rapid.Bool().Draw(t, "budgeted") {
			b.account, _ = b.account.WithBudget(PeriodDay, 300, 0, now)
		}
		anAttempt := rapid.Custom(func(t *rapid.T) AttemptID { return AttemptID{rapid.Byte().Draw(t, "attempt") % 6} })
		amount := rapid.Int64Range(0, 200)
		find := func(id AttemptID) *Reservation {
			if r, ok := b.held[id]; ok {
				return &r
			}
			return nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				id := anAttempt.Draw(t, "id")
				c, err := Reserve(b.account, find(id), ReserveAsk{Attempt: id, Amount: Micros(amount.Draw(t, "amount"))}, now)
				b.apply(t, c, err)
			},
			"settle": func(t *rapid.T) {
				id := anAttempt.Draw(t, "id")
				ask := SettleAsk{Attempt: id, Amount: Micros(amount.Draw(t, "amount")), Estimate: rapid.Bool().Draw(t, "estimate")}
				c, err := Settle(b.account, find(id), ask, now)
				b.apply(t, c, err)
			},
			"void": func(t *rapid.T) {
				id := anAttempt.Draw(t, "id")
				c, err := Void(b.account, find(id), VoidAsk{Attempt: id}, now)
				b.apply(t, c, err)
			},
			"time passes": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "hours")) * time.Hour)
			},
			"": b.check,
		})
	})
}
