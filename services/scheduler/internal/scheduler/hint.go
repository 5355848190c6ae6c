package scheduler

import "time"

// Content is what a payload or a read says of a pull request.
type Content struct {
	State   State
	Head    string
	BaseRef string
}

// Hint is the newest that was heard of a pull request. Payloads have no order, so GitHub's own
// updated_at decides what is newer.
type Hint struct {
	Content
	Before    string    // the head that a push replaced, empty where the payload names none
	UpdatedAt time.Time // GitHub's, in whole seconds
	HeardAt   time.Time // by the database's clock
}

// Empty says that nothing was heard: a request that names only the pull request.
func (h Hint) Empty() bool { return h.Content == Content{} }

// Newer returns what to believe after other was heard. Of two in one second the later heard wins;
// the same again keeps the time it was first heard, so that repeats can't stretch the trust in it.
func (h Hint) Newer(other Hint) Hint {
	switch {
	case other.Empty(), other.UpdatedAt.Before(h.UpdatedAt):
		return h
	case other.Content == h.Content && other.UpdatedAt.Equal(h.UpdatedAt):
		return h
	}
	return other
}

// Contradicts says that the comparison of head and baseRef is not the one that was heard of. State
// alone never does: closing or merging leaves a page as it is.
func (h Hint) Contradicts(head, baseRef string) bool {
	return h.Head != "" && h.Head != head || h.BaseRef != "" && h.BaseRef != baseRef
}

// Reading is the pull request as a worker has just read it from GitHub.
type Reading struct {
	Content          // State is StateGone after a 404; the rest is empty then
	BaseSHA   string // of the compare answer, never of a payload
	MergeBase string // empty where the two have no common history
	UpdatedAt time.Time
	Filtered  string // why policy leaves it out, empty where it doesn't
}

// Validate refuses a reading that names no comparison.
func (in Reading) Validate() error {
	switch in.State {
	case StateGone:
		return nil
	case StateOpen, StateDraft, StateClosed:
	default:
		return ErrInvalidReading
	}
	if in.Head == "" || in.BaseRef == "" {
		return ErrInvalidReading
	}
	// A closed pull request's branches may be gone, so only one to review needs its comparison.
	if in.State == StateOpen && in.Filtered == "" && in.BaseSHA == "" {
		return ErrInvalidReading
	}
	return nil
}

// Read is a reading that was accepted.
type Read struct {
	Content
	BaseSHA      string
	MergeBase    string
	UpdatedAt    time.Time
	At           time.Time  // zero: nothing was read in this lifecycle
	Generation   Generation // what the read answered
	ServedNotDry bool       // its claim served an activity that wasn't dry
}

// lags says that GitHub may have answered with something older than what was heard. Only a fresh
// hint is worth more than a read: replicas catch up within seconds, and a hint can be wrong.
func (r Rules) lags(h Hint, in Reading, now time.Time) bool {
	return disputes(h, in) && now.Sub(h.HeardAt) < r.HintTrust
}

// disputes says that the reading stands against the hint.
func disputes(h Hint, in Reading) bool {
	switch {
	case h.Empty():
		return false
	case in.State == StateGone:
		return h.State != StateGone
	case h.Before != "" && in.Head == h.Before:
		return true
	}
	return in.UpdatedAt.Before(h.UpdatedAt) && in.Content != h.Content
}

// accept lets the reading replace the hint.
func (t *Target) accept(in Reading, now time.Time) {
	t.State = in.State
	t.Read = Read{
		Content: in.Content, BaseSHA: in.BaseSHA, MergeBase: in.MergeBase, UpdatedAt: in.UpdatedAt,
		At: now, Generation: t.Generation, ServedNotDry: t.WantsPublish,
	}
	t.Hint = Hint{Content: in.Content, UpdatedAt: in.UpdatedAt, HeardAt: now}
}
