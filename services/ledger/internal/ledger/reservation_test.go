package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	noon    = time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	attempt = AttemptID{1}
	run     = RunID{2}
)

func account(available Micros) Account {
	return Account{Granted: available, Available: available, Sequence: 1}
}

func TestReserve(t *testing.T) {
	t.Parallel()
	held := func(s ReservationState, amount Micros) *Reservation {
		return &Reservation{Attempt: attempt, Run: run, State: s, Amount: amount}
	}
	for _, tc := range []struct {
		name string
		acct Account
		held *Reservation
		ask  Micros
		want error
		left Micros
	}{
		{name: "holds what is available", acct: account(10), ask: 10, left: 0},
		{name: "the same call again changes nothing", acct: account(10), held: held(StateOpen, 4), ask: 4, left: 10},
		{name: "another amount for the attempt is refused", acct: account(10), held: held(StateOpen, 4), ask: 5, want: ErrAmountMismatch},
		{name: "more than is available is over budget", acct: account(10), ask: 11, want: ErrInsufficientFunds},
		{name: "a settled attempt is closed", acct: account(10), held: held(StateSettled, 4), ask: 4, want: ErrAttemptClosed},
		{name: "a tombstone refuses a late reserve", acct: account(10), held: held(StateTombstone, 0), ask: 4, want: ErrAttemptClosed},
		{name: "nothing can't be held", acct: account(10), ask: 0, want: ErrInvalidAmount},
		{name: "a negative amount can't be held", acct: account(10), ask: -1, want: ErrInvalidAmount},
		{name: "an amount above the bound can't be held", acct: account(10), ask: MaxAmount + 1, want: ErrInvalidAmount},
		{
			name: "the budget bounds what is available", ask: 6, want: ErrBudgetExhausted,
			acct: Account{Granted: 10, Available: 10, Budget: Budget{Period: PeriodDay, Limit: 5, StartAt: PeriodDay.Start(noon)}},
		},
		{
			name: "a used up budget starts anew with its period", ask: 5, left: 5,
			acct: Account{Granted: 10, Available: 10, Budget: Budget{Period: PeriodDay, Limit: 5, Used: 5, StartAt: PeriodDay.Start(noon).AddDate(0, 0, -1)}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, err := Reserve(tc.acct, tc.held, ReserveAsk{Attempt: attempt, Run: run, Amount: tc.ask}, noon)
			if !errors.Is(err, tc.want) {
				t.Fatalf("error %v, want %v", err, tc.want)
			}
			if err == nil && c.Account.Available != tc.left {
				t.Fatalf("available %d, want %d", c.Account.Available, tc.left)
			}
		})
	}
}

func TestOverBudgetSaysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	a := account(10)
	a.Budget = Budget{Period: PeriodMonth, Limit: 1, StartAt: PeriodMonth.Start(noon)}
	_, err := Reserve(a, nil, ReserveAsk{Attempt: attempt, Run: run, Amount: 2}, noon)
	refused, ok := errors.AsType[*OverBudgetError](err)
	if !ok || refused.RetryAfter != 12*time.Hour {
		t.Fatalf("got %v, want a refusal until the month ends in 12h", err)
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	open := Reservation{Attempt: attempt, Run: run, State: StateOpen, Amount: 10, HeldAt: noon}
	funded := Account{Granted: 100, Available: 90, Reserved: 10, Sequence: 2}
	for _, tc := range []struct {
		name  string
		acct  Account
		held  *Reservation
		ask   SettleAsk
		kinds []TransferKind
		want  Account
	}{
		{
			name: "spends what it cost and frees the rest", acct: funded, held: &open, ask: SettleAsk{Amount: 4},
			kinds: []TransferKind{KindSettle}, want: Account{Granted: 100, Available: 96, Spent: 4, Sequence: 3},
		},
		{
			name: "an estimate spends the whole reservation", acct: funded, held: &open, ask: SettleAsk{Estimate: true},
			kinds: []TransferKind{KindSettle}, want: Account{Granted: 100, Available: 90, Spent: 10, Sequence: 3},
		},
		{
			name: "above the reservation is an overrun apart", acct: funded, held: &open, ask: SettleAsk{Amount: 13},
			kinds: []TransferKind{KindSettle, KindOverrun}, want: Account{Granted: 100, Available: 87, Spent: 10, Overruns: 3, Sequence: 4},
		},
		{
			name: "a measured figure corrects an estimate",
			acct: Account{Granted: 100, Available: 90, Spent: 10, Sequence: 3},
			held: &Reservation{Attempt: attempt, Run: run, State: StateSettled, Amount: 10, Settled: 10, Estimate: true},
			ask:  SettleAsk{Amount: 7}, kinds: []TransferKind{KindCorrect},
			want: Account{Granted: 100, Available: 93, Spent: 7, Sequence: 4},
		},
		{
			name: "a second settlement changes nothing",
			acct: Account{Granted: 100, Available: 96, Spent: 4, Sequence: 3},
			held: &Reservation{Attempt: attempt, Run: run, State: StateSettled, Amount: 10, Settled: 4},
			ask:  SettleAsk{Amount: 9}, want: Account{Granted: 100, Available: 96, Spent: 4, Sequence: 3},
		},
		{
			name: "a voided attempt that cost something after all is an overrun",
			acct: Account{Granted: 100, Available: 100, Sequence: 3},
			held: &Reservation{Attempt: attempt, Run: run, State: StateVoided, Amount: 10},
			ask:  SettleAsk{Amount: 2}, kinds: []TransferKind{KindOverrun},
			want: Account{Granted: 100, Available: 98, Overruns: 2, Sequence: 4},
		},
		{
			name: "an unknown attempt leaves a tombstone and moves nothing",
			acct: account(100), ask: SettleAsk{Amount: 5}, want: account(100),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.ask.Attempt, tc.ask.Run = attempt, run
			c, err := Settle(tc.acct, tc.held, tc.ask, noon)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, c.Account); diff != "" {
				t.Errorf("account (-want +got):\n%s", diff)
			}
			var kinds []TransferKind
			for _, tr := range c.Transfers {
				kinds = append(kinds, tr.Kind)
			}
			if diff := cmp.Diff(tc.kinds, kinds); diff != "" {
				t.Errorf("transfers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVoid(t *testing.T) {
	t.Parallel()
	a := Account{Granted: 100, Available: 90, Reserved: 10, Sequence: 2}
	c, err := Void(a, &Reservation{Attempt: attempt, Run: run, State: StateOpen, Amount: 10}, VoidAsk{Attempt: attempt, Run: run}, noon)
	if err != nil || c.Account.Available != 100 || c.Account.Reserved != 0 {
		t.Fatalf("got %+v, %v: want everything free again", c.Account, err)
	}
	c, err = Void(account(100), nil, VoidAsk{Attempt: attempt, Run: run}, noon)
	if err != nil || c.Reservation.State != StateTombstone {
		t.Fatalf("got %+v, %v: want a tombstone", c.Reservation, err)
	}
}
