package scheduler

import "time"

// PageKind is what the last epoch says.
type PageKind string

const (
	PageNone       PageKind = "" // nothing was said in this lifecycle
	PageResult     PageKind = "result"
	PageSkipped    PageKind = "skipped"
	PageRefused    PageKind = "refused"
	PageOverBudget PageKind = "over_budget"
	PageSuperseded PageKind = "superseded"
)

// Delivery is how an epoch's way to the page stands.
type Delivery string

const (
	DeliveryNone      Delivery = ""
	DeliveryPending   Delivery = "pending"
	DeliveryDelivered Delivery = "delivered"
	DeliveryEnded     Delivery = "ended" // otherwise: the pull request is gone, the conversation locked
)

// Page is what a target's page should say.
type Page struct {
	Kind      PageKind
	Reason    string // a stable word, where there is no result
	Detail    string // a sentence for people
	Run       RunID  // zero with PageSkipped
	Head      string
	BaseRef   string
	BaseSHA   string
	MergeBase string
	Delivery  Delivery
}

// undelivered says that the last epoch may not be on the page.
func (p Page) undelivered() bool { return p.Kind != PageNone && p.Delivery != DeliveryDelivered }

// compares says that the page speaks of one comparison, and is out of date with another.
func (p Page) compares() bool {
	return p.Kind == PageResult || p.Kind == PageRefused || p.Kind == PageOverBudget
}

// about says that the page speaks so of this run.
func (p Page) about(kind PageKind, run Run, baseRef string) bool {
	return p.Kind == kind && p.Run == run.ID && p.BaseRef == baseRef
}

// stale says that the page may not say what it should, so that it is spoken again.
func (t Target) stale() bool { return t.Page.undelivered() || t.showsProgress() }

// contradicted says that the page speaks of a comparison that is known not to be current.
func (t Target) contradicted() bool {
	return t.Page.compares() && t.Hint.Contradicts(t.Page.Head, t.Page.BaseRef)
}

// say is the next epoch: the page changes, and the publisher is told in the same transaction.
func (t *Target) say(p Page, run Run, e *Effects) {
	t.Epoch++
	p.Delivery = DeliveryPending
	t.Page = p
	e.Publish = &Publish{Target: t.ID, Lifecycle: t.Lifecycle, Epoch: t.Epoch, Page: p, Run: run}
}

// sayOf is the next epoch about a run.
func (t *Target) sayOf(kind PageKind, run *Run, e *Effects) {
	if kind == PageResult {
		run.Delivery = DeliveryPending
	}
	t.say(Page{
		Kind: kind, Reason: run.Reason, Detail: run.Detail, Run: run.ID,
		Head: run.HeadSHA, BaseRef: t.Read.BaseRef, BaseSHA: run.BaseSHA, MergeBase: run.MergeBase,
	}, *run, e)
}

// takeBack is the superseding epoch: what the page shows is known not to be current. It is made
// once, since the page says so from then on, and not where this transition has spoken already.
func (t *Target) takeBack(e *Effects) {
	if e.Publish != nil || !t.contradicted() {
		return
	}
	p := t.Page
	p.Kind, p.Reason, p.Detail = PageSuperseded, "moved", ""
	t.say(p, Run{
		ID: p.Run, Lifecycle: t.Lifecycle, BaseRef: p.BaseRef, BaseSHA: p.BaseSHA, HeadSHA: p.Head, MergeBase: p.MergeBase,
	}, e)
	e.Publish.NewerHead = t.Hint.Head
	e.decide(*t, Decision{Kind: DecisionSuperseded, Reason: "moved", Run: p.Run})
}

// Currency is whether an epoch may be sent now.
type Currency string

const (
	Current    Currency = "current"
	Superseded Currency = "superseded" // by a later epoch, or with its lifecycle
	Wait       Currency = "wait"
)

// Check is what the publisher asks about: an epoch, or the progress of a run that follows one.
type Check struct {
	Lifecycle Lifecycle
	Epoch     Epoch
	Progress  RunID // zero: the epoch itself
}

// CheckCurrent says whether something may be sent. An epoch that shows a result must answer all that was
// heard; one that only takes something back must be the last, nothing more; progress must be that of the
// run in work. The time is when a pause ends; zero with Wait: ask again soon.
func (t Target) CheckCurrent(c Check, pauses []Pause, now time.Time) (Currency, time.Time) {
	progress := !c.Progress.IsZero()
	if c.Lifecycle < t.Lifecycle || c.Epoch < t.Epoch || progress && !t.progressing(c) {
		return Superseded, time.Time{}
	}
	if p, held := Paused(pauses, t, now); held {
		return Wait, p.Until
	}
	if c.Lifecycle != t.Lifecycle || c.Epoch != t.Epoch || !progress && t.Page.Kind == PageResult && t.Generation != t.Resolved {
		return Wait, time.Time{}
	}
	return Current, time.Time{}
}

// progressing says that the run asked about is in work, and that nothing newer speaks against it.
func (t Target) progressing(c Check) bool {
	return c.Lifecycle == t.Lifecycle && c.Epoch == t.Epoch && c.Progress == t.InWork && !t.outpaced()
}

// Publication is the publisher's report on an epoch.
type Publication struct {
	Lifecycle  Lifecycle
	Epoch      Epoch
	Delivery   Delivery // delivered or ended
	Reason     string
	CommentURL string
}

// RecordPublication notes how the last epoch's delivery stands; run is the page's, where it has one.
// Reports have no order: one on an older epoch changes nothing, and what was delivered stays so.
func (t Target) RecordPublication(p Publication, run Run, now time.Time) (Target, Effects) {
	var e Effects
	if p.Lifecycle != t.Lifecycle || p.Epoch != t.Epoch {
		return t, e
	}
	if p.Delivery != DeliveryDelivered && p.Delivery != DeliveryEnded {
		return t, e
	}
	if t.Page.Delivery == p.Delivery || t.Page.Delivery == DeliveryDelivered {
		return t, e
	}
	t.Page.Delivery = p.Delivery
	t.TouchedAt = now
	if p.CommentURL != "" {
		t.CommentURL = p.CommentURL
	}
	if t.Page.Kind == PageResult && run.ID == t.Page.Run {
		run.Delivery = p.Delivery
		e.save(run)
	}
	kind := DecisionPublished
	if p.Delivery == DeliveryEnded {
		kind = DecisionNotPublished
	}
	e.decide(t, Decision{Kind: kind, Reason: p.Reason, Run: t.Page.Run})
	return t, e
}
