package ledger

import "time"

// Period is how often a budget starts anew, in UTC.
type Period string

// The periods of a budget; PeriodNone is no budget at all.
const (
	PeriodNone  Period = ""
	PeriodDay   Period = "day"
	PeriodMonth Period = "month"
)

// Start returns the beginning of the period that holds now, in UTC.
func (p Period) Start(now time.Time) time.Time {
	now = now.UTC()
	if p == PeriodMonth {
		return time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
}

// End returns the beginning of the period after the one that holds now, in UTC.
func (p Period) End(now time.Time) time.Time {
	if p == PeriodMonth {
		return p.Start(now).AddDate(0, 1, 0)
	}
	return p.Start(now).AddDate(0, 0, 1)
}

// Budget bounds what a tenant may hold and spend within a period.
type Budget struct {
	Period  Period
	Limit   Micros
	Used    Micros // held and spent since StartAt
	StartAt time.Time
}

// At starts the budget anew where its period has passed. What is still held from an earlier period
// counts there.
func (b Budget) At(now time.Time) Budget {
	if b.Period == PeriodNone {
		return b
	}
	if start := b.Period.Start(now); b.StartAt.Before(start) {
		b.StartAt, b.Used = start, 0
	}
	return b
}

func (b Budget) allows(amount Micros) bool {
	return b.Period == PeriodNone || b.Used+amount <= b.Limit
}

// free gives back what a reservation of the running period did not use.
func (b Budget) free(r Reservation, amount Micros) Budget {
	if b.Period != PeriodNone && !r.HeldAt.Before(b.StartAt) {
		b.Used = max(0, b.Used-amount)
	}
	return b
}

// EndsAt returns when the budget starts anew, the zero time where there is none.
func (b Budget) EndsAt(now time.Time) time.Time {
	if b.Period == PeriodNone {
		return time.Time{}
	}
	return b.Period.End(now)
}

// WithBudget replaces the account's budget. used is what was held and spent since the period began.
func (a Account) WithBudget(p Period, limit, used Micros, now time.Time) (Account, error) {
	if p == PeriodNone {
		a.Budget = Budget{}
		return a, nil
	}
	if limit < 0 || limit > MaxAmount {
		return a, ErrInvalidAmount
	}
	a.Budget = Budget{Period: p, Limit: limit, Used: used, StartAt: p.Start(now)}
	return a, nil
}

// Grant adds to what the tenant may spend. key names the cause: "opening", or an operator's key.
func Grant(a Account, key string, amount Micros, note string, now time.Time) (Change, error) {
	if amount <= 0 || amount > MaxAmount {
		return Change{}, ErrInvalidAmount
	}
	return Change{Account: a}.with(Transfer{
		Kind: KindGrant, Key: "grant:" + key, Note: note, Grants: -amount, Available: amount,
	}, now), nil
}

// Granted is the answer to a grant.
type Granted struct {
	Transfer  TransferID
	Available Micros
}
