package reviewer

import "time"

// Fence is what every write to the scheduler carries, echoed as it was given.
type Fence struct {
	Target     TargetID
	Claim      ClaimID
	Generation int64
	Lifecycle  int64
	Run        RunID // zero before the run is resolved
}

// PullRequest is where GitHub has what is to be reviewed.
type PullRequest struct {
	Host         string
	Installation int64
	Repository   int64
	FullName     string // owner/name of the day, for people
	Number       int64
}

// Claim is a target that this worker owns while the lease lasts.
type Claim struct {
	Tenant      TenantID
	Fence       Fence
	PullRequest PullRequest
	Lease       time.Duration // from the moment the answer was made
	Trace       string        // W3C traceparent that the work continues
	Links       []string      // traceparents of what was coalesced
	Delivery    string        // GitHub's GUID, "" where no delivery made the target due
}

// PullState is what a pull request was when it was read.
type PullState string

// The states.
const (
	PullOpen   PullState = "open"
	PullDraft  PullState = "draft"
	PullClosed PullState = "closed"
	PullGone   PullState = "gone"
)

// Reading is a pull request as just read. Only State is set when it is gone; the commits of the
// comparison are there for an open one.
type Reading struct {
	State     PullState
	HeadSHA   string
	BaseRef   string
	BaseSHA   string
	MergeBase string
	UpdatedAt time.Time
	Filtered  string // why it is not to be reviewed although it is open, a stable word; "" where it is
}

// Answer is what to do with a reading.
type Answer string

// The answers. All but the first have ended the claim.
const (
	AnswerReview   Answer = "review"
	AnswerReused   Answer = "reused"
	AnswerSkipped  Answer = "skipped"
	AnswerReadLags Answer = "read_lags"
)

// Resolution is the scheduler's answer to a reading.
type Resolution struct {
	Answer Answer
	Fence  Fence // of all later writes, where the answer is to review
	Run    Run
	Reason string
}

// Run is the comparison to review.
type Run struct {
	ID        RunID
	BaseSHA   string
	HeadSHA   string
	MergeBase string
	Ordinal   int
	Lifecycle int64
}

// Renewal is the answer to a worker that is still at work.
type Renewal struct {
	Lease           time.Duration
	CancelRequested bool
}

// Outcome is how a run ended under a claim; one of the three is set.
type Outcome struct {
	Accepted   *Accepted
	Refused    *Refused
	OverBudget *OverBudget
}

// Accepted names the attempt whose result is the run's.
type Accepted struct {
	Attempt AttemptID
	Result  Result
	Engine  string
	Cost    Micros
	Adopted bool
}

// Refused says that the run gets no result, whatever is tried.
type Refused struct{ Reason, Detail string }

// OverBudget says that nothing was held for the run.
type OverBudget struct {
	Reason     string
	RetryAfter time.Duration
	Needed     Micros
}

// ReleaseReason is why a claim ends without an answer.
type ReleaseReason string

// The reasons.
const (
	ReleaseThrottled      ReleaseReason = "throttled"
	ReleaseDependencyAway ReleaseReason = "dependency_away"
	ReleaseCancelled      ReleaseReason = "cancelled"
	ReleaseAttemptFailed  ReleaseReason = "attempt_failed"
	ReleaseShuttingDown   ReleaseReason = "shutting_down"
)

// Release gives a claim back; the target stays due.
type Release struct {
	Reason     ReleaseReason
	RetryAfter time.Duration // 0: the scheduler's usual pause
	Pause      *Pause        // of the whole installation, nil for none
	Detail     string        // one sentence for people
}

// Pause holds up all claims of an installation.
type Pause struct {
	Reason string
	For    time.Duration
}
