package ghapp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/google/go-github/v66/github"
)

// Classify sorts an error of Client.Do or of any go-github call; nil and "202 Accepted" are None.
// Without the request at hand an interrupted call counts as a write, so that nothing is repeated
// blindly; Do knows better.
func Classify(err error) Failure { return classify(err, "") }

func classify(err error, method string) Failure {
	if err == nil {
		return Failure{}
	}
	var accepted *github.AcceptedError
	if errors.As(err, &accepted) {
		return Failure{}
	}
	var known *Failure
	if errors.As(err, &known) {
		f := *known
		if f.Method == "" || f.Mint && method != "" {
			f.Method = method
		}
		return f
	}
	if resp, message, secondary := answer(err); resp != nil { //nolint:bodyclose // a failure's body is in memory
		f := classifyResponse(resp, message, secondary)
		f.Err = err
		return f
	}
	return unanswered(err, method)
}

// answer finds GitHub's response behind the several error types of go-github v66, and whether the
// body's documentation link names a secondary limit.
func answer(err error) (resp *http.Response, message string, secondary bool) {
	var (
		plain     *github.ErrorResponse
		primary   *github.RateLimitError
		abuse     *github.AbuseRateLimitError
		twoFactor *github.TwoFactorAuthError
	)
	switch {
	case errors.As(err, &primary):
		return primary.Response, primary.Message, false
	case errors.As(err, &abuse):
		return abuse.Response, abuse.Message, true
	case errors.As(err, &twoFactor):
		return twoFactor.Response, twoFactor.Message, false
	case errors.As(err, &plain):
		return plain.Response, plain.Message, false
	}
	return nil, "", false
}

// ClassifyResponse sorts an answer by its status, its headers and GitHub's message. The message
// serves one case only: a secondary limit that comes as a bare 403. Any 2xx is None.
func ClassifyResponse(resp *http.Response, message string) Failure {
	return classifyResponse(resp, message, false)
}

func classifyResponse(resp *http.Response, message string, secondary bool) Failure {
	f := Failure{Status: resp.StatusCode, Message: clip(message, 300)}
	if resp.Request != nil {
		f.Method = resp.Request.Method
	}
	switch s := resp.StatusCode; {
	case s >= 200 && s < 300:
		return Failure{}
	case s == http.StatusTooManyRequests, s == http.StatusForbidden && (secondary || isLimit(resp.Header, message)):
		f.Class = Throttled
		f.Reason, f.RetryAfter, f.Advised = limitOf(resp.Header)
	case s == http.StatusUnauthorized:
		f.Class, f.Reason = Auth, ReasonBadCredentials
	case resp.Header.Get(doubted) != "":
		f.Class, f.Reason, f.RetryAfter = NotExecuted, ReasonTokenLag, lagLeft(resp.Header)
	case s == http.StatusForbidden:
		f.Class, f.Reason = Refused, ReasonForbidden
	case s == http.StatusNotFound, s == http.StatusGone:
		f.Class, f.Reason = Gone, ReasonNotFound
	case s >= 500, s == http.StatusRequestTimeout:
		f.Class, f.Reason = interrupted(f.Method), ReasonServerError
		f.RetryAfter, f.Advised = retryAfter(resp.Header), retryAfter(resp.Header) > 0
	case s >= 400:
		f.Class, f.Reason = Refused, ReasonInvalid
	case s >= 300 && s != http.StatusNotModified:
		f.Class, f.Reason = Refused, ReasonRedirect
	default:
		f.Class, f.Reason = Refused, ReasonUnexpected
	}
	return f
}

// unanswered sorts what failed before there was a whole answer.
func unanswered(err error, method string) Failure {
	f := Failure{Class: interrupted(method), Reason: ReasonInterrupted, Method: method, Err: err}
	var wrapped *url.Error
	if method == "" && errors.As(err, &wrapped) {
		f.Method = strings.ToUpper(wrapped.Op)
		f.Class = interrupted(f.Method)
	}
	var dial *net.OpError
	switch {
	case errors.Is(err, errRedirect):
		f.Class, f.Reason = Refused, ReasonRedirect
	case errors.Is(err, errTooLarge):
		f.Reason = ReasonTooLarge
		if f.Class == NotExecuted {
			f.Class = Refused
		}
	case errors.Is(err, errAddress):
		f.Class, f.Reason = NotExecuted, ReasonAddress
	case errors.As(err, &dial) && dial.Op == "dial":
		f.Class, f.Reason = NotExecuted, ReasonNotSent
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.Reason = ReasonCancelled
	}
	return f
}

// interrupted is the class of a call that may or may not have been carried out.
func interrupted(method string) Class {
	if reads(method) {
		return NotExecuted
	}
	return Unknown
}

func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
