package scheduler

import (
	"fmt"
	"time"
)

// Outcome is how a worker's run went. Exactly one of Accepted, Refused and OverBudget is set.
type Outcome struct {
	Accepted   *Result // its Claim and Generation are the fence's
	Refused    *Refused
	OverBudget *OverBudget
}

// Refused says that the run will not be reviewed, whatever is tried.
type Refused struct{ Reason, Detail string }

// OverBudget says that the ledger held nothing for the run.
type OverBudget struct {
	Reason     string
	RetryAfter time.Duration // when trying again makes sense; bounded, zero: the longest
}

// Commitment is the answer to a commit. Refused is the fence's reason, to be returned once the state
// is saved: a refused call ends its own claim.
type Commitment struct {
	Answer  Answer
	Run     RunID
	Epoch   Epoch // that tells the page, 0 where nothing on it changes
	Refused error
}

// call names the outcome, so that its repetition is known.
func (o Outcome) call() string {
	switch {
	case o.Accepted != nil:
		return "accept:" + o.Accepted.Attempt.String()
	case o.Refused != nil:
		return "refuse:" + o.Refused.Reason
	}
	return "over_budget"
}

func (o Outcome) validate() error {
	set := 0
	for _, is := range []bool{o.Accepted != nil, o.Refused != nil, o.OverBudget != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("%w: %d outcomes", ErrInvalidOutcome, set)
	}
	if o.Accepted != nil && o.Accepted.Attempt.IsZero() {
		return fmt.Errorf("%w: a result without its attempt", ErrInvalidOutcome)
	}
	return nil
}

// Commit ends a claim by its run's outcome, under its fence; run is the one that the fence names. It
// errs on an outcome that says nothing, and then there is nothing to save.
func (r Rules) Commit(t Target, f Fence, run Run, o Outcome, now time.Time) (Target, Commitment, Effects, error) {
	if err := o.validate(); err != nil {
		return t, Commitment{}, Effects{}, err
	}
	call := o.call()
	if why := f.Verdict(t, now); why != nil {
		if again, ok := t.committedAs(f, call); ok {
			return t, again, Effects{}, nil
		}
		t, e := r.refuse(t, f, call, why, now)
		return t, Commitment{Run: f.Run, Refused: why}, e, nil
	}
	if f.Run.IsZero() || run.ID != f.Run {
		return t, Commitment{}, Effects{}, ErrWrongRun
	}
	var e Effects
	var c Commitment
	switch {
	case o.Accepted != nil:
		c = t.acceptResult(f, run, *o.Accepted, call, &e, now)
	case o.Refused != nil:
		c = t.refuseRun(f, run, *o.Refused, call, &e, now)
	default:
		c = r.overBudget(&t, run, *o.OverBudget, call, &e, now)
	}
	return t, c, e, nil
}

// committedAs answers a commit that has already taken effect as it was answered then.
func (t Target) committedAs(f Fence, call string) (Commitment, bool) {
	if !t.repeated(f, call) {
		return Commitment{}, false
	}
	end := t.LastEnd
	return Commitment{Answer: end.Answer, Run: end.Run, Epoch: end.Epoch, Refused: end.Refused}, true
}

// acceptResult gives the run its result. What only dry activities asked for is kept and not shown;
// the first activity that isn't dry publishes it.
func (t *Target) acceptResult(f Fence, run Run, res Result, call string, e *Effects, now time.Time) Commitment {
	res.Claim, res.Generation = f.Claim, f.Generation
	run.State, run.Result = RunDone, res
	said := Epoch(0)
	if t.WantsPublish {
		t.sayOf(PageResult, &run, e)
		said = t.Epoch
	}
	e.receipt(&run, said, ReceiptAccepted)
	e.save(run)
	e.decide(*t, Decision{Kind: DecisionAccepted, Reason: string(res.Verdict), Run: run.ID, Claim: f.Claim})
	t.InWork = RunID{}
	t.decided(LastEnd{Call: call, Answer: AnswerAccepted, Run: run.ID, Epoch: said}, e, now)
	return Commitment{Answer: AnswerAccepted, Run: run.ID, Epoch: said}
}

// refuseRun notes that the run gets no result.
func (t *Target) refuseRun(f Fence, run Run, why Refused, call string, e *Effects, now time.Time) Commitment {
	run.State, run.Reason, run.Detail = RunRefused, why.Reason, why.Detail
	said := Epoch(0)
	if t.WantsPublish {
		t.sayOf(PageRefused, &run, e)
		said = t.Epoch
	}
	e.receipt(&run, said, ReceiptRefused)
	e.save(run)
	e.decide(*t, Decision{Kind: DecisionRefused, Reason: why.Reason, Detail: why.Detail, Run: run.ID, Claim: f.Claim})
	t.InWork = RunID{}
	t.decided(LastEnd{Call: call, Answer: AnswerRefused, Run: run.ID, Reason: why.Reason, Epoch: said}, e, now)
	return Commitment{Answer: AnswerRefused, Run: run.ID, Epoch: said}
}

// saysOverBudget says that the page tells of this comparison that there was no money for it.
func (t Target) saysOverBudget(run Run) bool {
	return t.Page.Kind == PageOverBudget && t.Page.BaseRef == t.Read.BaseRef && run.sameDiff(Read{
		Content: Content{Head: t.Page.Head}, BaseSHA: t.Page.BaseSHA, MergeBase: t.Page.MergeBase,
	})
}

// overBudget answers the generation and leaves the target due. Page and record are told once per
// comparison, not with every try.
func (r Rules) overBudget(t *Target, run Run, why OverBudget, call string, e *Effects, now time.Time) Commitment {
	said := Epoch(0)
	told := t.saysOverBudget(run) && !t.showsProgress()
	if t.WantsPublish && !told {
		shown := run
		shown.Reason = why.Reason
		t.sayOf(PageOverBudget, &shown, e)
		said = t.Epoch
	}
	if said > 0 || !run.OverBudget && !told {
		e.decide(*t, Decision{Kind: DecisionOverBudget, Reason: why.Reason, Run: run.ID, Claim: t.Claim.ID})
	}
	if !run.OverBudget {
		run.OverBudget = true
		e.save(run)
	}
	t.unpaid(LastEnd{Call: call, Answer: AnswerOverBudget, Run: run.ID, Reason: why.Reason, Epoch: said},
		r.retryAt(why.RetryAfter, r.RetryMax, now), e, now)
	return Commitment{Answer: AnswerOverBudget, Run: run.ID, Epoch: said}
}
