package control

import (
	"context"
	"net/http"
)

// Classes that stand for many routes. Every other class is one route, such as "comments.create": the list is in
// the simulator's README.
const (
	Everything = "*"
	Reads      = "reads"
	Writes     = "writes"
)

// Fault makes matching requests go wrong. Of the effects, every one that is set applies.
type Fault struct {
	ID           string `json:"id,omitempty"`
	Class        string `json:"class"`
	Repository   int64  `json:"repository,omitempty"`   // only requests about this repository
	Installation int64  `json:"installation,omitempty"` // only requests of this installation
	Skip         int    `json:"skip,omitempty"`         // matching requests to spare first
	Times        int    `json:"times,omitempty"`        // requests to hit; 0: until it is removed
	// Probability hits that part of the requests, 0 all of them: by dice that Seed loads, so that the same requests in
	// the same order are hit again.
	Probability float64 `json:"probability,omitempty"`
	Seed        uint64  `json:"seed,omitempty"`

	Delay Duration    `json:"delay,omitempty"` // before the request is handled
	Error *ErrorFault `json:"error,omitempty"` // the request is not handled
	Limit *LimitFault `json:"limit,omitempty"` // the request is not handled
	Lose  Loss        `json:"lose,omitempty"`  // the request is handled and its answer lost
	Hide  *HideFault  `json:"hide,omitempty"`  // what the request writes is not seen yet
	Stale *StaleFault `json:"stale,omitempty"` // pull requests are read as they were
	Token *TokenFault `json:"token,omitempty"` // tokens minted by the request do not work yet
}

// ErrorFault is an answer in place of the real one.
type ErrorFault struct {
	Status  int    `json:"status"`
	Message string `json:"message,omitempty"`
	HTML    bool   `json:"html,omitempty"` // a front end's page instead of JSON
	// Close closes the connection instead: nothing was done, and the caller cannot know.
	Close bool `json:"close,omitempty"`
}

// LimitFault is a rate limit. Status is 403 (default) or 429.
type LimitFault struct {
	Secondary  bool `json:"secondary,omitempty"`
	Status     int  `json:"status,omitempty"`
	RetryAfter int  `json:"retry_after,omitempty"` // seconds; 0: no such header
	Reset      int  `json:"reset,omitempty"`       // seconds until a primary limit's window ends; default 60
}

// Loss says how an answer is lost.
type Loss string

// The losses.
const (
	LoseClose Loss = "close" // the connection closes without an answer
	Lose502   Loss = "502"   // a front end answers 502 with HTML
	LoseError Loss = "500"   // 502 with JSON, as after the ten seconds that GitHub gives itself
	LoseHang  Loss = "hang"  // nothing comes until the caller gives up
	LoseCut   Loss = "cut"   // half of the answer comes, then the connection closes
	LoseStall Loss = "stall" // half of the answer comes, and no more until the caller gives up
)

// HideFault hides a write from lists, and with Get also from single reads.
type HideFault struct {
	For Duration `json:"for"`
	Get bool     `json:"get,omitempty"`
}

// StaleFault serves a pull request as it was Age ago, or serves the first Reads reads after every change the
// version before it. A pull request that was not there yet is 404.
type StaleFault struct {
	Age   Duration `json:"age,omitempty"`
	Reads int      `json:"reads,omitempty"`
}

// TokenFault keeps a new token unusable (401) for a time, or for its first uses.
type TokenFault struct {
	For  Duration `json:"for,omitempty"`
	Uses int      `json:"uses,omitempty"`
}

// Limits are the simulated rate limits of one installation. Without Enforce they are only counted.
type Limits struct {
	Enforce         bool `json:"enforce"`
	PerHour         int  `json:"per_hour"`          // requests
	PointsPerMinute int  `json:"points_per_minute"` // read 1, write 5
	CreatesPerMin   int  `json:"creates_per_minute"`
	CreatesPerHour  int  `json:"creates_per_hour"`
	Concurrent      int  `json:"concurrent,omitempty"` // requests at once

	// How a limit is told: 403 (default) or 429, and secondary ones without retry-after where NoRetryAfter is set.
	Status       int  `json:"status,omitempty"`
	NoRetryAfter bool `json:"no_retry_after,omitempty"`
}

// GitHubLimits are GitHub's documented numbers, enforced.
func GitHubLimits() Limits {
	return Limits{Enforce: true, PerHour: 5000, PointsPerMinute: 900, CreatesPerMin: 80, CreatesPerHour: 500, Concurrent: 100}
}

// AddFault sets a fault and returns it with its id.
func (c *Client) AddFault(ctx context.Context, f Fault) (Fault, error) {
	var out Fault
	return out, c.call(ctx, http.MethodPost, "/faults", f, &out)
}

// Faults lists the faults that are set; Times is what is left of them.
func (c *Client) Faults(ctx context.Context) ([]Fault, error) {
	var out []Fault
	return out, c.call(ctx, http.MethodGet, "/faults", nil, &out)
}

// RemoveFault ends one fault.
func (c *Client) RemoveFault(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/faults/"+id, nil, nil)
}

// ClearFaults ends all faults. What they have hidden stays hidden for its time: Settle ends that too.
func (c *Client) ClearFaults(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, "/faults", nil, nil)
}

// Settle ends every lag: hidden writes are seen, young tokens work, and the hide, stale and token faults end.
func (c *Client) Settle(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/settle", nil, nil)
}

// SetLimits replaces the rate limits and starts their windows anew.
func (c *Client) SetLimits(ctx context.Context, l Limits) error {
	return c.call(ctx, http.MethodPut, "/limits", l, nil)
}
