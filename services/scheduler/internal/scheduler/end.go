package scheduler

import "time"

// The four ways in which a claim ends. Each frees the target in the same transition, and each that
// leaves it due enqueues the ring, so that nothing due is ever forgotten.

// decided ends the claim by a decision: the generation is answered, and the target is not due any
// more unless an activity came since the claim.
func (t *Target) decided(end LastEnd, e *Effects, now time.Time) {
	t.resolved(end, now)
	t.WantsPublish = false
	if t.Activities == t.Claim.Activities {
		t.DueAt = time.Time{}
	}
	t.free()
	t.wake(e, now)
}

// unpaid ends the claim for want of money: the generation is answered, and the target stays due.
func (t *Target) unpaid(end LastEnd, retryAt time.Time, e *Effects, now time.Time) {
	t.resolved(end, now)
	t.NotBefore = retryAt
	t.free()
	t.wake(e, now)
}

// released ends the claim without an answer, to be tried again.
func (t *Target) released(end LastEnd, retryAt time.Time, e *Effects, now time.Time) {
	t.ended(end, now)
	t.NotBefore, t.NotBeforeLapsed = retryAt, false
	t.free()
	t.wake(e, now)
}

// supersede ends a claim that the target has moved away from. The next one waits for more quiet.
func (t *Target) supersede(end LastEnd, e *Effects, now time.Time) {
	t.ended(end, now)
	t.SupersededInRow++
	e.decide(*t, Decision{Kind: DecisionFenced, Reason: Reason(end.Refused), Claim: t.Claim.ID, Run: t.Claim.Run})
	t.free()
	t.wake(e, now)
}

// lapse ends a claim whose lease ran out.
func (r Rules) lapse(t *Target, end LastEnd, e *Effects, now time.Time) {
	t.ended(end, now)
	t.Lapses++
	t.NotBefore, t.NotBeforeLapsed = now.Add(r.lapsePause(t.Lapses)), true
	e.decide(*t, Decision{
		Kind: DecisionLapsed, Reason: t.Claim.Worker, Claim: t.Claim.ID, Run: t.Claim.Run,
		Alert: t.Lapses >= r.LapseAlert,
	})
	t.free()
	t.wake(e, now)
}

// resolved notes that the generation was answered, which ends every row of failures.
func (t *Target) resolved(end LastEnd, now time.Time) {
	t.ended(end, now)
	t.Resolved = t.Generation
	t.NotBefore, t.NotBeforeLapsed = time.Time{}, false
	t.Lapses, t.SupersededInRow = 0, 0
}

func (t *Target) ended(end LastEnd, now time.Time) {
	end.Claim = t.Claim.ID
	t.LastEnd = end
	t.TouchedAt = now
}

func (t *Target) free() { t.Claim = Claim{} }
