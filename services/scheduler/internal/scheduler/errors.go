package scheduler

import "errors"

// Why a fenced write is refused. The order of the declarations is the order of precedence.
var (
	ErrClaimLost       = errors.New("the claim is not this worker's any more")
	ErrStaleGeneration = errors.New("the target moved since the claim")
	ErrLifecycleEnded  = errors.New("the target's lifecycle has ended")
	ErrRunSuperseded   = errors.New("the claim has resolved another run")
	ErrLeaseExpired    = errors.New("the lease has run out")
)

var (
	// ErrNotFound: no such target or run, or none that the tenant may see.
	ErrNotFound = errors.New("not found")
	// ErrAmbiguous: what was asked for names several targets.
	ErrAmbiguous = errors.New("this names several targets: name one by its id")
	// ErrNotClaimable is the answer to a claim of a target that is not due, not yet, paused or claimed.
	ErrNotClaimable = errors.New("the target can't be claimed")
	// ErrInvalidReading is a reading that names no comparison to decide about.
	ErrInvalidReading = errors.New("the reading names no comparison")
	// ErrWrongRun is a run that is not the one the claim has resolved.
	ErrWrongRun = errors.New("the run is not the claim's")
	// ErrInvalidRequest is an activity of a manual request that names none.
	ErrInvalidRequest = errors.New("the activity names no request")
	// ErrInvalidOutcome is an outcome that is neither a result, nor a refusal, nor an empty budget.
	ErrInvalidOutcome = errors.New("the outcome says nothing")
	// ErrNotAtRest is the answer to the end of a lifecycle that still has work or is too young.
	ErrNotAtRest = errors.New("the target is not at rest")
	// ErrInvalidPause is a pause without scope or reason, or one without end that no operator set.
	ErrInvalidPause = errors.New("the pause is not valid")
)
