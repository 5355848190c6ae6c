// Package ghapp speaks to GitHub as an App: it authenticates, keeps one client per installation,
// and says of every failure what it means for the work that asked.
package ghapp

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/go-github/v66/github"
)

// Client is GitHub as one installation sees it. Repositories are named by their numeric id
// ("repositories/{id}/pulls/{n}"), which survives renames and transfers, so requests are built
// with GitHub.NewRequest and sent with Do.
type Client struct {
	GitHub       *github.Client
	Installation int64 // 0 is the App itself

	wire    *wire
	cache   *cache
	timeout time.Duration
}

// Do sends the request and decodes the answer into v, as github.Client.Do does (an io.Writer gets
// the raw body, nil gets nothing). Its error is always a *Failure; it knows whether the
// request can have left this process, which Classify alone cannot.
func (c *Client) Do(ctx context.Context, req *http.Request, v any) (*github.Response, error) {
	limited, cancel := context.WithTimeout(ctx, c.timeout) // redirects included
	defer cancel()
	var sent atomic.Bool
	resp, err := c.GitHub.Do(context.WithValue(limited, sentKey{}, &sent), req, v)
	f := classify(err, req.Method)
	if f.Class == None { // also 202: accepted is not a failure
		c.wire.limits.calm(c.Installation, time.Now())
		return resp, nil
	}
	if resp != nil && resp.StatusCode == http.StatusOK { // what can't be read is not kept, or it would be read again and again
		c.cache.drop(place{c.Installation, req.URL.String(), req.Header.Get("Accept")})
	}
	if f.Class == Throttled && !f.Advised {
		f.RetryAfter = c.wire.limits.slowDown(c.Installation, time.Now())
	}
	if f.Reason == ReasonCancelled && ctx.Err() == nil { // our own limit, not the caller's
		f.Reason = ReasonInterrupted
	}
	if f.Class == Unknown && !sent.Load() {
		f.Class, f.Reason = NotExecuted, ReasonNotSent
	}
	return resp, &f
}

// Get reads the path below the base URL ("repositories/42/pulls/7") into v.
func (c *Client) Get(ctx context.Context, path string, v any) (*github.Response, error) {
	req, err := c.GitHub.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return nil, &Failure{Class: Refused, Reason: ReasonBadRequest, Method: http.MethodGet, Err: err}
	}
	return c.Do(ctx, req, v)
}

// Quota returns the primary limit as GitHub last told it to this installation.
func (c *Client) Quota() Quota { return c.wire.limits.quota(c.Installation) }
