package reviewer

import (
	"errors"
	"time"
)

// Errors that callers branch on; the rpc package maps the first to its stable reason.
var (
	// ErrNotFound: no such attempt, or none that the tenant may see.
	ErrNotFound = errors.New("no such attempt")
	// ErrNotOwner: the attempt belongs to another claim.
	ErrNotOwner = errors.New("the attempt belongs to another claim")
	// ErrClosed: the attempt ended otherwise before.
	ErrClosed = errors.New("the attempt has ended")
	// ErrNotStarted: what was to end has never begun.
	ErrNotStarted = errors.New("the attempt was not started")
	// ErrStarted: what was to be voided has begun.
	ErrStarted = errors.New("the attempt was started")
	// ErrExhausted: the run has used all of its attempts.
	ErrExhausted = errors.New("the run's attempts are used up")
	// ErrEngineRunning: another claim's attempt is at work on the target.
	ErrEngineRunning = errors.New("another attempt is at work on the target")
	// ErrLeaseLives: the attempt is no orphan, its claim may live.
	ErrLeaseLives = errors.New("the attempt's claim may still be alive")
	// ErrAway: a service did not answer, or could not do the work now. It may have been done.
	ErrAway = errors.New("service away")
)

// FencedError says that the scheduler turned a write away, and with it ended the claim. Reason is its
// first: CLAIM_LOST, STALE_GENERATION, LIFECYCLE_ENDED, RUN_SUPERSEDED, LEASE_EXPIRED.
type FencedError struct{ Reason string }

func (e *FencedError) Error() string { return "fenced: " + e.Reason }

// OverBudgetError says that the ledger holds nothing for the attempt.
type OverBudgetError struct{ RetryAfter time.Duration }

func (e *OverBudgetError) Error() string { return "over budget" }

// SourceKind is what GitHub's failure to answer means for the claim.
type SourceKind string

// The kinds.
const (
	SourceAway      SourceKind = "away"      // nothing wrong with the target: ask again soon
	SourceThrottled SourceKind = "throttled" // the installation has to wait
	SourceSuspended SourceKind = "suspended" // the installation gives no token
	SourceDenied    SourceKind = "denied"    // GitHub refuses: a permission, or our credentials
)

// SourceError is a read of GitHub that failed.
type SourceError struct {
	Kind       SourceKind
	Reason     string        // a stable word
	RetryAfter time.Duration // 0: no advice
	Err        error
}

func (e *SourceError) Error() string { return "github " + string(e.Kind) + ": " + e.Reason }
func (e *SourceError) Unwrap() error { return e.Err }
