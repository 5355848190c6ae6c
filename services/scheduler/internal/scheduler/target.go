// Package scheduler decides when a pull request is reviewed, which comparison is reviewed, and
// what its page should say; it knows no database, no network and no clock.
//
// Every transition takes the state that was loaded under lock, an event and the database's time,
// and returns the state to save and the effects that belong into the same transaction.
package scheduler

import (
	"slices"
	"time"
)

// State is a pull request's state as last read from GitHub or as a payload named it.
type State string

const (
	StateUnknown State = "" // never read in this lifecycle
	StateOpen    State = "open"
	StateDraft   State = "draft"
	StateClosed  State = "closed" // merged or not
	StateGone    State = "gone"   // it, or its repository, can't be read any more
)

// PullRequest is a target's identity. Host, Repository and Number identify; FullName is for people,
// and with Installation as of the newest activity.
type PullRequest struct {
	Project      ProjectID
	Host         string
	Installation int64
	Repository   int64 // GitHub's numeric id
	FullName     string
	Number       int64
}

// Target is a pull request as work.
type Target struct {
	ID     TargetID
	Tenant TenantID
	PullRequest

	State      State
	Generation Generation
	Resolved   Generation // the last generation that a decision answered
	Activities Counter
	Lifecycle  Lifecycle

	Epoch      Epoch
	Page       Page // what Epoch says
	CommentURL string
	Told       Told // the progress that may be shown beside it

	DueAt           time.Time // set by activities; zero: not due
	NotBefore       time.Time // set by ends of claims
	NotBeforeLapsed bool      // NotBefore comes from a lapse, which no request may cut short
	FirstActivityAt time.Time // first activity since the last claim; zero: none
	Requests        []Request // manual requests that no ResolveRun consumed yet, in order of arrival
	WantsPublish    bool      // an activity that wasn't dry came since the last decision

	Hint Hint
	Read Read // the last read that was accepted

	Claim           Claim // zero: unclaimed
	InWork          RunID // the run last given out for review that hasn't ended
	SupersededInRow int
	Lapses          int // in a row
	LastEnd         LastEnd

	Trace          string     // W3C traceparent of the latest activity
	Links          []string   // traceparents it was coalesced with since the last claim, the oldest first
	LatestDelivery DeliveryID // empty where a request or sweep came last
	TouchedAt      time.Time  // last change, from which retention counts
}

// maxLinks bounds a span's links; the oldest go first.
const maxLinks = 32

// NewTarget is a pull request that nothing was heard of yet.
func NewTarget(id TargetID, tenant TenantID, pr PullRequest, now time.Time) Target {
	return Target{ID: id, Tenant: tenant, PullRequest: pr, Lifecycle: 1, TouchedAt: now}
}

// Due says that work is left, whether or not its time has come.
func (t Target) Due() bool { return !t.DueAt.IsZero() }

// ReadyAt is when a due target may be claimed.
func (t Target) ReadyAt() time.Time { return later(t.DueAt, t.NotBefore) }

// wake enqueues the ring for the moment when the target may be claimed. A moment that has passed
// rings now: under its old name the ring could be one that was already sent.
func (t Target) wake(e *Effects, now time.Time) {
	if t.Due() {
		e.Rings = append(e.Rings, Ring{Target: t.ID, Counter: t.Activities, At: later(t.ReadyAt(), now)})
	}
}

// follow continues the trace of the latest activity and links those it was coalesced with.
func (t *Target) follow(a Activity) {
	t.LatestDelivery = a.Delivery
	if t.FirstActivityAt.IsZero() {
		t.Links = nil
	} else if t.Trace != "" && t.Trace != a.Trace {
		t.Links = append(slices.Clone(t.Links), t.Trace)
		t.Links = t.Links[max(0, len(t.Links)-maxLinks):]
	}
	if a.Trace != "" || t.FirstActivityAt.IsZero() {
		t.Trace = a.Trace
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
