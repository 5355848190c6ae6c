package scheduler

import "time"

// Claim is a worker's temporary ownership of a target, judged by the database's clock.
type Claim struct {
	ID              ClaimID
	Worker          string
	ClaimedAt       time.Time
	LeaseUntil      time.Time
	Run             RunID   // zero until ResolveRun gave one out
	Activities      Counter // the target's when it was claimed
	CancelRequested bool
}

// Held says that there is a claim, live or lapsed.
func (c Claim) Held() bool { return !c.ID.IsZero() }

// Lapsed says that the lease ran out and nobody ended the claim yet.
func (c Claim) Lapsed(now time.Time) bool { return c.Held() && !c.LeaseUntil.After(now) }

// Claimed is a target that was just claimed, and how long its lease is.
type Claimed struct {
	Target
	Lease time.Duration
}

// Claim gives the target to a worker. The caller has ended a lapsed claim by Lapse before.
func (r Rules) Claim(t Target, id ClaimID, worker string, paused bool, now time.Time) (Target, error) {
	if paused || t.Claim.Held() || !t.Due() || t.ReadyAt().After(now) || id.IsZero() {
		return t, ErrNotClaimable
	}
	t.Claim = Claim{
		ID: id, Worker: worker, ClaimedAt: now,
		LeaseUntil: now.Add(min(r.Lease, r.MaxClaim)), Activities: t.Activities,
	}
	t.FirstActivityAt = time.Time{}
	t.TouchedAt = now
	return t, nil
}

// Lapse ends a claim whose lease ran out; it changes nothing where there is none. The target stays
// due, and waits longer with each lapse in a row: what kills its workers must not kill them all.
func (r Rules) Lapse(t Target, now time.Time) (Target, Effects) {
	var e Effects
	if t.Claim.Lapsed(now) {
		r.lapse(&t, LastEnd{Call: "lapse"}, &e, now)
	}
	return t, e
}

// Renewal is the answer to a worker that is still at work.
type Renewal struct {
	LeaseUntil      time.Time
	CancelRequested bool // what was heard after the claim's read contradicts its run
}

// Renew extends the lease, within the bound for the whole claim. It is fenced by claim and lease
// alone: a newer generation must not stop work that may yet be adopted.
func (r Rules) Renew(t Target, claim ClaimID, now time.Time) (Target, Renewal, error) {
	switch {
	case claim.IsZero() || t.Claim.ID != claim:
		return t, Renewal{}, ErrClaimLost
	case t.Claim.Lapsed(now):
		return t, Renewal{}, ErrLeaseExpired
	}
	t.Claim.LeaseUntil = later(t.Claim.LeaseUntil, earlier(now.Add(r.Lease), t.Claim.ClaimedAt.Add(r.MaxClaim)))
	return t, Renewal{LeaseUntil: t.Claim.LeaseUntil, CancelRequested: t.Claim.CancelRequested}, nil
}

// Start is the renewal right before the engine is called: it tells of the claim's run, which is run, that it
// is in progress. A worker that is asked to stop calls no engine.
func (r Rules) Start(t Target, claim ClaimID, run Run, now time.Time) (Target, Renewal, Effects, error) {
	var e Effects
	t, renewal, err := r.Renew(t, claim, now)
	if err == nil && !renewal.CancelRequested && !run.ID.IsZero() && run.ID == t.Claim.Run {
		t.tell(ProgressStarted, run, &e)
	}
	return t, renewal, e, err
}
