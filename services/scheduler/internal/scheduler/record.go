package scheduler

import "time"

// Record folds an activity into the target; the caller has made sure that the activity's id is new.
// Whatever may change the comparison starts a new generation, which is what invalidates every older
// fence. No activity clears DueAt: payloads come out of order, so that a close, a draft and a reopen
// only make the target due, and the read decides.
func (r Rules) Record(t Target, a Activity, now time.Time) (Target, Effects) {
	var e Effects
	if t.seen(a) {
		e.decide(t, Decision{Kind: DecisionAlreadySeen, Activity: a.ID, Reason: string(a.Cause)})
		return t, e
	}
	kind := DecisionDue
	if t.Due() && !t.Claim.Held() {
		kind = DecisionCoalesced
	}
	t.Activities++
	t.Generation++
	t.TouchedAt = now
	t.hear(a, now)
	t.DueAt = r.due(t, a, now)
	if t.FirstActivityAt.IsZero() {
		t.FirstActivityAt = now
	}
	if a.Cause == CauseRequest {
		t.Requests = append(t.Requests[:len(t.Requests):len(t.Requests)], a.Request)
		if !t.NotBeforeLapsed {
			t.NotBefore = time.Time{}
		}
	}
	e.decide(t, Decision{Kind: kind, Activity: a.ID, Request: a.Request.ID, Reason: string(a.Cause)})
	t.takeBack(&e)
	t.cancelContradicted()
	t.wake(&e, now)
	return t, e
}

// seen says that the activity brings nothing new against the last read, or something older than it.
// While anything was recorded since that read, nothing counts as seen: a push and its undoing must
// not cancel out. What was read for dry activities alone was not published, so it answers none.
func (t Target) seen(a Activity) bool {
	if a.Cause != CauseWebhook && a.Cause != CauseSweep || a.Hint.Empty() {
		return false
	}
	if a.Cause == CauseSweep && t.moved(a) {
		return false
	}
	if a.Cause == CauseSweep && t.awaits(a.Hint) {
		return true
	}
	if t.Read.At.IsZero() || !t.Read.ServedNotDry || t.Read.Generation != t.Generation {
		return false
	}
	return a.Hint.Content == t.Read.Content || a.Hint.older(t.Read)
}

// awaits says that the target is due for what a sweep found: it was heard of already, and will be read and
// published. A sweep that follows a delivery must not push the review back, nor take over its trace.
func (t Target) awaits(h Hint) bool {
	return t.Due() && !t.Claim.Held() && t.WantsPublish && h.Content == t.Hint.Content
}

// moved says that a listing has found the pull request under another installation or project than the target's: what
// waits under one that was uninstalled would wait for ever, and what could not be published there can be now.
func (t Target) moved(a Activity) bool {
	pr := a.PullRequest
	elsewhere := pr.Installation != 0 && pr.Installation != t.Installation || pr.Project != (ProjectID{}) && pr.Project != t.Project
	return elsewhere && (a.Hint.UpdatedAt.IsZero() || !a.Hint.UpdatedAt.Before(t.Hint.UpdatedAt))
}

// older says that the hint is of a time before the read. What bears no time, as a 404, has no age.
func (h Hint) older(read Read) bool {
	return !h.UpdatedAt.IsZero() && h.UpdatedAt.Before(read.UpdatedAt)
}

// hear keeps the newest of what is known.
func (t *Target) hear(a Activity, now time.Time) {
	a.Hint.HeardAt = now
	hint := t.Hint.Newer(a.Hint)
	if hint != t.Hint || a.Hint.Empty() || a.Cause == CauseSweep && t.moved(a) {
		t.rename(a.PullRequest)
	}
	t.Hint = hint
	t.follow(a)
	if !a.Dry() {
		t.WantsPublish = true
	}
}

// rename follows a repository to its new name, installation and project: one that went to another tenant and
// came back is enrolled anew. Its numeric id stays.
func (t *Target) rename(pr PullRequest) {
	if pr.Project != (ProjectID{}) {
		t.Project = pr.Project
	}
	if pr.FullName != "" {
		t.FullName = pr.FullName
	}
	if pr.Installation != 0 {
		t.Installation = pr.Installation
	}
}

// due is when the target should be looked at after this activity. A request is due at once, and
// while one waits nothing pushes it back. Anything else waits for quiet, but no longer than MaxWait
// from the first activity since the last claim.
func (r Rules) due(t Target, a Activity, now time.Time) time.Time {
	switch {
	case a.Cause == CauseRequest && t.Due():
		return earlier(t.DueAt, now)
	case a.Cause == CauseRequest:
		return now
	case len(t.Requests) > 0:
		return t.DueAt
	}
	first := t.FirstActivityAt
	if first.IsZero() {
		first = now
	}
	return earlier(now.Add(r.quiet(t.SupersededInRow)), first.Add(r.MaxWait))
}

// cancelContradicted asks a live claim to stop where what was heard after its read speaks against
// its run, or for its end: nobody would read the result.
func (t *Target) cancelContradicted() {
	if !t.Claim.Held() || t.Claim.Run.IsZero() {
		return
	}
	if t.outpaced() {
		t.Claim.CancelRequested = true
	}
}

// Recorded is how an activity was recorded, the first time and again.
type Recorded struct {
	Target     TargetID
	Generation Generation
	Decision   DecisionKind
}
