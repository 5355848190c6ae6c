package ingest

import "time"

// Attempt is one entry of the App's delivery log: one POST of a delivery, and how it was answered.
type Attempt struct {
	ID             int64
	GUID           string // the delivery's
	At             time.Time
	Status         int
	Event          string
	Action         string
	InstallationID int64
	RepositoryID   int64
}

// AttemptOutcome is what an attempt's answer means for asking again.
type AttemptOutcome string

// The outcomes.
const (
	AttemptDelivered AttemptOutcome = "delivered" // a 2xx of ours follows the commit of the receipt
	AttemptRefused   AttemptOutcome = "refused"   // by rule: the same bytes would be refused again
	AttemptFailed    AttemptOutcome = "failed"    // it didn't come, or could not be stored
)

// Outcome sorts an attempt by its status. The statuses of a rule are those of the webhook endpoint; any
// other comes from what stands before it, or from GitHub, which shows 502 and 504 where nobody answered.
func (a Attempt) Outcome() AttemptOutcome {
	switch a.Status {
	case 400, 401, 405, 409, 413, 415:
		return AttemptRefused
	}
	if a.Status >= 200 && a.Status < 300 {
		return AttemptDelivered
	}
	return AttemptFailed
}

// Missed is a delivery that failed and has no receipt, and what was done about it.
type Missed struct {
	GUID    string
	Attempt int64 // the newest known: what a redelivery names
	Tries   int   // redeliveries asked for
	Event   string
	Action  string
}

// MissedState is how far a missed delivery has come.
type MissedState string

// The states of a missed delivery. All but the first have ended it.
const (
	MissedWaiting   MissedState = "waiting"
	MissedRecovered MissedState = "recovered" // it has a receipt
	MissedRefused   MissedState = "refused"   // by rule
	MissedGivenUp   MissedState = "given_up"  // after as many tries as the setting allows
	MissedExpired   MissedState = "expired"   // GitHub holds it no longer
)

// MissedEnds counts the missed deliveries that ended by themselves.
type MissedEnds struct{ Recovered, GivenUp int64 }

// Pass is how far a pass through the delivery log has come.
type Pass struct {
	Cursor string    // where it goes on, empty: at the top
	Seen   time.Time // what is older has been looked at; zero: nothing has
}

// Newest reduces a page of the log to what is decided by: of each delivery its newest attempt, where none of
// them was delivered, and the ids of those that were.
func Newest(list []Attempt) (failed []Attempt, delivered []string) {
	newest, done := map[string]Attempt{}, map[string]bool{}
	for _, a := range list {
		if a.Outcome() == AttemptDelivered {
			done[a.GUID] = true
		}
		if n, ok := newest[a.GUID]; !ok || a.ID > n.ID {
			newest[a.GUID] = a
		}
	}
	for _, a := range list {
		if done[a.GUID] || newest[a.GUID].ID != a.ID {
			continue
		}
		failed = append(failed, a)
	}
	for guid := range done {
		delivered = append(delivered, guid)
	}
	return failed, delivered
}
