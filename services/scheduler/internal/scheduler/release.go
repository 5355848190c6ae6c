package scheduler

import "time"

// ReleaseReason is why a claim ends without an answer.
type ReleaseReason string

const (
	ReleaseThrottled      ReleaseReason = "throttled"
	ReleaseDependencyAway ReleaseReason = "dependency_away"
	ReleaseCancelled      ReleaseReason = "cancelled"
	ReleaseAttemptFailed  ReleaseReason = "attempt_failed"
	ReleaseShuttingDown   ReleaseReason = "shutting_down"
)

// Release gives a claim back, under its fence; the target stays due and waits for retryAfter, bounded,
// or the usual pause where that is zero. The last value is the fence's reason, to be returned once
// the state is saved: a refused call ends its own claim.
func (r Rules) Release(t Target, f Fence, why ReleaseReason, detail string, retryAfter time.Duration, now time.Time) (Target, Effects, error) {
	call := "release:" + string(why)
	if verdict := f.Verdict(t, now); verdict != nil {
		if t.repeated(f, call) {
			return t, Effects{}, t.LastEnd.Refused
		}
		t, e := r.refuse(t, f, call, verdict, now)
		return t, e, verdict
	}
	var e Effects
	e.decide(t, Decision{Kind: DecisionReleased, Reason: string(why), Detail: detail, Run: f.Run, Claim: f.Claim})
	retryAt := r.retryAt(retryAfter, r.ReleaseWait, now)
	if why == ReleaseShuttingDown && retryAfter <= 0 {
		retryAt = now // nothing is wrong with the target: another worker may take it at once
	}
	t.released(LastEnd{Call: call, Answer: AnswerReleased, Run: f.Run, Reason: string(why)}, retryAt, &e, now)
	return t, e, nil
}
