package scheduler

import "slices"

// RunState is how far a run has come.
type RunState string

const (
	RunOpen    RunState = "open"
	RunDone    RunState = "done"    // has its result
	RunRefused RunState = "refused" // gets none, whatever is tried
)

// Run is one exact comparison. Base, head and ordinal identify it within target and lifecycle.
type Run struct {
	ID        RunID
	Lifecycle Lifecycle
	BaseSHA   string
	HeadSHA   string
	Ordinal   int // 0 but for an explicit re-run

	BaseRef   string // as last read
	MergeBase string
	State     RunState
	Result    Result // with RunDone
	TakenFrom RunID  // the run of the same diff whose result this is
	Reason    string // with RunRefused: a stable word
	Detail    string

	OverBudget   bool     // it is on record that nothing was held for it
	Receipted    bool     // the ledger was told how it ended
	ReceiptEpoch Epoch    // by which epoch, the last time
	Delivery     Delivery // of the result, empty where none was to be published
	Trace        string
}

// Verdict is what a review found.
type Verdict string

const (
	VerdictClean    Verdict = "clean"
	VerdictFindings Verdict = "findings"
)

// Counts are the findings of a result by severity.
type Counts struct{ Errors, Warnings, Infos int }

// Result names the attempt whose findings are shown.
type Result struct {
	Attempt    AttemptID
	Claim      ClaimID // that committed it
	Generation Generation
	Verdict    Verdict
	Counts     Counts
	Engine     string
	CostMicros int64 // micro-units of the deployment's currency
	Adopted    bool  // the attempt was finished under an earlier claim
}

// sameDiff says that a run's comparison has the reading's diff: the same commits, or another base
// commit with the same merge base.
func (r Run) sameDiff(read Read) bool {
	return r.HeadSHA == read.Head && (r.BaseSHA == read.BaseSHA || read.MergeBase != "" && r.MergeBase == read.MergeBase)
}

// choice is what to do with a comparison, and the run to do it with.
type choice struct {
	answer Answer
	run    Run
	from   Run // whose result the run takes over, zero if its own
}

// choose picks the run of what was read among those known. Runs of one diff and ordinal are one
// piece of work, whatever their base commit, since the base moves without an event: the highest
// ordinal that is open or has a result counts; a refusal counts where there is neither.
func choose(known []Run, t Target, fresh RunID, rerun bool) choice {
	family := slices.DeleteFunc(slices.Clone(known), func(r Run) bool {
		return r.Lifecycle != t.Lifecycle || !r.sameDiff(t.Read)
	})
	if len(family) == 0 {
		return choice{answer: AnswerReview, run: newRun(t, fresh, 0)}
	}
	last := slices.MaxFunc(family, func(a, b Run) int { return a.Ordinal - b.Ordinal }).Ordinal
	for ordinal := last; ordinal >= 0; ordinal-- {
		rank := slices.DeleteFunc(slices.Clone(family), func(r Run) bool { return r.Ordinal != ordinal })
		settled, state := standing(rank, t.Read.BaseSHA)
		if len(rank) == 0 || state == RunRefused {
			continue
		}
		if rerun && state == RunDone {
			return choice{answer: AnswerReview, run: newRun(t, fresh, last+1)}
		}
		own := ownRun(rank, t, fresh, ordinal)
		switch {
		case state == RunOpen:
			return choice{answer: AnswerReview, run: own}
		case own.State == RunDone:
			return choice{answer: AnswerReused, run: own}
		}
		return choice{answer: AnswerReused, run: own, from: settled}
	}
	if rerun {
		return choice{answer: AnswerReview, run: newRun(t, fresh, last+1)}
	}
	refused, _ := standing(family, t.Read.BaseSHA)
	return choice{answer: AnswerRefused, run: refused}
}

// standing is the run that speaks for several of one diff: a result before a refusal before open
// work, and this base commit before another.
func standing(runs []Run, base string) (Run, RunState) {
	for _, state := range []RunState{RunDone, RunRefused, RunOpen} {
		found := Run{}
		for _, r := range runs {
			if r.State == state && (found.ID.IsZero() || r.BaseSHA == base) {
				found = r
			}
		}
		if !found.ID.IsZero() {
			return found, state
		}
	}
	return Run{}, ""
}

// ownRun is the run of exactly this comparison and ordinal, made new where there is none.
func ownRun(rank []Run, t Target, fresh RunID, ordinal int) Run {
	for _, r := range rank {
		if r.BaseSHA == t.Read.BaseSHA {
			return r
		}
	}
	return newRun(t, fresh, ordinal)
}

func newRun(t Target, id RunID, ordinal int) Run {
	return Run{
		ID: id, Lifecycle: t.Lifecycle, BaseSHA: t.Read.BaseSHA, HeadSHA: t.Read.Head, Ordinal: ordinal,
		BaseRef: t.Read.BaseRef, MergeBase: t.Read.MergeBase, State: RunOpen, Trace: t.Trace,
	}
}

// find returns the run of an id, or one that has nothing but the id.
func find(runs []Run, id RunID) Run {
	if i := slices.IndexFunc(runs, func(r Run) bool { return r.ID == id }); i >= 0 {
		return runs[i]
	}
	return Run{ID: id}
}

// save adds the run's new state, in place of an earlier one.
func (e *Effects) save(run Run) {
	if i := slices.IndexFunc(e.Runs, func(r Run) bool { return r.ID == run.ID }); i >= 0 {
		e.Runs[i] = run
		return
	}
	e.Runs = append(e.Runs, run)
}

// receipt tells the ledger how the run ended, once per epoch: a run that ends twice under one epoch
// would otherwise say two things under one key.
func (e *Effects) receipt(run *Run, epoch Epoch, outcome ReceiptOutcome) {
	if run.Receipted && run.ReceiptEpoch == epoch {
		return
	}
	run.Receipted, run.ReceiptEpoch = true, epoch
	e.Receipts = append(e.Receipts, Receipt{Run: run.ID, Epoch: epoch, Outcome: outcome, Attempt: run.Result.Attempt})
}
