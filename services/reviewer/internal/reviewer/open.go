package reviewer

import "time"

// Ask is a claim that wants to review a run.
type Ask struct {
	Attempt   AttemptID // fresh, for an attempt that may have to be made
	Tenant    TenantID
	Fence     Fence
	Run       Run
	Engine    string
	Fork      bool
	DiffBytes int64
	Reserve   Micros        // the most the attempt may cost
	Lease     time.Duration // the most that can be left of the claim's
	Trace     string
	MaxPerRun int
}

// OpeningKind is how a claim goes on with its run.
type OpeningKind string

// The kinds.
const (
	OpenFresh     OpeningKind = "fresh"     // a new attempt was made
	OpenAdopted   OpeningKind = "adopted"   // a finished attempt has the result
	OpenExhausted OpeningKind = "exhausted" // the run has used all its attempts
)

// Opening is the answer to an Ask. Attempt is the fresh or the adopted one.
type Opening struct {
	Kind    OpeningKind
	Attempt Attempt
}

// Open decides how a claim goes on: it takes over a finished attempt of the same diff and ordinal if
// there is one, refuses where the run's attempts are used up, and else makes a new one. known are
// the run's attempts, the target's finished ones of the same diff, and the claim's own. A new one gets
// its times where it is written.
func (q Ask) Open(known []Attempt) Opening {
	var adopt *Attempt
	used := 0
	for _, a := range known {
		if a.Claim == q.Fence.Claim && a.State == StateCreated {
			return Opening{Kind: OpenFresh, Attempt: a} // asked again after a lost answer
		}
		if q.adopts(a) && (adopt == nil || a.EndedAt.After(adopt.EndedAt)) {
			adopt = &a
		}
		if a.Run == q.Run.ID && a.Number > 0 {
			used++
		}
	}
	switch {
	case adopt != nil:
		return Opening{Kind: OpenAdopted, Attempt: *adopt}
	case used >= q.MaxPerRun:
		return Opening{Kind: OpenExhausted}
	}
	return Opening{Kind: OpenFresh, Attempt: q.fresh()}
}

// adopts says whether the attempt's result is that of the asked run: the same diff of the same
// target in the same lifecycle, and the same re-run of it.
func (q Ask) adopts(a Attempt) bool {
	return a.State == StateFinished && a.Target == q.Fence.Target && a.Lifecycle == q.Run.Lifecycle &&
		a.MergeBase == q.Run.MergeBase && a.HeadSHA == q.Run.HeadSHA && a.Ordinal == q.Run.Ordinal
}

func (q Ask) fresh() Attempt {
	return Attempt{
		ID: q.Attempt, Tenant: q.Tenant, Target: q.Fence.Target, Lifecycle: q.Run.Lifecycle,
		Run: q.Run.ID, Ordinal: q.Run.Ordinal, Claim: q.Fence.Claim, Generation: q.Fence.Generation,
		BaseSHA: q.Run.BaseSHA, HeadSHA: q.Run.HeadSHA, MergeBase: q.Run.MergeBase,
		Fork: q.Fork, DiffBytes: q.DiffBytes, Engine: q.Engine,
		State: StateCreated, Reserved: q.Reserve, Trace: q.Trace,
	}
}
