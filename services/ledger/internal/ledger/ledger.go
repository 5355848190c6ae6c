// Package ledger decides what may be held and what was spent. It knows no database and no clock:
// callers pass the account and reservation they locked, and the time they read.
package ledger

import (
	"errors"
	"fmt"
	"time"
)

// Micros is an amount in micro-units (1/1,000,000) of the deployment's one currency.
type Micros int64

// Ids are UUIDs by value; they are made outside the domain.
type (
	// TenantID names who pays.
	TenantID [16]byte
	// AttemptID names one bounded engine call, and so its reservation.
	AttemptID [16]byte
	// RunID names the run an attempt belongs to.
	RunID [16]byte
	// TargetID names the pull request a run belongs to.
	TargetID [16]byte
	// TransferID names one transfer.
	TransferID [16]byte
)

func (id TenantID) String() string  { return format(id) }
func (id AttemptID) String() string { return format(id) }
func (id RunID) String() string     { return format(id) }
func (id TargetID) String() string  { return format(id) }

func (id TransferID) String() string { return format(id) }

func format(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// Errors that callers branch on; the rpc package maps them to stable reasons.
var (
	// ErrInsufficientFunds: less is available than the attempt would hold.
	ErrInsufficientFunds = errors.New("the tenant's available funds do not cover the reservation")
	// ErrBudgetExhausted: the period's budget leaves less than the attempt would hold.
	ErrBudgetExhausted = errors.New("the tenant's budget for this period does not cover the reservation")
	// ErrAttemptClosed: the attempt was settled or voided before, or a tombstone stands in its place.
	ErrAttemptClosed = errors.New("the attempt was already settled or voided")
	// ErrAmountMismatch: the attempt holds another amount, or belongs to another run.
	ErrAmountMismatch = errors.New("the attempt was reserved with another amount or run")
	// ErrInvalidAmount: an amount is negative, or zero where something must be held or granted.
	ErrInvalidAmount = errors.New("the amount is out of range")
	// ErrGrantConflict: the idempotency key was used for another amount.
	ErrGrantConflict = errors.New("the idempotency key was used with another amount")
)

// OverBudgetError says that a reservation was refused for lack of money, and when trying again makes
// sense. It wraps ErrInsufficientFunds or ErrBudgetExhausted.
type OverBudgetError struct {
	Why        error
	RetryAfter time.Duration
}

func (e *OverBudgetError) Error() string { return e.Why.Error() }
func (e *OverBudgetError) Unwrap() error { return e.Why }

// fundsRetry is when a refusal for lack of funds is worth another try: a grant may come at any time.
const fundsRetry = time.Hour

// MaxAmount bounds a single amount (one billion units), so that no sum of balances can overflow.
const MaxAmount Micros = 1_000_000_000_000_000

// Account is one tenant's balances, as locked. Granted = Available + Reserved + Spent + Overruns.
type Account struct {
	Tenant    TenantID
	Granted   Micros
	Available Micros // below zero only by overruns
	Reserved  Micros
	Spent     Micros
	Overruns  Micros
	Sequence  int64 // of the newest transfer
	Budget    Budget
}

// apply moves the balances by a transfer and numbers it.
func (a Account) apply(t Transfer) (Account, Transfer) {
	a.Granted -= t.Grants
	a.Available += t.Available
	a.Reserved += t.Reserved
	a.Spent += t.Spent
	a.Overruns += t.Overruns
	a.Sequence++
	t.Sequence = a.Sequence
	return a, t
}

// TransferKind says what a transfer is for.
type TransferKind string

// The kinds of transfers. An opening transfer is the sum of those whose runs are past retention; it has
// number 0.
const (
	KindOpening TransferKind = "opening"
	KindGrant   TransferKind = "grant"
	KindReserve TransferKind = "reserve"
	KindSettle  TransferKind = "settle"
	KindVoid    TransferKind = "void"
	KindCorrect TransferKind = "correct"
	KindOverrun TransferKind = "overrun"
)

// Transfer is one append-only entry: what it adds to each account. The five sum to zero.
type Transfer struct {
	ID        TransferID // set by the store
	Sequence  int64
	Kind      TransferKind
	Key       string // unique within the tenant: the cause
	Attempt   *AttemptID
	Run       *RunID
	Note      string
	Estimate  bool
	Grants    Micros // the outside that grants come from: goes below zero
	Available Micros
	Reserved  Micros
	Spent     Micros
	Overruns  Micros
	At        time.Time
}

// Balanced reports whether the transfer's postings sum to zero.
func (t Transfer) Balanced() bool {
	return t.Grants+t.Available+t.Reserved+t.Spent+t.Overruns == 0
}

// Change is what a transition asks the store to write, in one transaction.
type Change struct {
	Account     Account
	Reservation *Reservation // nil where none changes
	Transfers   []Transfer
}

func (c Change) with(t Transfer, now time.Time) Change {
	t.At = now
	c.Account, t = c.Account.apply(t)
	c.Transfers = append(c.Transfers, t)
	return c
}
