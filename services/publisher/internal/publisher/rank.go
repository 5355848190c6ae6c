package publisher

import "time"

// Rank is the order in which an epoch's intents are written.
type Rank int

// The ranks. What is taken back, and what is marked as fixed, is output of earlier epochs.
const (
	RankReview Rank = iota + 1
	RankSummary
	RankCheckRun
	RankStatus
	RankReaction
	RankReply
	RankTakeBack
	RankRemark
)

// RankOf is the rank of what an epoch says of itself.
func RankOf(r Ref) Rank {
	switch r.Kind {
	case SurfaceReview:
		return RankReview
	case SurfaceSummary:
		return RankSummary
	case SurfaceCheckRun:
		return RankCheckRun
	case SurfaceStatus:
		return RankStatus
	case SurfaceReaction:
		return RankReaction
	case SurfaceReply:
		return RankReply
	case SurfaceRemark:
	}
	return RankRemark
}

// Creates tells whether the intent's output is made where there is none: not to take something back.
func (i Intent) Creates() bool {
	if i.Ref.Kind == SurfaceSummary {
		return i.Kind.ShowsResult()
	}
	return i.Rank < RankTakeBack
}

// opens tells whether the intent, once confirmed, leaves something that is to be taken back.
func (i Intent) opens() bool {
	switch {
	case i.Rank >= RankTakeBack:
		return false
	case i.Ref.Kind == SurfaceReview:
		return i.Kind.ShowsResult()
	case i.Ref.Kind == SurfaceCheckRun, i.Ref.Kind == SurfaceStatus:
		return i.Kind.Progress()
	}
	return false
}

// refused is what may be done instead of a write that GitHub refuses: it names neither the comment that spoils a
// whole review, nor a permission that it misses.
func (c Cell) refused(f Failure) []Effect {
	i := c.Intent
	switch {
	case i.Ref.Kind == SurfaceReview && i.Op == OpCreate && f.Reason == ReasonUnprocessable && i.Remarks.Len() > 1:
		return []Effect{Bisect{}}
	case i.Ref.Kind == SurfaceCheckRun && i.Rank < RankTakeBack && f.Reason == ReasonNotPermitted:
		return []Effect{FallBack{}}
	}
	return nil
}

// unanswered ends a review that GitHub never came to: it may be too large for it, and nothing else of the epoch is to
// wait for it for ever.
func (c Cell) unanswered(now time.Time) (Cell, []Effect, error) {
	var halves []Effect
	if c.Intent.Remarks.Len() > 1 {
		halves = []Effect{Bisect{}}
	}
	return c.end(ReasonUnanswered, now), halves, nil
}
