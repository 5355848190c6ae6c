package reviewer

import (
	"fmt"
	"time"
)

// Change is an attempt as it is to be saved, with what leaves beside it.
type Change struct {
	Attempt Attempt
	Effects Effects
}

// reasonLeaseLost is why an orphan was closed.
const reasonLeaseLost = "lease_lost"

// Start begins an attempt under its claim and takes the smallest free number of its run, at most
// limit. others are the run's other attempts and the open ones of the target, all locked. The
// claim was proved alive after the attempt was created, so whatever other claims created before it
// is an orphan, and closed here. lease is the most that can be left of the claim's. Started before by
// the same claim: answered as then.
func (a Attempt) Start(claim ClaimID, others []Attempt, limit int, lease time.Duration, now time.Time) (Attempt, []Change, error) {
	switch {
	case a.Claim != claim:
		return a, nil, ErrNotOwner
	case a.State == StateStarted:
		return a, nil, nil
	case a.State != StateCreated:
		return a, nil, fmt.Errorf("%w: it is %s", ErrClosed, a.State)
	}
	var closed []Change
	taken := make(map[int]bool)
	for _, o := range others {
		if o.ID == a.ID {
			continue
		}
		if o.Run == a.Run && o.Number > 0 {
			taken[o.Number] = true
		}
		switch {
		case !o.Open() || o.Target != a.Target || o.Claim == a.Claim:
		case o.CreatedAt.Before(a.CreatedAt):
			orphan, e := o.orphaned(now)
			closed = append(closed, Change{Attempt: orphan, Effects: e})
		case o.State == StateStarted:
			return a, nil, ErrEngineRunning
		}
	}
	for n := 1; n <= limit; n++ {
		if !taken[n] {
			a.Number, a.State, a.StartedAt, a.LeaseUntil = n, StateStarted, now, now.Add(lease)
			return a, closed, nil
		}
	}
	return a, nil, ErrExhausted
}

// Finish ends a started attempt with its result: a compare-and-swap on state and claim. After the
// attempt expired the result is kept as evidence and its cost corrects the estimate, but the attempt
// stays expired. Finished before: answered as then.
func (a Attempt) Finish(claim ClaimID, r Report, now time.Time) (Attempt, Effects, error) {
	if a.Claim != claim {
		return a, Effects{}, ErrNotOwner
	}
	spent := Spent{Cost: r.Cost, Known: true}
	switch a.State {
	case StateStarted:
		a.Result, a.Seen = r.Result(), r.Seen
		a, e := a.ended(StateFinished, "", spent, now)
		return a, e, nil
	case StateFinished:
		return a, Effects{}, nil
	case StateExpired:
		if a.Estimate {
			a.Result, a.Seen = r.Result(), r.Seen
		}
		a, e := a.corrected(spent)
		return a, e, nil
	case StateCreated:
		return a, Effects{}, ErrNotStarted
	case StateFailed, StateCancelled, StateVoided:
	}
	return a, Effects{}, fmt.Errorf("%w: it is %s", ErrClosed, a.State)
}

// Close ends an attempt without a result, by its own claim. The same end again changes nothing; on an
// expired attempt a known cost corrects the estimate.
func (a Attempt) Close(claim ClaimID, end End, now time.Time) (Attempt, Effects, error) {
	if a.Claim != claim {
		return a, Effects{}, ErrNotOwner
	}
	if end.Kind == EndVoided {
		switch a.State {
		case StateCreated:
			a, e := a.voided(end.Reason, end.Held, now)
			return a, e, nil
		case StateVoided:
			return a, Effects{}, nil
		case StateStarted:
			return a, Effects{}, ErrStarted
		case StateFinished, StateFailed, StateCancelled, StateExpired:
		}
		return a, Effects{}, fmt.Errorf("%w: it is %s", ErrClosed, a.State)
	}
	switch a.State {
	case StateStarted:
		a, e := a.ended(State(end.Kind), end.Reason, end.Spent, now)
		if end.Kind == EndCancelled {
			a.Number = 0
		}
		return a, e, nil
	case State(end.Kind):
		return a, Effects{}, nil
	case StateExpired:
		a, e := a.corrected(end.Spent)
		return a, e, nil
	case StateCreated:
		return a, Effects{}, ErrNotStarted
	case StateFinished, StateFailed, StateCancelled, StateVoided:
	}
	return a, Effects{}, fmt.Errorf("%w: it is %s", ErrClosed, a.State)
}

// Reap closes an orphan: an open attempt whose claim's lease has surely passed, by margin. One that
// has ended meanwhile stays as it is.
func (a Attempt) Reap(margin time.Duration, now time.Time) (Attempt, Effects, error) {
	if !a.Open() {
		return a, Effects{}, nil
	}
	if now.Before(a.LeaseUntil.Add(margin)) {
		return a, Effects{}, ErrLeaseLives
	}
	a, e := a.orphaned(now)
	return a, e, nil
}

// orphaned voids what never started, and settles what did by its reservation: nobody is left who
// could say what it cost.
func (a Attempt) orphaned(now time.Time) (Attempt, Effects) {
	if a.State == StateCreated {
		return a.voided(reasonLeaseLost, true, now)
	}
	return a.ended(StateExpired, reasonLeaseLost, Spent{}, now)
}
