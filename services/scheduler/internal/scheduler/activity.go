package scheduler

// Cause is where an activity came from.
type Cause string

const (
	CauseWebhook Cause = "webhook"
	CauseSweep   Cause = "sweep"  // also what the publisher read before it sent
	CauseReplay  Cause = "replay" // an operator's
	CauseRequest Cause = "request"
)

// Activity says that something may have changed on a pull request: a hint without order.
type Activity struct {
	ID          ActivityID
	Cause       Cause
	PullRequest PullRequest
	Hint        Hint    // HeardAt is set when it is recorded
	Request     Request // with CauseRequest
	Delivery    DeliveryID
	Trace       string
}

// Dry says that the activity alone wants nothing published.
func (a Activity) Dry() bool { return a.Cause == CauseRequest && a.Request.Dry }

// Request is one manual ask. It waits until a ResolveRun consumes it.
type Request struct {
	ID    RequestID
	Dry   bool // review, but publish nothing
	Rerun bool // review again even where there is a result
}
