package reviewer

import "time"

// State is where an attempt stands.
type State string

// The states. Created and Started are open, the others final.
const (
	StateCreated   State = "created"   // its row exists, nothing is spent
	StateStarted   State = "started"   // money is held, the engine is or was called
	StateFinished  State = "finished"  // has a result
	StateFailed    State = "failed"    // the engine gave none
	StateCancelled State = "cancelled" // the target moved; its number was given back
	StateVoided    State = "voided"    // never started
	StateExpired   State = "expired"   // started under a claim that was lost
)

// Attempt is one bounded engine call for a run, and its reservation.
type Attempt struct {
	ID         AttemptID
	Tenant     TenantID
	Target     TargetID
	Lifecycle  int64
	Run        RunID
	Ordinal    int
	Claim      ClaimID
	Generation int64

	BaseSHA   string
	HeadSHA   string
	MergeBase string
	Fork      bool
	DiffBytes int64 // given to the engine
	Engine    string

	Number   int // from 1, taken by the start; 0 before, and where it was given back
	State    State
	Reserved Micros // the most it may cost
	Cost     Micros
	Estimate bool // nobody measured Cost
	Result   Result
	Seen     Seen   // of a result
	Reason   string // a stable word: why it failed, was cancelled, voided or expired
	Trace    string // W3C traceparent

	LeaseUntil time.Time // by the database's clock: the claim is over after it, if it isn't before
	CreatedAt  time.Time
	StartedAt  time.Time
	EndedAt    time.Time
}

// Open says that the attempt has not ended.
func (a Attempt) Open() bool { return a.State == StateCreated || a.State == StateStarted }

// Spent is what an engine call cost, as far as anyone knows.
type Spent struct {
	Cost  Micros
	Known bool // false: the reservation stands for the cost
}

// EndKind is how an attempt ends without a result.
type EndKind string

// The kinds.
const (
	EndFailed    EndKind = "failed"
	EndCancelled EndKind = "cancelled" // because the target moved: gives the number back
	EndVoided    EndKind = "voided"    // before it was started
)

// End closes an attempt without a result.
type End struct {
	Kind   EndKind
	Reason string
	Spent  Spent // unless voided
	Held   bool  // of a voided one: the ledger may hold money for it
}

// Effects are messages that leave with the transition, in its transaction.
type Effects struct {
	Settle *Settle
	Void   *Void
}

// Settle tells the ledger what an attempt cost.
type Settle struct {
	Attempt  AttemptID
	Run      RunID
	Amount   Micros
	Estimate bool
	Outcome  string
}

// Key names the cause: an estimate and the measured figure that corrects it are two.
func (s Settle) Key() string {
	if s.Estimate {
		return "settle:" + s.Attempt.String() + ":estimate"
	}
	return "settle:" + s.Attempt.String() + ":measured"
}

// Void tells the ledger to hold nothing for an attempt.
type Void struct {
	Attempt AttemptID
	Run     RunID
	Reason  string
}

// Key names the cause.
func (v Void) Key() string { return "void:" + v.Attempt.String() }

// ended closes a started attempt and settles it.
func (a Attempt) ended(state State, reason string, spent Spent, now time.Time) (Attempt, Effects) {
	a.State, a.Reason, a.EndedAt = state, reason, now
	a.Cost, a.Estimate = spent.Cost, !spent.Known
	if !spent.Known {
		a.Cost = a.Reserved
	}
	return a, Effects{Settle: &Settle{Attempt: a.ID, Run: a.Run, Amount: a.Cost, Estimate: a.Estimate, Outcome: string(state)}}
}

// corrected replaces the estimate of an expired attempt by what was measured after all. It stays
// expired: its claim is lost, so that nothing of it is published.
func (a Attempt) corrected(spent Spent) (Attempt, Effects) {
	if !a.Estimate || !spent.Known {
		return a, Effects{}
	}
	a.Cost, a.Estimate = spent.Cost, false
	return a, Effects{Settle: &Settle{Attempt: a.ID, Run: a.Run, Amount: a.Cost, Outcome: string(a.State)}}
}

// voided closes an attempt that was never started.
func (a Attempt) voided(reason string, held bool, now time.Time) (Attempt, Effects) {
	a.State, a.Reason, a.EndedAt = StateVoided, reason, now
	if !held {
		return a, Effects{}
	}
	return a, Effects{Void: &Void{Attempt: a.ID, Run: a.Run, Reason: reason}}
}

// Orphan names an open attempt whose claim's lease has passed.
type Orphan struct {
	Tenant  TenantID
	Attempt AttemptID
	Trace   string
}

// AttemptFilter narrows a list; nil is any.
type AttemptFilter struct {
	Run    *RunID
	Target *TargetID
}

// AttemptCursor is a place in a list of attempts, newest first.
type AttemptCursor struct {
	CreatedAt time.Time
	ID        AttemptID
}
