package scheduler

import "time"

// Answer is what became of a worker's call.
type Answer string

const (
	AnswerReview   Answer = "review"    // review this run; the claim goes on
	AnswerReused   Answer = "reused"    // an earlier result stands; the claim has ended
	AnswerSkipped  Answer = "skipped"   // nothing to review; the claim has ended
	AnswerRefused  Answer = "refused"   // refused for good; the claim has ended
	AnswerReadLags Answer = "read_lags" // the read can't be believed yet; the claim has ended

	AnswerAccepted   Answer = "accepted"
	AnswerOverBudget Answer = "over_budget"
	AnswerReleased   Answer = "released"
)

// Resolution is what a worker is to do with the comparison it read. Refused is the fence's reason,
// to be returned once the state is saved: a refused call ends its own claim.
type Resolution struct {
	Answer  Answer
	Run     Run
	Reason  string // a stable word
	Refused error
}

const callResolve = "resolve"

// Resolve decides what to do with a reading, under the claim's fence. known are the lifecycle's runs
// that have the reading's head, and those named by InWork, Claim.Run, Page.Run and LastEnd.Run; fresh is
// the id of a run that may have to be made. It errs on a reading that says nothing, and then there
// is nothing to save.
func (r Rules) Resolve(t Target, f Fence, in Reading, known []Run, fresh RunID, now time.Time) (Target, Resolution, Effects, error) {
	if err := in.Validate(); err != nil {
		return t, Resolution{}, Effects{}, err
	}
	if why := f.Verdict(t, now); why != nil {
		if again, ok := t.resolvedAs(f, known); ok {
			return t, again, Effects{}, nil
		}
		t, e := r.refuse(t, f, callResolve, why, now)
		return t, Resolution{Refused: why}, e, nil
	}
	var e Effects
	if !t.Claim.Run.IsZero() {
		// The fence names the run that this very claim was given.
		return t, Resolution{Answer: AnswerReview, Run: find(known, t.Claim.Run)}, e, nil
	}
	if r.lags(t.Hint, in, now) {
		e.decide(t, Decision{Kind: DecisionReadLags, Reason: string(in.State), Claim: f.Claim})
		t.released(LastEnd{Call: callResolve, Answer: AnswerReadLags}, now.Add(r.ReadLag), &e, now)
		return t, Resolution{Answer: AnswerReadLags}, e, nil
	}
	if disputes(t.Hint, in) {
		e.decide(t, Decision{Kind: DecisionReadBelieved, Reason: string(in.State), Claim: f.Claim})
	}
	t.accept(in, now)
	res := t.resolve(in, known, fresh, &e, now)
	return t, res, e, nil
}

// resolvedAs answers a ResolveRun that has already taken effect as it was answered then.
func (t Target) resolvedAs(f Fence, known []Run) (Resolution, bool) {
	switch {
	case t.repeated(f, callResolve):
		end := t.LastEnd
		res := Resolution{Answer: end.Answer, Reason: end.Reason, Refused: end.Refused}
		if !end.Run.IsZero() {
			res.Run = find(known, end.Run)
		}
		return res, true
	case t.Claim.Held() && t.Claim.ID == f.Claim && f.Run.IsZero() && !t.Claim.Run.IsZero():
		return Resolution{Answer: AnswerReview, Run: find(known, t.Claim.Run)}, true
	}
	return Resolution{}, false
}

// resolve acts on the read that was just accepted.
func (t *Target) resolve(in Reading, known []Run, fresh RunID, e *Effects, now time.Time) Resolution {
	if reason := skipReason(in); reason != "" {
		return t.skip(reason, known, e, now)
	}
	rerun := false
	for _, q := range t.Requests {
		rerun = rerun || q.Rerun
	}
	c := choose(known, *t, fresh, rerun)
	c.run.BaseRef = t.Read.BaseRef
	if c.answer == AnswerReview {
		return t.review(c.run, known, e)
	}
	if c.answer == AnswerRefused {
		return t.refusedAgain(c.run, known, e, now)
	}
	return t.reuse(c, known, e, now)
}

// skipReason says why there is nothing to review, empty where there is.
func skipReason(in Reading) string {
	if in.State != StateOpen {
		return string(in.State)
	}
	return in.Filtered
}

