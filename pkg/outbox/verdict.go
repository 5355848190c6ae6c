package outbox

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// Policy bounds repetition. Its rules are DefaultPolicy's unless a test shortens them.
type Policy struct {
	Min         time.Duration // pause after the first failure
	Max         time.Duration // longest pause of one message
	MaxPause    time.Duration // longest pause of a destination, whose return should be noticed soon
	MaxRetry    time.Duration // longest pause that a receiver may ask for
	MaxAttempts int           // attempts that count before a message may park
	MaxAge      time.Duration // and how old it must be for that
}

// DefaultPolicy retries for an hour and 20 attempts, which is how long a repair may take.
var DefaultPolicy = Policy{
	Min: time.Second, Max: 5 * time.Minute, MaxPause: 30 * time.Second, MaxRetry: time.Hour,
	MaxAttempts: 20, MaxAge: time.Hour,
}

// Reasons why a message parks, beside the gRPC codes that park at once.
const (
	ReasonAttempts    = "ATTEMPTS_EXHAUSTED"
	ReasonUndecodable = "UNDECODABLE"
)

// Answer is what a send brought.
type Answer struct {
	Code        codes.Code
	RetryAfter  time.Duration // of RetryInfo; meaningful where HasRetry is set
	HasRetry    bool
	Undecodable bool // the receiver could not decode the request
}

// History is what the message went through before.
type History struct {
	Attempts int           // that counted
	Age      time.Duration // since its first NotBefore
	Outages  int           // of the destination in a row, up to now
}

// Outcome is how one send ended. Its values are the outcome label of the metric.
type Outcome string

// The outcomes of a call; a ring has its own two.
const (
	Sent       Outcome = "sent"
	Deferred   Outcome = "deferred"    // the receiver asked for a pause of this message
	Away       Outcome = "away"        // the destination as a whole is away
	Failed     Outcome = "failed"      // an attempt that counted
	Parked     Outcome = "parked"      // an operator must look
	Released   Outcome = "released"    // not sent by this dispatcher, free for the next
	Rung       Outcome = "rung"        // a doorbell was rung
	RingFailed Outcome = "ring_failed" // and nobody will try again
	Fenced     Outcome = "fenced"      // another dispatcher took the message over
)

// final tells that the message is done with, without anybody's look.
func (o Outcome) final() bool { return o == Sent || o == Rung || o == RingFailed }

// Verdict is what follows from an answer.
type Verdict struct {
	Outcome Outcome
	Delay   time.Duration // until the message may be sent again
	Counted bool          // the attempt counts
	Reason  string        // why it parks
}

// away are the codes that speak of the destination: "not me, not now". They say nothing of the message.
var away = []codes.Code{
	codes.Unavailable, codes.DeadlineExceeded, codes.Unimplemented, codes.Unauthenticated, codes.PermissionDenied,
}

// hopeless are the codes that no repetition changes, with the reason under which their messages park.
var hopeless = map[codes.Code]string{
	codes.InvalidArgument: "INVALID_ARGUMENT", codes.OutOfRange: "OUT_OF_RANGE", codes.DataLoss: "DATA_LOSS",
}

// Judge decides what an answer means for its message. It is pure; jitter is in [0, 1).
//
// RetryInfo speaks of this message, whatever the code. A message that finds its destination away is
// delayed beyond the destination's pause, so that another is the next probe: one that is slow for reasons
// of its own cannot keep the destination for itself.
func (p Policy) Judge(a Answer, h History, jitter float64) Verdict {
	switch {
	case a.Code == codes.OK:
		return Verdict{Outcome: Sent, Counted: true}
	case a.HasRetry:
		return Verdict{Outcome: Deferred, Delay: min(max(a.RetryAfter, p.Min), p.MaxRetry)}
	case slices.Contains(away, a.Code):
		return Verdict{Outcome: Away, Delay: p.backoff(h.Outages+1, p.MaxPause, jitter)}
	case hopeless[a.Code] != "":
		return Verdict{Outcome: Parked, Counted: true, Reason: hopeless[a.Code]}
	case a.Undecodable:
		return Verdict{Outcome: Parked, Counted: true, Reason: ReasonUndecodable}
	case h.Attempts+1 >= p.MaxAttempts && h.Age >= p.MaxAge:
		return Verdict{Outcome: Parked, Counted: true, Reason: ReasonAttempts}
	default:
		return Verdict{Outcome: Failed, Counted: true, Delay: p.backoff(h.Attempts+1, p.Max, jitter)}
	}
}

// backoff doubles from Min with each failure up to limit, and takes up to half of it off at random, so
// that what failed together does not come back together.
func (p Policy) backoff(failures int, limit time.Duration, jitter float64) time.Duration {
	d := limit
	if shift := max(failures-1, 0); shift < 32 && p.Min<<shift < limit {
		d = p.Min << shift
	}
	return d - time.Duration(jitter*float64(d)/2)
}
