package publisher

// Reasons of failures that more is made of than their class says. What GitHub refuses otherwise keeps the reason
// that it was sorted by.
const (
	// FailUnprocessable: a review, or an entry of it, is none that GitHub takes. It names no entry.
	FailUnprocessable = "UNPROCESSABLE"
	// FailNotPermitted: the App was not granted what the call needs.
	FailNotPermitted = "NOT_PERMITTED"
	// FailPendingReview: an unsubmitted review of ours was in the way. It has been removed; the call had no effect.
	FailPendingReview = "PENDING_REVIEW"
	// FailCommitUnknown: GitHub does not know the commit, which right after a push may only be not yet.
	FailCommitUnknown = "COMMIT_UNKNOWN"
	// FailNoRoom: what people wrote into our comment leaves no room for what we have to say.
	FailNoRoom = "NO_ROOM"
)
