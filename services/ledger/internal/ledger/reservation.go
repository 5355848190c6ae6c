package ledger

import (
	"fmt"
	"time"
)

// ReservationState is where a reservation stands.
type ReservationState string

// The states of a reservation. Tombstone marks an attempt that was closed before it was ever held.
const (
	StateOpen      ReservationState = "open"
	StateSettled   ReservationState = "settled"
	StateVoided    ReservationState = "voided"
	StateTombstone ReservationState = "tombstone"
)

// Reservation is what is, or was, held for one attempt. 0 <= Settled <= Amount, always.
type Reservation struct {
	Attempt  AttemptID
	Run      RunID
	State    ReservationState
	Amount   Micros
	Settled  Micros
	Overrun  Micros // reported above Amount, flagged and paid apart
	Estimate bool   // nobody measured what was settled
	Engine   string
	Outcome  string // a stable word: finished, failed, expired, cancelled
	HeldAt   time.Time
	ClosedAt time.Time // zero while open
}

// Open reports whether money is still held.
func (r Reservation) Open() bool { return r.State == StateOpen }

// Stale names an open reservation that nobody has closed for too long.
type Stale struct {
	Tenant  TenantID
	Attempt AttemptID
	Run     RunID
}

// ReserveAsk is a call of Reserve.
type ReserveAsk struct {
	Attempt AttemptID
	Run     RunID
	Amount  Micros
	Engine  string
}

// Reserve holds an attempt's maximum cost. held is the attempt's row as locked, nil where there is
// none. The same call again is answered with an empty change.
func Reserve(a Account, held *Reservation, ask ReserveAsk, now time.Time) (Change, error) {
	if ask.Amount <= 0 || ask.Amount > MaxAmount {
		return Change{}, ErrInvalidAmount
	}
	if held != nil {
		switch {
		case !held.Open():
			return Change{}, ErrAttemptClosed
		case held.Amount != ask.Amount || held.Run != ask.Run:
			return Change{}, ErrAmountMismatch
		}
		return Change{Account: a, Reservation: held}, nil
	}
	a.Budget = a.Budget.At(now)
	if !a.Budget.allows(ask.Amount) {
		return Change{}, &OverBudgetError{Why: ErrBudgetExhausted, RetryAfter: a.Budget.EndsAt(now).Sub(now)}
	}
	if a.Available < ask.Amount {
		return Change{}, &OverBudgetError{Why: ErrInsufficientFunds, RetryAfter: fundsRetry}
	}
	a.Budget.Used += ask.Amount
	r := Reservation{Attempt: ask.Attempt, Run: ask.Run, State: StateOpen, Amount: ask.Amount, Engine: ask.Engine, HeldAt: now}
	return Change{Account: a, Reservation: &r}.with(Transfer{
		Kind: KindReserve, Key: "reserve:" + ask.Attempt.String(), Attempt: &ask.Attempt, Run: &ask.Run, Note: ask.Engine,
		Available: -ask.Amount, Reserved: ask.Amount,
	}, now), nil
}

// SettleAsk is a call of Settle.
type SettleAsk struct {
	Attempt  AttemptID
	Run      RunID
	Amount   Micros
	Estimate bool // the reservation stands for the cost; Amount is not read
	Outcome  string
}

// Settle moves what an attempt cost from held to spent and frees the rest. A measured figure corrects
// an earlier estimate; any other repeat changes nothing. An attempt that was voided and reports a
// cost after all is paid as an overrun: it is never hidden.
func Settle(a Account, held *Reservation, ask SettleAsk, now time.Time) (Change, error) {
	if ask.Amount < 0 || ask.Amount > MaxAmount {
		return Change{}, ErrInvalidAmount
	}
	if held == nil {
		return tombstone(a, ask.Attempt, ask.Run, ask.Outcome, now), nil
	}
	if held.Run != ask.Run {
		return Change{}, ErrAmountMismatch
	}
	r := *held
	switch {
	case r.Open():
		return settleOpen(a, r, ask, now), nil
	case r.State == StateSettled && r.Estimate && !ask.Estimate:
		return correct(a, r, ask, now), nil
	case r.State == StateVoided && !ask.Estimate && ask.Amount > r.Overrun:
		return overrun(Change{Account: a, Reservation: &r}, ask.Amount-r.Overrun, now), nil
	}
	return Change{Account: a, Reservation: held}, nil
}

