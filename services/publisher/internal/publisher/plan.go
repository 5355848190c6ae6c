package publisher

import (
	"slices"
	"time"
)

// reasonNotPermitted is of intents that ended for want of a permission.
var reasonNotPermitted = "refused_" + Failure{Reason: ReasonNotPermitted}.Word()

// Step is the one thing that may be done next with an intent.
type Step int

// The steps.
const (
	StepNone     Step = iota // it has ended
	StepLater                // it is not due
	StepLookUp               // list the page to its end
	StepReadBack             // read the output by its id
	StepDrop                 // a later epoch is shown already
	StepNothing              // there is nothing to take back
	StepCreate
	StepEdit
)

// Next says what an intent needs, before anything else may happen to it. What may have been sent comes
// first, whatever is current now; then a surface that is not known to be there is looked for.
func (r Rules) Next(c Cell, now time.Time) Step {
	i, s := c.Intent, c.Surface
	switch {
	case i.Ended():
		return StepNone
	case i.Available.After(now):
		return StepLater
	case i.State == StateSending && now.Before(i.SentAt.Add(r.Grace)):
		return StepLater
	case i.State == StateSending && i.Op == OpEdit:
		return StepReadBack
	case i.State == StateSending:
		return StepLookUp
	case s.Shown.Compare(i.At) > 0:
		return StepDrop
	case s.GitHubID != 0:
		return StepEdit
	case !c.Absent:
		return StepLookUp
	case !i.Creates():
		return StepNothing
	default:
		return StepCreate
	}
}

// Work is an epoch with its intents. Last is the highest epoch that its target has, as far as is known.
type Work struct {
	Epoch Epoch
	Cells []Cell
	Last  Position
}

// Ended tells whether all of the epoch's intents have ended.
func (w Work) Ended() bool {
	for _, c := range w.Cells {
		if !c.Intent.Ended() {
			return false
		}
	}
	return true
}

// OnPage tells whether anything is still to be said on the pull request's page, beside its head's commit.
func (w Work) OnPage() bool {
	return slices.ContainsFunc(w.Cells, func(c Cell) bool { return !c.Intent.Ended() && !c.Intent.Ref.OnCommit() })
}

// NotPermitted tells that the page may not be written, nor read: what stands on the head's commit is left.
func (w Work) NotPermitted() bool {
	return !w.OnPage() && slices.ContainsFunc(w.Cells, func(c Cell) bool {
		return !c.Intent.Ref.OnCommit() && c.Intent.State == StateEnded && c.Intent.Reason == reasonNotPermitted
	})
}

// MayBeOut returns until when something of the epoch may still take effect on GitHub unseen, zero where
// nothing can. Epochs after it wait for that.
func (w Work) MayBeOut() time.Time {
	var until time.Time
	for _, c := range w.Cells {
		if c.Intent.State == StateSending && c.Intent.Available.After(until) {
			until = c.Intent.Available
		}
	}
	return until
}

// Waits tells an intent that is not to be written yet, and until when at least: the comment says what became of the
// review, and a check run concludes once the comment's intent has ended.
func (w Work) Waits(i Intent) (until time.Time, waits bool) {
	if i.Rank <= RankReview || i.Rank > RankStatus {
		return time.Time{}, false
	}
	for _, c := range w.Cells {
		first := c.Intent
		if first.Rank >= min(i.Rank, RankCheckRun) || first.Ended() {
			continue
		}
		waits = true
		if first.Available.After(until) {
			until = first.Available
		}
	}
	return until, waits
}

// Summary is the epoch's intent for the comment.
func (w Work) Summary() Intent {
	for _, c := range w.Cells {
		if c.Intent.Ref.Kind == SurfaceSummary {
			return c.Intent
		}
	}
	return Intent{}
}

// Publication is how the delivery of an epoch ended.
type Publication struct {
	Delivered  bool
	Reason     string
	CommentID  int64
	CommentURL string
	CheckRunID int64
}

// deciding are the surfaces that tell whether an epoch is delivered: the first that had anything to say.
var deciding = [][]SurfaceKind{{SurfaceSummary}, {SurfaceReview}, {SurfaceCheckRun, SurfaceStatus}, {SurfaceReaction, SurfaceReply}}

// Publication sums up the ended intents of an epoch: it is delivered when its comment is, or where it had none to
// change, its review or its check run; what did not succeed beside that is the reason.
func (w Work) Publication() Publication {
	var p Publication
	decided := false
	for _, kinds := range deciding {
		spoke := false
		for _, c := range w.Cells {
			i := c.Intent
			if i.Rank >= RankTakeBack || !slices.Contains(kinds, i.Ref.Kind) {
				continue
			}
			shown := i.State == StateConfirmed || i.Reason == ReasonNothingNew
			spoke = spoke || i.Reason != ReasonNothing
			p.Delivered = p.Delivered || shown && !decided
			if !shown && p.Reason == "" {
				p.Reason = i.Reason
			}
			p.locate(i)
		}
		decided = decided || spoke
	}
	return p
}

func (p *Publication) locate(i Intent) {
	switch i.Ref.Kind {
	case SurfaceSummary:
		p.CommentID, p.CommentURL = i.GitHubID, i.URL
	case SurfaceCheckRun:
		p.CheckRunID = i.GitHubID
	case SurfaceReview, SurfaceStatus, SurfaceReaction, SurfaceReply, SurfaceRemark:
	}
}
