package scheduler

import "time"

// EndLifecycle ends deduplication for a target that has been at rest for the whole retention. The
// row stays with its counters, so that every fence, epoch and key of before stays in the past; what
// was read is forgotten, and the runs go. What the page says stays known, for it still says so.
// longPaused says that a pause has held the target
// up for longer than retention, which counts as rest for an epoch that can't be sent.
func (r Rules) EndLifecycle(t Target, longPaused bool, now time.Time) (Target, Effects, error) {
	var e Effects
	said := t.Page.Delivery != DeliveryPending || longPaused
	if t.Due() || t.Claim.Held() || !said || now.Sub(t.TouchedAt) < r.Retention {
		return t, e, ErrNotAtRest
	}
	e.Purge = &Purge{Target: t.ID, Lifecycle: t.Lifecycle}
	e.decide(t, Decision{Kind: DecisionLifecycleEnded})
	t.Lifecycle++
	t.State, t.Read, t.Hint = StateUnknown, Read{}, Hint{}
	if t.Page.Delivery == DeliveryPending {
		t.Page.Delivery = DeliveryEnded // nothing of an ended lifecycle is sent
	}
	t.InWork, t.LastEnd = RunID{}, LastEnd{}
	t.Trace, t.Links, t.LatestDelivery = "", nil, ""
	t.TouchedAt = now
	return t, e, nil
}