// review gives the run out. What the page shows of another comparison is taken back now, not when
// the review ends.
func (t *Target) review(run Run, known []Run, e *Effects) Resolution {
	t.Claim.Run = run.ID
	t.takeBack(e)
	t.abandon(run.ID, known, e)
	t.InWork = run.ID
	e.save(run)
	if !t.saysOverBudget(run) { // that it waits for money stands there already
		t.tell(ProgressQueued, run, e)
	}
	t.answerRequests(Decision{Kind: DecisionReview, Run: run.ID, Claim: t.Claim.ID}, e)
	return Resolution{Answer: AnswerReview, Run: run}
}

// reuse lets an earlier result stand, under the run of exactly this comparison.
func (t *Target) reuse(c choice, known []Run, e *Effects, now time.Time) Resolution {
	run, reason := c.run, "same_comparison"
	takesOver := !c.from.ID.IsZero()
	if takesOver {
		run.State, run.Result, run.TakenFrom, reason = RunDone, c.from.Result, c.from.ID, "same_diff"
		run.Reason, run.Detail = "", ""
	}
	if t.WantsPublish && (!t.Page.about(PageResult, run, t.Read.BaseRef) || t.stale()) {
		t.sayOf(PageResult, &run, e)
	}
	t.takeBack(e)
	if takesOver && t.InWork == run.ID {
		e.receipt(&run, t.Epoch, ReceiptReused)
	}
	e.save(run)
	t.abandon(run.ID, known, e)
	t.answerRequests(Decision{Kind: DecisionReused, Reason: reason, Run: run.ID, Claim: t.Claim.ID}, e)
	t.decided(LastEnd{Call: callResolve, Answer: AnswerReused, Run: run.ID, Reason: reason, Epoch: t.Epoch}, e, now)
	return Resolution{Answer: AnswerReused, Run: run, Reason: reason}
}

// refusedAgain stands by a refusal: what was too large is so still.
func (t *Target) refusedAgain(run Run, known []Run, e *Effects, now time.Time) Resolution {
	if t.WantsPublish && (!t.Page.about(PageRefused, run, t.Read.BaseRef) || t.stale()) {
		t.sayOf(PageRefused, &run, e)
	}
	t.takeBack(e)
	e.save(run)
	t.abandon(run.ID, known, e)
	t.answerRequests(Decision{Kind: DecisionRefused, Reason: run.Reason, Detail: run.Detail, Run: run.ID, Claim: t.Claim.ID}, e)
	t.decided(LastEnd{Call: callResolve, Answer: AnswerRefused, Run: run.ID, Reason: run.Reason, Epoch: t.Epoch}, e, now)
	return Resolution{Answer: AnswerRefused, Run: run, Reason: run.Reason}
}

// skip ends the claim with nothing to review. A page that still holds is left alone; one that may
// not have been delivered is spoken again, since a result can't be sent any more, and so is one beside
// which a run is shown that ends here.
func (t *Target) skip(reason string, known []Run, e *Effects, now time.Time) Resolution {
	if t.WantsPublish && (t.contradicted() || t.stale()) {
		t.say(Page{Kind: PageSkipped, Reason: reason, Head: t.Read.Head, BaseRef: t.Read.BaseRef}, Run{}, e)
	}
	t.takeBack(e)
	t.abandon(RunID{}, known, e)
	t.answerRequests(Decision{Kind: DecisionSkipped, Reason: reason, Claim: t.Claim.ID}, e)
	t.decided(LastEnd{Call: callResolve, Answer: AnswerSkipped, Reason: reason, Epoch: t.Epoch}, e, now)
	return Resolution{Answer: AnswerSkipped, Reason: reason}
}

// abandon ends the run in work that another answer has taken the place of.
func (t *Target) abandon(by RunID, known []Run, e *Effects) {
	if t.InWork.IsZero() {
		return
	}
	if t.InWork != by {
		left := find(known, t.InWork)
		if left.State == RunOpen {
			e.receipt(&left, t.Epoch, ReceiptSuperseded)
			e.save(left)
		}
	}
	t.InWork = RunID{}
}
