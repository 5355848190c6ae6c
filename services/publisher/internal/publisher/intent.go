package publisher

import (
	"errors"
	"fmt"
	"time"
)

// State is where an intent stands.
type State string

// The states of an intent. Sending means sent, or perhaps sent: it is looked up before anything else.
const (
	StatePending   State = "pending"
	StateSending   State = "sending"
	StateConfirmed State = "confirmed"
	StateEnded     State = "ended"
)

// Op is what was sent, while an intent is sending.
type Op string

// The operations on a surface.
const (
	OpNone   Op = ""
	OpCreate Op = "create"
	OpEdit   Op = "edit"
)

// Reasons of intents that ended without being shown; refusals bring GitHub's.
const (
	ReasonSuperseded = "superseded"
	ReasonNothing    = "nothing_to_take_back"
	ReasonDeleted    = "deleted_by_person"
	ReasonGone       = "gone"
	ReasonNothingNew = "nothing_new"
	ReasonUnanswered = "unanswered"
)

// Intent is one external write, recorded before it is sent.
type Intent struct {
	ID        IntentID
	Key       string
	Target    TargetID
	Ref       Ref
	Rank      Rank
	At        Position
	Kind      Kind
	Run       RunID
	State     State
	Op        Op
	Reason    string
	Attempts  int // times sent
	Holds     int // times held up in a row since it was last sent
	Available time.Time
	CreatedAt time.Time
	SentAt    time.Time
	EndedAt   time.Time
	GitHubID  int64
	URL       string
	Body      string       // as last rendered
	Remarks   Fingerprints // of a review: what it says, as last sent, or what it is to say
	LastError string
	Version   int64 // raised by every save
}

// Ended tells whether nothing will be sent any more.
func (i Intent) Ended() bool { return i.State == StateConfirmed || i.State == StateEnded }

// Cell is an intent with the surface it writes on. Absent holds where a complete listing has just shown
// that the surface has no output: it is never stored.
type Cell struct {
	Intent  Intent
	Surface Surface
	Absent  bool
}

// maxHolds is more holds in a row than any backoff grows by.
const maxHolds = 64

// believed is how often in a row a read must be refused before the intent ends by it.
const believed = 3

// Rules are the times that intents go by.
type Rules struct {
	// Grace is how long after it was sent a write may still take effect: longer than the HTTP timeout.
	Grace time.Duration
	// HoldMax bounds the pause before the scheduler is asked again.
	HoldMax time.Duration
	// RetryMax bounds the pause after failures in a row.
	RetryMax time.Duration
}

// DefaultRules are those of a deployment that sets nothing.
var DefaultRules = Rules{Grace: 15 * time.Second, HoldMax: 30 * time.Second, RetryMax: 5 * time.Minute}

// Event is what happened to an intent.
type Event interface{ event() }

type (
	// Sent: the operation is about to be called; recorded before the call. Remarks is what a new review says.
	Sent struct {
		Op      Op
		Body    string
		Remarks Fingerprints
	}
	// Answered: GitHub confirmed the call.
	Answered struct{ Placed Placed }
	// Failed: the call did not succeed.
	Failed struct{ Failure Failure }
	// LookedUp: a complete listing, or a read by id, said what there is; nil is nothing. Last is the highest
	// epoch that the target is known to have, zero where that is not known.
	LookedUp struct {
		Found *Found
		Last  Position
	}
	// Delayed: something that had to be asked first did not answer. Own: it was the list that the output would be in.
	Delayed struct {
		Failure Failure
		Own     bool
	}
	// Held: the epoch may not be shown now; a zero Until asks for a backoff.
	Held struct {
		Until  time.Time
		Reason string
	}
	// Dropped: the epoch is not to be shown any more, or there is nothing to do.
	Dropped struct{ Reason string }
	// Retried: an operator asks for it now.
	Retried struct{}
)

func (Sent) event()     {}
func (Answered) event() {}
func (Failed) event()   {}
func (LookedUp) event() {}
func (Delayed) event()  {}
func (Held) event()     {}
func (Dropped) event()  {}
func (Retried) event()  {}

// Effect is what a transition asks for beyond its cell.
type Effect interface{ effect() }

type (
	// PauseSender asks that the whole installation be left alone.
	PauseSender struct{ Failure Failure }
	// Bisect asks that the halves of a refused review be tried.
	Bisect struct{}
	// FallBack asks for a commit status, where a check run may not be written.
	FallBack struct{}
)

func (PauseSender) effect() {}
func (Bisect) effect()      {}
func (FallBack) effect()    {}

var (
	// ErrTransition means that an event can't happen in the intent's state: a programming error.
	ErrTransition = errors.New("no such transition")
	// ErrTooEarly means that a write may still take effect, so that its absence says nothing.
	ErrTooEarly = errors.New("within the grace of a write")
	// ErrNotLookedUp means that a surface is not surely absent, or not there to be edited.
	ErrNotLookedUp = errors.New("surface is not known to be absent or there")
)

