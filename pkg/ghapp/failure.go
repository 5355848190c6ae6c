package ghapp

import (
	"fmt"
	"time"
)

// Class says what a failure means for the work that asked.
type Class int

// The classes. A read is never Unknown: what only looks cannot have changed anything.
const (
	None        Class = iota // no failure
	NotExecuted              // surely had no effect, may be tried again
	Unknown                  // a write that may have had its effect: look before repeating it
	Refused                  // will not succeed by being repeated
	Throttled                // the installation pauses for RetryAfter
	Auth                     // GitHub does not accept our credentials, after one refresh
	Gone                     // the thing, or the installation, is not there (or not for us)
)

// String returns the class as it appears in logs and decisions.
func (c Class) String() string {
	switch c {
	case None:
		return "none"
	case NotExecuted:
		return "not executed"
	case Unknown:
		return "unknown"
	case Refused:
		return "refused"
	case Throttled:
		return "throttled"
	case Auth:
		return "auth"
	case Gone:
		return "gone"
	}
	return "invalid"
}

// Reasons, one per row of the classification.
const (
	ReasonNotSent          = "NOT_SENT"          // never left this process: no connection, no token in time
	ReasonInterrupted      = "INTERRUPTED"       // timeout, reset or cut-off answer
	ReasonServerError      = "SERVER_ERROR"      // 5xx and 408
	ReasonBadRequest       = "BAD_REQUEST"       // cannot even be built
	ReasonInvalid          = "INVALID"           // 400, 409, 422 and their like
	ReasonForbidden        = "FORBIDDEN"         // 403: a missing permission, or a state such as a locked thread
	ReasonRedirect         = "REDIRECT_REFUSED"  // to another host, or of a write
	ReasonTooLarge         = "TOO_LARGE"         // the answer exceeds MaxBody
	ReasonNotFound         = "NOT_FOUND"         // 404 and 410
	ReasonPrimaryLimit     = "PRIMARY_LIMIT"     // 403 or 429 with nothing remaining
	ReasonSecondaryLimit   = "SECONDARY_LIMIT"   // 403 or 429 otherwise
	ReasonSuspended        = "SUSPENDED"         // no token: the installation is suspended
	ReasonInstallationGone = "INSTALLATION_GONE" // no token: no such installation of this App
	ReasonBadCredentials   = "BAD_CREDENTIALS"   // 401 with a token that was just minted
	ReasonJWTRefused       = "JWT_REFUSED"       // 401 for the App itself: key, App id or clock
	ReasonNotGranted       = "NOT_GRANTED"       // no token: what was asked for is not granted
	ReasonMintUnavailable  = "TOKEN_UNAVAILABLE" // no token: GitHub did not answer in time
	ReasonUnexpected       = "UNEXPECTED_STATUS" // an answer GitHub does not document
	ReasonCancelled        = "CONTEXT_DONE"      // the caller's context ended
	ReasonTokenLag         = "TOKEN_LAG"         // a 403 or 404 of a write with a token that not all of GitHub may know yet
	ReasonAddress          = "ADDRESS_REFUSED"   // GitHub's name leads to an address that it can't have
)

// suspendedPause is how long a suspended installation is left alone. It is short, because the
// event that ends a suspension may be lost, and nobody else would ask again.
const suspendedPause = 10 * time.Minute

// Failure is a call that did not succeed, sorted by what it means. Its text names the method,
// the status and the reason: no URL, no body, no credential.
type Failure struct {
	Class      Class
	Reason     string
	Status     int           // of GitHub's answer, 0 when there was none
	Method     string        // of the request, "" when not known
	Message    string        // GitHub's own words, at most 300 bytes: for people, never to be parsed
	RetryAfter time.Duration // set when Throttled; otherwise advice, 0 when there is none
	Advised    bool          // RetryAfter is GitHub's word, or follows from it; else it is ours, and grows
	Mint       bool          // the token could not be had: the request itself was never sent
	Err        error         // what happened, for errors.As
}

// Error implements error.
func (f *Failure) Error() string {
	method := f.Method
	if method == "" {
		method = "call"
	}
	if f.Mint {
		method = "token for " + method
	}
	if f.Status != 0 {
		return fmt.Sprintf("github: %s answered %d (%s, %s)", method, f.Status, f.Class, f.Reason)
	}
	return fmt.Sprintf("github: %s failed (%s, %s)", method, f.Class, f.Reason)
}

// Unwrap returns what happened underneath.
func (f *Failure) Unwrap() error { return f.Err }
