package publisher

import (
	"errors"
	"strings"
	"time"
)

// Class says what a failed call means for the intent that made it.
type Class int

// The classes of failures. A call whose failure is none of these is Unknown.
const (
	Unknown     Class = iota // a write that may have had its effect
	NotExecuted              // surely had no effect, may be tried again
	Refused                  // will not succeed by being repeated
	Throttled                // the whole installation waits
	Gone                     // the thing is not there, or not for us
)

// Failure is a call of GitHub, or of another service, that did not succeed.
type Failure struct {
	Class      Class
	Reason     string        // a stable word
	RetryAfter time.Duration // advice; 0 where there is none
	Everything bool          // Gone: not the thing itself but the whole installation
	Err        error
}

// Error implements error.
func (f *Failure) Error() string {
	if f.Err == nil {
		return f.Reason
	}
	return f.Err.Error()
}

// Unwrap returns what happened underneath.
func (f *Failure) Unwrap() error { return f.Err }

// FailureOf finds the failure in an error; one that was not classified may have had its effect.
func FailureOf(err error) Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return *f
	}
	return Failure{Class: Unknown, Reason: "unclassified", Err: err}
}

// Word is the failure as the reason of an intent that it ended.
func (f Failure) Word() string { return strings.ToLower(f.Reason) }

// Suspended tells that the installation gets no token: that may end at any time.
func (f Failure) Suspended() bool { return f.Word() == "suspended" }

const (
	minPause = time.Minute
	maxPause = time.Hour
)

// Pause is how long an installation is left alone after its n-th throttling in a row, n from 1: as long
// as GitHub said, else a minute, doubled each time, an hour at most.
func (f Failure) Pause(n int) time.Duration {
	if f.RetryAfter > 0 {
		return f.RetryAfter
	}
	return min(minPause<<min(max(n-1, 0), 6), maxPause)
}
