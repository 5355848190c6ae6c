package scheduler

// DecisionKind is the stable word for what was decided.
type DecisionKind string

const (
	DecisionDue            DecisionKind = "due"           // an activity made the target due
	DecisionCoalesced      DecisionKind = "coalesced"     // it was due already, and unclaimed
	DecisionAlreadySeen    DecisionKind = "already_seen"  // the activity brings nothing new
	DecisionReview         DecisionKind = "review"        // a run was given out
	DecisionReused         DecisionKind = "reused"        // an earlier result stands
	DecisionSkipped        DecisionKind = "skipped"       // nothing to review
	DecisionReadLags       DecisionKind = "read_lags"     // GitHub answered with something older
	DecisionReadBelieved   DecisionKind = "read_believed" // it did so for too long to be doubted
	DecisionAccepted       DecisionKind = "accepted"      // the run has its result
	DecisionRefused        DecisionKind = "refused"       // the run gets none, whatever is tried
	DecisionOverBudget     DecisionKind = "over_budget"   // the ledger held nothing
	DecisionReleased       DecisionKind = "released"      // the claim ended without an answer
	DecisionLapsed         DecisionKind = "lapsed"        // its lease ran out
	DecisionFenced         DecisionKind = "fenced"        // a worker's write was refused, which ended its claim
	DecisionSuperseded     DecisionKind = "superseded"    // the page was taken back
	DecisionPublished      DecisionKind = "published"     // the page says what it should
	DecisionNotPublished   DecisionKind = "not_published" // its delivery ended otherwise
	DecisionDeparted       DecisionKind = "departed"      // its repository is another tenant's, or out of reach
	DecisionLifecycleEnded DecisionKind = "lifecycle_ended"
)

// Decision is an audited "we did" or "we did not, because". The store adds its number and time.
type Decision struct {
	Kind       DecisionKind
	Reason     string // a stable word
	Detail     string // a sentence for people
	Generation Generation
	Lifecycle  Lifecycle
	Epoch      Epoch
	Run        RunID
	Claim      ClaimID
	Activity   ActivityID
	Request    RequestID // the manual request that ends by this decision, or that made the target due
	Alert      bool      // someone should look
}

// decide adds a decision about the target as it stands now.
func (e *Effects) decide(t Target, d Decision) {
	d.Generation, d.Lifecycle, d.Epoch = t.Generation, t.Lifecycle, t.Epoch
	e.Decisions = append(e.Decisions, d)
}

// answerRequests ends the waiting requests by the decision, each by one that names it; where none
// waits, the decision stands alone.
func (t *Target) answerRequests(d Decision, e *Effects) {
	for _, q := range t.Requests {
		d.Request = q.ID
		e.decide(*t, d)
	}
	if len(t.Requests) == 0 {
		e.decide(*t, d)
	}
	t.Requests = nil
}
