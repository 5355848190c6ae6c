package ingest

// RequestState is where a request stands.
type RequestState string

// The states of a request.
const (
	RequestWaiting RequestState = "waiting"
	RequestRunning RequestState = "running"
	RequestDone    RequestState = "done"
	RequestReused  RequestState = "reused"
	RequestSkipped RequestState = "skipped"
	RequestRefused RequestState = "refused"
)

// Followed is what became of a request. Preview is what a dry run would have posted.
type Followed struct {
	State      RequestState
	Reason     string
	Target     string
	Run        string
	CostMicros int64
	Preview    string
}

// Decided is a decision of the scheduler, as far as requests are followed by it.
type Decided struct {
	Kind   string
	Reason string
	Target string
	Run    string
}

// Run is the scheduler's run of a request. Zero: it is gone with its lifecycle.
type Run struct {
	State      string
	Reason     string
	CostMicros int64
}

// answers are the decisions by which a request ends.
var answers = map[string]RequestState{
	"review": RequestRunning, "reused": RequestReused, "skipped": RequestSkipped, "refused": RequestRefused,
}

// FollowedBy finds the decision that ended a request among those that name it, newest first. Without one it
// waits.
func FollowedBy(decisions []Decided) Followed {
	f := Followed{State: RequestWaiting}
	for _, d := range decisions {
		f.Target = d.Target
		if state, ok := answers[d.Kind]; ok {
			f.State, f.Run, f.Reason = state, d.Run, d.Reason
			return f
		}
	}
	return f
}

// OfRun goes on from the answer to the run: its result, or why it has none. latest are the target's newest
// decisions, newest first.
func (f Followed) OfRun(run Run, latest []Decided) Followed {
	switch {
	case f.Run == "":
	case f.State == RequestReused:
		// Nothing was spent for it.
	case f.State != RequestRunning:
	case run.State == "done":
		f.State, f.Reason, f.CostMicros = RequestDone, "", run.CostMicros
	case run.State == "refused":
		f.State, f.Reason = RequestRefused, run.Reason
	case run == (Run{}):
		f.State, f.Reason = RequestDone, "lifecycle_ended"
	default:
		f = f.underWay(latest)
	}
	return f
}

// underWay says how an open run stands: given up for another comparison, or held up.
func (f Followed) underWay(latest []Decided) Followed {
	for _, d := range latest {
		if _, answer := answers[d.Kind]; answer && d.Run != f.Run {
			f.State, f.Reason = RequestSkipped, "superseded"
			return f
		}
		if d.Run != f.Run {
			continue
		}
		switch d.Kind {
		case "over_budget", "released", "lapsed", "fenced":
			f.Reason = d.Kind
		}
		return f
	}
	return f
}
