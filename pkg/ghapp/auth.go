package ghapp

import (
	"net/http"
	"time"
)

// lagPause is between the tries of a fresh token that GitHub does not know yet.
const lagPause = time.Second

// authenticated puts the installation's token on each request. After a 401, which surely did
// nothing, it drops that token and sends the request once more with another; only while that fresh
// one may not have reached all of GitHub is it tried again. Nothing else is ever repeated.
type authenticated struct {
	next   http.RoundTripper
	tokens *tokens
	lag    time.Duration
}

// RoundTrip implements http.RoundTripper.
func (a *authenticated) RoundTrip(req *http.Request) (*http.Response, error) {
	tok, err := a.tokens.get(req.Context())
	if err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := a.send(req, tok)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || !repeatable(req) {
		return resp, err
	}
	a.tokens.invalidate(tok)
	tok, err = a.tokens.get(req.Context())
	if err != nil {
		drain(resp)
		return nil, err
	}
	until := time.Now().Add(a.lag)
	for {
		drain(resp)
		again, err := rewound(req)
		if err != nil {
			return nil, err
		}
		resp, err = a.send(again, tok)
		if err != nil || resp.StatusCode != http.StatusUnauthorized {
			return resp, err
		}
		if time.Now().Add(lagPause).After(until) || !pause(req, lagPause) {
			a.tokens.invalidate(tok)
			return resp, nil
		}
	}
}

func (a *authenticated) send(req *http.Request, tok token) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.Header.Set("Authorization", "token "+tok.value)
	return a.next.RoundTrip(out)
}

// cloning keeps the request of the caller as it was: ghinstallation writes into it, and a write
// there would add up over redirects.
type cloning struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c cloning) RoundTrip(req *http.Request) (*http.Response, error) {
	return c.next.RoundTrip(req.Clone(req.Context()))
}

func repeatable(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

func rewound(req *http.Request) (*http.Request, error) {
	again := req.Clone(req.Context())
	if req.GetBody == nil {
		return again, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	again.Body = body
	return again, nil
}

// drain lets go of an answer; the body of a 401 is in memory already.
func drain(resp *http.Response) { _ = resp.Body.Close() }

func pause(req *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-req.Context().Done():
		return false
	}
}