// Apply is the state machine of an intent and the surface it writes on.
func (r Rules) Apply(c Cell, ev Event, now time.Time) (Cell, []Effect, error) {
	if c.Intent.Ended() {
		return c, nil, fmt.Errorf("%w: %T", ErrIntentEnded, ev)
	}
	switch ev := ev.(type) {
	case Sent:
		return r.sent(c, ev, now)
	case Answered:
		return r.answered(c, ev, now)
	case Failed:
		return r.failed(c, ev.Failure, now)
	case LookedUp:
		return r.lookedUp(c, ev, now)
	case Delayed:
		return r.delayed(c, ev, now)
	case Held:
		return r.held(c, ev, now)
	case Dropped:
		if c.Intent.State != StatePending {
			return c, nil, fmt.Errorf("%w: %T while %s", ErrTransition, ev, c.Intent.State)
		}
		return c.end(ev.Reason, now), nil, nil
	case Retried:
		c.Intent.Available = r.earliest(c.Intent, now)
		return c, nil, nil
	}
	return c, nil, fmt.Errorf("%w: %T", ErrTransition, ev)
}

// sent lets a write begin: a creation only where the surface is surely absent, and never over the output
// of a later epoch.
func (r Rules) sent(c Cell, ev Sent, now time.Time) (Cell, []Effect, error) {
	switch {
	case c.Intent.State != StatePending:
		return c, nil, fmt.Errorf("%w: sent while %s", ErrTransition, c.Intent.State)
	case c.Surface.Shown.Compare(c.Intent.At) > 0:
		return c, nil, fmt.Errorf("%w: a later epoch is shown", ErrTransition)
	case ev.Op == OpCreate && (c.Surface.GitHubID != 0 || !c.Absent), ev.Op == OpEdit && c.Surface.GitHubID == 0, ev.Op == OpNone:
		return c, nil, fmt.Errorf("%w: %s", ErrNotLookedUp, ev.Op)
	}
	i := &c.Intent
	i.State, i.Op, i.Body = StateSending, ev.Op, ev.Body
	if ev.Op == OpCreate {
		i.Remarks = ev.Remarks
	}
	i.Attempts, i.Holds, i.LastError = i.Attempts+1, 0, ""
	i.SentAt, i.Available = now, now.Add(r.Grace)
	c.Absent = false
	return c, nil, nil
}

func (r Rules) answered(c Cell, ev Answered, now time.Time) (Cell, []Effect, error) {
	if c.Intent.State != StateSending || ev.Placed.ID == 0 {
		return c, nil, fmt.Errorf("%w: answered with id %d while %s", ErrTransition, ev.Placed.ID, c.Intent.State)
	}
	if ev.Placed.More { // as an intent of its own: recorded, paced and looked up
		c.Surface.GitHubID, c.Surface.URL, c.Surface.Open = ev.Placed.ID, ev.Placed.URL, true
		c.Intent.State, c.Intent.Op, c.Intent.Attempts, c.Intent.Available = StatePending, OpNone, 0, now
		return c, nil, nil
	}
	return c.confirm(ev.Placed, c.Intent.Attempts == 1, now), nil, nil
}

func (r Rules) failed(c Cell, f Failure, now time.Time) (Cell, []Effect, error) {
	if c.Intent.State != StateSending {
		return c, nil, fmt.Errorf("%w: failed while %s", ErrTransition, c.Intent.State)
	}
	c.Intent.LastError = f.Error()
	early := c.Intent.Ref.Kind == SurfaceCheckRun || c.Intent.Ref.Kind == SurfaceStatus || f.Reason == ReasonCommitUnknown
	if f.Class == Refused && early && c.Intent.Attempts < believed {
		f.Class = NotExecuted // a commit is not known everywhere right after its push
	}
	switch f.Class {
	case NotExecuted:
		c.Intent.State, c.Intent.Op = StatePending, OpNone
		c.Intent.Available = now.Add(max(f.RetryAfter, r.backoff(c.Intent, c.Intent.Attempts, r.RetryMax)))
	case Throttled:
		c.Intent.State, c.Intent.Op, c.Intent.Available = StatePending, OpNone, now
		return c, []Effect{PauseSender{Failure: f}}, nil
	case Refused:
		return c.end("refused_"+f.Word(), now), c.refused(f), nil
	case Gone:
		return r.gone(c, f, now), nil, nil
	case Unknown:
		c.Intent.Available = r.earliest(c.Intent, now)
	}
	return c, nil, nil
}

// gone handles a 404. Of an edit it means that a person deleted the output: a newer run brings it back
// once, and nothing else does. Of anything else it is the end.
func (r Rules) gone(c Cell, f Failure, now time.Time) Cell {
	i, s := c.Intent, c.Surface
	if i.Op != OpEdit || f.Everything {
		return c.end(ReasonGone, now)
	}
	c.Surface.Open = false // there is nothing to take back
	if !i.Kind.ShowsResult() || i.Run == s.Run || s.Recreated {
		return c.end(ReasonDeleted, now)
	}
	c.Surface.GitHubID, c.Surface.URL, c.Surface.Recreated = 0, "", true
	c.Intent.State, c.Intent.Op, c.Intent.Available = StatePending, OpNone, now
	return c
}

