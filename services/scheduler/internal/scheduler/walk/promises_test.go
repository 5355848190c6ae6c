package walk

import (
	"errors"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// What holds at every instant, checked from outside: nothing here asks the rules.

// check holds a transition to what holds for every one.
func (s *store) check(last, next scheduler.Target) {
	switch {
	case next.Generation < last.Generation, next.Activities < last.Activities, next.Epoch < last.Epoch,
		next.Lifecycle < last.Lifecycle, next.Resolved < last.Resolved:
		breaks("a counter went back: %+v -> %+v", last, next)
	case next.Resolved > next.Generation:
		breaks("generation %d is resolved, and %d is the last", next.Resolved, next.Generation)
	case next.Generation > next.Resolved && !next.Due():
		breaks("generation %d is forgotten: %d is resolved, and nothing due", next.Generation, next.Resolved)
	case len(next.Requests) > 0 && !next.Due():
		breaks("%d requests wait, and nothing is due", len(next.Requests))
	case next.Due() && !next.Claim.Held() && s.lastRing.Before(next.ReadyAt()):
		breaks("due at %s and the last ring is for %s", next.ReadyAt(), s.lastRing)
	case next.Epoch > last.Epoch+1:
		breaks("two epochs in one transition: %d -> %d", last.Epoch, next.Epoch)
	case outdated(next):
		breaks("the page is left at %+v, and %+v was heard", next.Page, next.Hint)
	case next.Page.Delivery == scheduler.DeliveryDelivered && s.world.publisher.page.epoch < next.Epoch:
		breaks("epoch %d counts as delivered, and the page shows %+v", next.Epoch, s.world.publisher.page)
	}
}

// outdated says that what the page shows of a comparison is known to be of an older one.
func outdated(t scheduler.Target) bool {
	switch t.Page.Kind {
	case scheduler.PageResult, scheduler.PageRefused, scheduler.PageOverBudget:
		return t.Hint.Head != "" && (t.Hint.Head != t.Page.Head || t.Hint.BaseRef != t.Page.BaseRef)
	default:
		return false
	}
}

// checkProgress holds what is told of a run to its being in work, wanted on the page and further than what
// was told before, so that its receiver may know it by its position alone.
func (s *store) checkProgress(last, next scheduler.Target, p scheduler.Progress) {
	at := positionOf(p)
	switch {
	case p.Lifecycle != next.Lifecycle || p.Epoch != next.Epoch || p.Generation != next.Generation:
		breaks("%+v is told of %+v", p, next)
	case p.Run.ID != next.InWork || next.State != scheduler.StateOpen:
		breaks("%+v is told, and %s is in work", p, next.InWork)
	case !s.wants:
		breaks("%+v is told of a run that only dry activities asked for", p)
	case next.Epoch == last.Epoch && next.Page != last.Page:
		breaks("%+v has changed the page without an epoch", p)
	case !at.after(s.lastTold):
		breaks("%+v is told after %+v", p, s.lastTold)
	}
	s.lastTold = at
	s.world.counts[string(p.State)]++
	s.world.say("  progress: %s of %s (generation %d, epoch %d)", p.State, p.Run.HeadSHA, p.Generation, p.Epoch)
}

// checkDecisions holds requests to being answered once, re-runs to a review, and the page to saying
// nothing that only dry activities asked for.
func (s *store) checkDecisions(e scheduler.Effects) {
	if e.Publish != nil && e.Publish.Page.Kind != scheduler.PageSuperseded && !s.wants {
		breaks("epoch %d says %s, which only dry activities asked for", e.Publish.Epoch, e.Publish.Page.Kind)
	}
	for _, d := range e.Decisions {
		switch d.Kind {
		case scheduler.DecisionReview, scheduler.DecisionReused, scheduler.DecisionSkipped, scheduler.DecisionRefused:
			if d.Request != "" {
				s.answered[d.Request]++
			}
			if s.reruns[d.Request] && (d.Kind == scheduler.DecisionReused || d.Kind == scheduler.DecisionRefused) {
				breaks("%s asked for another review and got %s", d.Request, d.Kind)
			}
		default:
		}
		switch d.Kind {
		case scheduler.DecisionAccepted, scheduler.DecisionReused, scheduler.DecisionSkipped, scheduler.DecisionRefused:
			s.wants = false
		default:
		}
	}
}

// checkRun holds runs to their identity.
func (s *store) checkRun(run scheduler.Run) {
	for _, r := range s.runs {
		if r.ID != run.ID && r.Lifecycle == run.Lifecycle && r.BaseSHA == run.BaseSHA && r.HeadSHA == run.HeadSHA && r.Ordinal == run.Ordinal {
			breaks("two runs are one comparison: %+v and %+v", r, run)
		}
	}
}

// fenced holds a worker's write to its fence, and a refused one to changing nothing but the end of
// its own claim.
func (s *store) fenced(last, next scheduler.Target, f scheduler.Fence, e scheduler.Effects, refused error) {
	if next.Claim.Held() && next.Claim.ID == f.Claim && (refused != nil || next.Claim.Run.IsZero()) {
		breaks("a call left its own claim standing: %v", refused)
	}
	if refused == nil {
		s.written(last, next, f)
		return
	}
	s.world.say("  refused: %v", refused)
	if e.Publish != nil || len(e.Runs)+len(e.Receipts) > 0 || next.Epoch != last.Epoch || next.Page != last.Page ||
		next.Resolved != last.Resolved || next.DueAt != last.DueAt || next.Read != last.Read {
		breaks("a refused write has changed more than its claim")
	}
	if last.Claim.ID != f.Claim && (next.Claim != last.Claim || len(e.Decisions)+len(e.Rings) > 0) {
		breaks("a refused write has touched another's claim")
	}
	if last.Claim.ID == f.Claim && errors.Is(refused, scheduler.ErrClaimLost) {
		breaks("a claim that stands is called lost")
	}
}

// written holds a write that took effect to the whole fence.
func (s *store) written(last, next scheduler.Target, f scheduler.Fence) {
	if next.TouchedAt == last.TouchedAt && next.Claim == last.Claim {
		return // a repetition, answered as then
	}
	if last.Claim.ID != f.Claim || last.Generation != f.Generation || last.Lifecycle != f.Lifecycle ||
		last.Claim.Run != f.Run || !last.Claim.LeaseUntil.After(s.world.now) {
		breaks("a write passed its fence %+v at %+v", f, last)
	}
}

// checkGiven holds a run that is given out for review to be one without a result, of an open pull
// request.
func (s *store) checkGiven(run scheduler.Run) {
	if s.target.State != scheduler.StateOpen {
		breaks("a %s pull request is to be reviewed", s.target.State)
	}
	for _, r := range s.runs {
		if r.Lifecycle == run.Lifecycle && r.MergeBase == run.MergeBase && r.HeadSHA == run.HeadSHA &&
			r.Ordinal == run.Ordinal && r.State == scheduler.RunDone {
			breaks("%+v is to be reviewed, and %+v has its result", run, r)
		}
	}
}

// checkPaid holds the engine's starts to what they may cost: each diff and ordinal is finished once
// however often it is come back to, no run has more numbered attempts than allowed, and no claim
// starts two.
func (r *reviewer) checkPaid() {
	finished, numbered, claimed := map[work]int{}, map[scheduler.RunID]int{}, map[scheduler.ClaimID]int{}
	for _, a := range r.attempts {
		claimed[a.claim]++
		if a.state == "finished" {
			finished[a.work]++
		}
		if a.numbered {
			numbered[a.run]++
		}
		if finished[a.work] > 1 || numbered[a.run] > maxAttempts || claimed[a.claim] > 1 {
			breaks("paid too often: %+v, which %d finished, of %d for its run and %d of its claim",
				a, finished[a.work], numbered[a.run], claimed[a.claim])
		}
	}
}
