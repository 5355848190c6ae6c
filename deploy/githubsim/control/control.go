// Package control is the client of the simulator's control API: it plays the people who push, comment and
// click, sets faults, and reads the truth log.
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Client calls one simulator. It is safe for concurrent use.
type Client struct {
	base string
	http *http.Client
}

// New returns a client of the control API at base, such as "http://127.0.0.1:7001".
func New(base string) *Client {
	return &Client{base: strings.TrimRight(base, "/"), http: &http.Client{Timeout: time.Minute}}
}

// Error is an answer of the control API other than 2xx.
type Error struct {
	Status  int    `json:"-"`
	Message string `json:"message"`
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("githubsim control: %d %s", e.Status, e.Message) }

// Duration is written the way Go writes durations: "250ms", "10s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration: %w", err)
	}
	*d = Duration(v)
	return nil
}

// call sends in as JSON (nil: no body) and decodes the answer into out (nil: dropped).
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("githubsim control: encode %s: %w", path, err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return fmt.Errorf("githubsim control: %s: %w", path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("githubsim control: %s %s: %w", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("githubsim control: read answer of %s: %w", path, err)
	}
	if res.StatusCode >= 300 {
		problem := &Error{Status: res.StatusCode}
		if json.Unmarshal(raw, problem) != nil || problem.Message == "" {
			problem.Message = strings.TrimSpace(string(raw))
		}
		return problem
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("githubsim control: decode answer of %s: %w", path, err)
	}
	return nil
}