// lookedUp takes a complete listing, or a read by id, into account.
func (r Rules) lookedUp(c Cell, ev LookedUp, now time.Time) (Cell, []Effect, error) {
	sending, found := c.Intent.State == StateSending, ev.Found
	if found == nil {
		switch {
		case !sending:
			c.Absent = true
			c.Surface.GitHubID, c.Surface.URL = 0, ""
			return c, nil, nil
		case now.Before(c.Intent.SentAt.Add(r.Grace)):
			return c, nil, ErrTooEarly
		case c.Intent.Op == OpEdit:
			return r.gone(c, Failure{Class: Gone}, now), nil, nil
		}
		if c.Intent.Ref.Kind == SurfaceReview && c.Intent.Attempts >= believed {
			return c.unanswered(now)
		}
		c.Intent.State, c.Intent.Op, c.Intent.Available = StatePending, OpNone, now
		c.Absent = true                           // a listing after the grace: surely
		c.Surface = c.Surface.toCheck(false, now) // or as surely as a list that lags can tell
		return c, nil, nil
	}
	found = ev.known()
	order := found.At.Compare(c.Intent.At)
	if order < 0 && sending && now.Before(c.Intent.SentAt.Add(r.Grace)) {
		return c, nil, ErrTooEarly
	}
	c.Surface = c.Surface.adopt(*found)
	if found.Extra > 0 {
		c.Surface = c.Surface.toClear(now)
	}
	switch {
	case order > 0:
		return c.end(ReasonSuperseded, now), nil, nil
	case order == 0:
		return c.confirm(Placed{ID: found.ID, URL: found.URL}, !sending, now), nil, nil
	}
	if sending {
		c.Intent.State, c.Intent.Op, c.Intent.Available = StatePending, OpNone, now
	}
	return c, nil, nil
}

// known takes what shows an epoch that nobody has heard of, because an older database was restored, as the old
// output that it is to become again.
func (ev LookedUp) known() *Found {
	found := *ev.Found
	if ev.Last != (Position{}) && found.At.Compare(ev.Last) > 0 {
		found.At = Position{}
	}
	return &found
}

func (r Rules) delayed(c Cell, ev Delayed, now time.Time) (Cell, []Effect, error) {
	f := ev.Failure
	c.Intent.LastError = f.Error()
	switch f.Class {
	case Throttled:
		return c, []Effect{PauseSender{Failure: f}}, nil
	case Refused, Gone:
		// A fresh token may be refused, or see nothing, for some seconds.
		if c.Intent.Holds+1 < believed {
			break
		}
		if f.Class == Gone {
			return c.end(ReasonGone, now), nil, nil
		}
		var instead []Effect
		if ev.Own {
			instead = c.refused(f)
		}
		return c.end("refused_"+f.Word(), now), instead, nil
	case Unknown, NotExecuted:
	}
	c.Intent.Holds++
	c.Intent.Available = now.Add(max(f.RetryAfter, r.backoff(c.Intent, c.Intent.Holds, r.RetryMax)))
	return c, nil, nil
}

func (r Rules) held(c Cell, ev Held, now time.Time) (Cell, []Effect, error) {
	if c.Intent.State != StatePending {
		return c, nil, fmt.Errorf("%w: held while %s", ErrTransition, c.Intent.State)
	}
	c.Intent.Holds++
	c.Intent.LastError = ev.Reason
	c.Intent.Available = ev.Until
	if !ev.Until.After(now) {
		c.Intent.Available = now.Add(r.backoff(c.Intent, c.Intent.Holds, r.HoldMax))
	}
	// A pause may be ended before its time, and nobody tells.
	if most := now.Add(r.backoff(c.Intent, maxHolds, r.HoldMax)); c.Intent.Available.After(most) {
		c.Intent.Available = most
	}
	return c, nil, nil
}

// earliest is when an intent may be looked at again: one that was sent, not before its grace is over.
func (r Rules) earliest(i Intent, now time.Time) time.Time {
	if after := i.SentAt.Add(r.Grace); i.State == StateSending && after.After(now) {
		return after
	}
	return now
}

// backoff doubles from a second, and spreads intents over a quarter of that by their ids.
func (r Rules) backoff(i Intent, n int, limit time.Duration) time.Duration {
	d := min(time.Second<<min(max(n-1, 0), 16), limit)
	return d - d/4*time.Duration(i.ID[15])/255
}

func (c Cell) end(reason string, now time.Time) Cell {
	c.Intent.State, c.Intent.Op, c.Intent.Reason, c.Intent.EndedAt = StateEnded, OpNone, reason, now
	return c
}

// confirm takes the output as written. Sure tells that there was one write, and that it was answered.
func (c Cell) confirm(p Placed, sure bool, now time.Time) Cell {
	i := &c.Intent
	i.State, i.Op, i.GitHubID, i.URL, i.EndedAt, i.LastError = StateConfirmed, OpNone, p.ID, p.URL, now, ""
	c.Surface = c.Surface.adopt(Found{ID: p.ID, URL: p.URL, At: i.At, Run: i.Run})
	c.Surface.Open = i.opens()
	c.Surface = c.Surface.toCheck(sure, now)
	return c
}