func settleOpen(a Account, r Reservation, ask SettleAsk, now time.Time) Change {
	cost := ask.Amount
	if ask.Estimate {
		cost = r.Amount
	}
	settled := min(cost, r.Amount)
	r.State, r.Settled, r.Estimate, r.Outcome, r.ClosedAt = StateSettled, settled, ask.Estimate, ask.Outcome, now
	a.Budget = a.Budget.At(now).free(r, r.Amount-settled)
	c := Change{Account: a, Reservation: &r}.with(Transfer{
		Kind: KindSettle, Key: "settle:" + r.Attempt.String(), Attempt: &r.Attempt, Run: &r.Run,
		Note: ask.Outcome, Estimate: ask.Estimate,
		Reserved: -r.Amount, Spent: settled, Available: r.Amount - settled,
	}, now)
	return overrun(c, cost-settled, now)
}

// correct replaces an estimate, which is the whole reservation, by what was measured.
func correct(a Account, r Reservation, ask SettleAsk, now time.Time) Change {
	settled := min(ask.Amount, r.Amount)
	back := r.Settled - settled
	r.Settled, r.Estimate, r.Outcome = settled, false, ask.Outcome
	a.Budget = a.Budget.At(now).free(r, back)
	c := Change{Account: a, Reservation: &r}.with(Transfer{
		Kind: KindCorrect, Key: "correct:" + r.Attempt.String(), Attempt: &r.Attempt, Run: &r.Run, Note: ask.Outcome,
		Spent: -back, Available: back,
	}, now)
	return overrun(c, ask.Amount-settled, now)
}

// overrun pays what a provider reports above the reservation, in a transfer of its own.
func overrun(c Change, amount Micros, now time.Time) Change {
	if amount <= 0 {
		return c
	}
	r := *c.Reservation
	r.Overrun += amount
	c.Reservation = &r
	return c.with(Transfer{
		Kind: KindOverrun, Key: fmt.Sprintf("overrun:%s:%d", r.Attempt, r.Overrun), Attempt: &r.Attempt, Run: &r.Run,
		Available: -amount, Overruns: amount,
	}, now)
}

// VoidAsk is a call of Void.
type VoidAsk struct {
	Attempt AttemptID
	Run     RunID
	Reason  string
}

// Void frees what was held for an attempt that never started. A closed attempt stays as it is.
func Void(a Account, held *Reservation, ask VoidAsk, now time.Time) (Change, error) {
	if held == nil {
		return tombstone(a, ask.Attempt, ask.Run, ask.Reason, now), nil
	}
	if held.Run != ask.Run {
		return Change{}, ErrAmountMismatch
	}
	r := *held
	if !r.Open() {
		return Change{Account: a, Reservation: held}, nil
	}
	r.State, r.Outcome, r.ClosedAt = StateVoided, ask.Reason, now
	a.Budget = a.Budget.At(now).free(r, r.Amount)
	return Change{Account: a, Reservation: &r}.with(Transfer{
		Kind: KindVoid, Key: "void:" + r.Attempt.String(), Attempt: &r.Attempt, Run: &r.Run, Note: ask.Reason,
		Reserved: -r.Amount, Available: r.Amount,
	}, now), nil
}

// tombstone stands in for an attempt that was closed before it was held, so that its late Reserve is
// refused.
func tombstone(a Account, attempt AttemptID, run RunID, outcome string, now time.Time) Change {
	return Change{Account: a, Reservation: &Reservation{
		Attempt: attempt, Run: run, State: StateTombstone, Outcome: outcome, HeldAt: now, ClosedAt: now,
	}}
}
