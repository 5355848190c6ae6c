package ghapp

import (
	"net/http"
	"time"
)

// authenticated puts the installation's token on each request. A 401 surely did nothing: the token is
// dropped, and the request sent once more with another. Beside that, reads are tried again while a fresh
// token may not have reached all of GitHub. Nothing else is ever repeated.
type authenticated struct {
	next   http.RoundTripper
	tokens *tokens
	lag    time.Duration
}

// call is one request on its way, which may be sent several times.
type call struct {
	token     token
	refreshed bool
	until     time.Time // no pause for a fresh token reaches beyond
	pause     time.Duration
}

// RoundTrip implements http.RoundTripper.
func (a *authenticated) RoundTrip(req *http.Request) (*http.Response, error) {
	tok, err := a.tokens.get(req.Context())
	if err != nil {
		closeBody(req)
		return nil, err
	}
	c := &call{token: tok, until: time.Now().Add(a.lag), pause: lagPause}
	resp, err := a.send(req, tok)
	for err == nil && repeatable(req) {
		again, tokenErr := a.again(c, req, resp)
		if again || tokenErr != nil {
			drain(resp)
		}
		if !again {
			if tokenErr != nil {
				return nil, tokenErr
			}
			return resp, nil
		}
		next, rewindErr := rewound(req)
		if rewindErr != nil {
			return nil, rewindErr
		}
		resp, err = a.send(next, c.token)
	}
	return resp, err
}

// again says whether the request is to be sent once more, with the call's token.
func (a *authenticated) again(c *call, req *http.Request, resp *http.Response) (bool, error) {
	if left := a.lag - time.Since(c.token.minted); left > 0 && turnedAway(resp) {
		if resp.StatusCode != http.StatusUnauthorized && !reads(req.Method) {
			doubt(resp.Header, left)
			return false, nil
		}
		if c.wait(req) {
			return true, nil
		}
	}
	if resp.StatusCode != http.StatusUnauthorized {
		return false, nil
	}
	a.tokens.invalidate(c.token)
	if c.refreshed {
		return false, nil
	}
	c.refreshed = true
	var err error
	c.token, err = a.tokens.get(req.Context())
	return err == nil, err
}

func (a *authenticated) send(req *http.Request, tok token) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.Header.Set("Authorization", "token "+tok.value)
	return a.next.RoundTrip(out)
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

// drain lets go of an answer; the body of a failure is in memory already.
func drain(resp *http.Response) { _ = resp.Body.Close() }
