package publisher

// Reasons of failures that more is made of than their class says. What GitHub refuses otherwise keeps the reason
// that it was sorted by.
const (
	// ReasonUnprocessable: a review, or an entry of it, is none that GitHub takes. It names no entry.
	ReasonUnprocessable = "UNPROCESSABLE"
	// ReasonNotPermitted: the App was not granted what the call needs.
	ReasonNotPermitted = "NOT_PERMITTED"
	// ReasonPendingReview: an unsubmitted review of ours was in the way. It has been removed; the call had no effect.
	ReasonPendingReview = "PENDING_REVIEW"
	// ReasonCommitUnknown: GitHub does not know the commit, which right after a push may only be not yet.
	ReasonCommitUnknown = "COMMIT_UNKNOWN"
	// ReasonNoRoom: what people wrote into our comment leaves no room for what we have to say.
	ReasonNoRoom = "NO_ROOM"
)
