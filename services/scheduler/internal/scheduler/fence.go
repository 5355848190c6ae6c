package scheduler

import (
	"errors"
	"time"
)

// Fence is what every write of a worker carries. Having owned a target once is no licence to write.
type Fence struct {
	Target     TargetID
	Claim      ClaimID
	Generation Generation
	Lifecycle  Lifecycle
	Run        RunID // zero before ResolveRun
}

// Verdict names the first reason to refuse a write, nil if there is none. It says what the store's
// SQL fence says: a test holds the two against each other.
func (f Fence) Verdict(t Target, now time.Time) error {
	switch {
	case f.Target != t.ID || f.Claim.IsZero() || f.Claim != t.Claim.ID:
		return ErrClaimLost
	case f.Generation != t.Generation:
		return ErrStaleGeneration
	case f.Lifecycle != t.Lifecycle:
		return ErrLifecycleEnded
	case f.Run != t.Claim.Run:
		return ErrRunSuperseded
	case !t.Claim.LeaseUntil.After(now):
		return ErrLeaseExpired
	}
	return nil
}

// Fence is what the holder of the live claim has to carry.
func (t Target) Fence() Fence {
	return Fence{Target: t.ID, Claim: t.Claim.ID, Generation: t.Generation, Lifecycle: t.Lifecycle, Run: t.Claim.Run}
}

// LastEnd remembers how the last claim ended, so that a call repeated after a lost answer is
// answered as it was.
type LastEnd struct {
	Claim   ClaimID
	Call    string // the call that ended it, as Outcome.call and its like name it
	Answer  Answer
	Run     RunID
	Reason  string
	Epoch   Epoch
	Refused error // the fence's, where the call was refused and its claim ended for it
}

// repeated says that the call is the one that ended the last claim.
func (t Target) repeated(f Fence, call string) bool {
	return !f.Claim.IsZero() && t.LastEnd.Claim == f.Claim && t.LastEnd.Call == call
}

// refuse ends the caller's own claim, if it still stands, for a call that the fence turned away:
// nothing may wait for the lease of a worker that has lost its right to write.
func (r Rules) refuse(t Target, f Fence, call string, why error, now time.Time) (Target, Effects) {
	var e Effects
	end := LastEnd{Call: call, Run: f.Run, Refused: why}
	switch {
	case errors.Is(why, ErrClaimLost): // nothing of the caller's stands
	case errors.Is(why, ErrLeaseExpired):
		r.lapse(&t, end, &e, now)
	default:
		t.supersede(end, &e, now)
	}
	return t, e
}

// refusals are the fence's reasons and their words on the wire, in the order of precedence.
var refusals = []struct {
	err  error
	word string
}{
	{ErrClaimLost, "CLAIM_LOST"},
	{ErrStaleGeneration, "STALE_GENERATION"},
	{ErrLifecycleEnded, "LIFECYCLE_ENDED"},
	{ErrRunSuperseded, "RUN_SUPERSEDED"},
	{ErrLeaseExpired, "LEASE_EXPIRED"},
}

// Reason is the stable word for a refusal, empty for any other error.
func Reason(err error) string {
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return r.word
		}
	}
	return ""
}

// Refusal is Reason's inverse, for a row that holds the word; nil for any other.
func Refusal(word string) error {
	for _, r := range refusals {
		if r.word == word {
			return r.err
		}
	}
	return nil
}
