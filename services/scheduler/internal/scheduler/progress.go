package scheduler

import "cmp"

// ProgressState is how far a run is that has no result yet.
type ProgressState string

const (
	ProgressNone    ProgressState = ""
	ProgressQueued  ProgressState = "queued"      // the comparison is known; money and engine are waited for
	ProgressStarted ProgressState = "in_progress" // the engine is called
)

// rank is a state's place in a run's way.
func (s ProgressState) rank() int {
	switch s {
	case ProgressQueued:
		return 1
	case ProgressStarted:
		return 2
	case ProgressNone:
	}
	return 0
}

// Told is the last progress that the publisher was told of. Its zero value is: none.
type Told struct {
	Epoch      Epoch // the target's last then
	Generation Generation
	State      ProgressState
}

// after says that the publisher would show this rather than other.
func (p Told) after(other Told) bool {
	return cmp.Or(cmp.Compare(p.Epoch, other.Epoch), cmp.Compare(p.Generation, other.Generation),
		cmp.Compare(p.State.rank(), other.State.rank())) > 0
}

// Progress tells the publisher how far the run in work is. It is no epoch, and changes nothing of what
// the page should say: it gets lost in favour of whatever is said next.
type Progress struct {
	Told
	Target    TargetID
	Lifecycle Lifecycle
	Run       Run
}

// tell says how far the run in work is, where its result would be published. Nothing is told twice, and
// nothing taken back: of a run that is claimed again, and of another of the same generation, only what
// leads further.
func (t *Target) tell(state ProgressState, run Run, e *Effects) {
	next := Told{Epoch: t.Epoch, Generation: t.Generation, State: state}
	if !t.WantsPublish || run.ID != t.InWork || !next.after(t.Told) {
		return
	}
	t.Told = next
	e.Progress = &Progress{Told: next, Target: t.ID, Lifecycle: t.Lifecycle, Run: run}
}

// showsProgress says that the page may show a run without its end: the decision that ends it has to speak.
func (t Target) showsProgress() bool { return t.Told.State != ProgressNone && t.Told.Epoch == t.Epoch }

// outpaced says that what was heard since the last read speaks against the run in work, or for its end.
func (t Target) outpaced() bool {
	ended := t.Hint.State != StateUnknown && t.Hint.State != StateOpen
	return ended || t.Hint.Contradicts(t.Read.Head, t.Read.BaseRef)
}
