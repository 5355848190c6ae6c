package ghapp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestClassificationOfAnswers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	date := now.Format(http.TimeFormat)
	reset := strconv.FormatInt(now.Add(10*time.Minute).Unix(), 10)
	const secondary = `{"message":"You have exceeded a secondary rate limit.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`
	for name, c := range map[string]struct {
		method string
		status int
		header map[string]string
		body   string
		class  Class
		reason string
		wait   time.Duration
	}{
		"primary 403":                {"GET", 403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, `{"message":"API rate limit exceeded"}`, Throttled, ReasonPrimaryLimit, 10*time.Minute + time.Second},
		"primary 429":                {"GET", 429, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, `{}`, Throttled, ReasonPrimaryLimit, 10*time.Minute + time.Second},
		"primary without reset":      {"GET", 403, map[string]string{"X-RateLimit-Remaining": "0"}, `{}`, Throttled, ReasonPrimaryLimit, time.Minute},
		"primary, reset long past":   {"GET", 429, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}, `{}`, Throttled, ReasonPrimaryLimit, time.Second},
		"primary, absurd reset":      {"GET", 429, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"}, `{}`, Throttled, ReasonPrimaryLimit, mostPause},
		"secondary 403":              {"POST", 403, map[string]string{"X-RateLimit-Remaining": "4321", "Retry-After": "90"}, secondary, Throttled, ReasonSecondaryLimit, 90 * time.Second},
		"secondary 429":              {"POST", 429, map[string]string{"X-RateLimit-Remaining": "4321", "Retry-After": "90"}, secondary, Throttled, ReasonSecondaryLimit, 90 * time.Second},
		"secondary without a time":   {"POST", 403, map[string]string{"X-RateLimit-Remaining": "4321", "X-RateLimit-Reset": reset}, secondary, Throttled, ReasonSecondaryLimit, time.Minute},
		"secondary by link only":     {"POST", 403, nil, `{"message":"slow down","documentation_url":"https://docs.github.com/x#secondary-rate-limits"}`, Throttled, ReasonSecondaryLimit, time.Minute},
		"secondary, another link":    {"POST", 403, nil, `{"message":"You have exceeded a secondary rate limit","documentation_url":"https://docs.github.com/rest/issues"}`, Throttled, ReasonSecondaryLimit, time.Minute},
		"abuse, the old word":        {"GET", 403, nil, `{"message":"You have triggered an abuse detection mechanism"}`, Throttled, ReasonSecondaryLimit, time.Minute},
		"retry-after is a date":      {"GET", 429, map[string]string{"Retry-After": now.Add(30 * time.Second).Format(http.TimeFormat)}, `{}`, Throttled, ReasonSecondaryLimit, 30 * time.Second},
		"retry-after is absurd":      {"GET", 429, map[string]string{"Retry-After": "9223372036854775807"}, `{}`, Throttled, ReasonSecondaryLimit, mostPause},
		"429 of a proxy, HTML":       {"GET", 429, nil, `<html>`, Throttled, ReasonSecondaryLimit, time.Minute},
		"missing permission":         {"POST", 403, map[string]string{"X-RateLimit-Remaining": "4321", "X-RateLimit-Reset": reset}, `{"message":"Resource not accessible by integration"}`, Refused, ReasonForbidden, 0},
		"locked":                     {"POST", 403, nil, `{"message":"Unable to create comment because issue is locked."}`, Refused, ReasonForbidden, 0},
		"not found":                  {"GET", 404, nil, `{"message":"Not Found"}`, Gone, ReasonNotFound, 0},
		"gone":                       {"POST", 410, nil, `{}`, Gone, ReasonNotFound, 0},
		"invalid":                    {"POST", 422, nil, `{"message":"Validation Failed","errors":["line must be part of the diff"]}`, Refused, ReasonInvalid, 0},
		"malformed":                  {"POST", 400, nil, `{}`, Refused, ReasonInvalid, 0},
		"too large a diff":           {"GET", 406, nil, `{}`, Refused, ReasonInvalid, 0},
		"conflict":                   {"PATCH", 409, nil, `{}`, Refused, ReasonInvalid, 0},
		"server error of a read":     {"GET", 502, nil, `<html><h1>502</h1></html>`, NotExecuted, ReasonServerError, 0},
		"server error of a write":    {"POST", 502, nil, `<html><h1>502</h1></html>`, Unknown, ReasonServerError, 0},
		"server error, PATCH":        {"PATCH", 500, nil, `{}`, Unknown, ReasonServerError, 0},
		"server error names a time":  {"GET", 503, map[string]string{"Retry-After": "5"}, ``, NotExecuted, ReasonServerError, 5 * time.Second},
		"request timeout of a write": {"POST", 408, nil, ``, Unknown, ReasonServerError, 0},
		"not modified, unasked":      {"GET", 304, nil, ``, Refused, ReasonUnexpected, 0},
		"moved, no location":         {"GET", 301, nil, ``, Refused, ReasonRedirect, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", date)
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			cl := h.app(t).Client(1)
			for attempt := range 2 { // the second says that v66 has not locked itself out
				req, err := cl.GitHub.NewRequest(c.method, "repositories/1/x", nil)
				if err != nil {
					t.Fatal(err)
				}
				_, err = cl.Do(t.Context(), req, nil)
				f := Classify(err)
				if f.Class != c.class || f.Reason != c.reason || f.RetryAfter != c.wait || f.Status != c.status || f.Method != c.method {
					t.Errorf("call %d: got %s %s wait %s status %d method %q", attempt, f.Class, f.Reason, f.RetryAfter, f.Status, f.Method)
				}
				// The services of go-github, which do not pass through Do, are sorted the same.
				if plain := Classify(f.Err); plain.Class != c.class || plain.RetryAfter != c.wait {
					t.Errorf("call %d: plainly %s %s", attempt, plain.Class, plain.RetryAfter)
				}
			}
		})
	}
}

func TestLimitsNeverFreezeTheClient(t *testing.T) {
	t.Parallel()
	reset := strconv.FormatInt(time.Now().Add(50*time.Minute).Unix(), 10)
	for name, limit := range map[string]func(http.ResponseWriter){
		"a secondary limit without a time": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"documentation_url":"https://docs.github.com/x#about-secondary-rate-limits"}`))
		},
		"a primary limit": func(w http.ResponseWriter) {
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.WriteHeader(http.StatusForbidden)
		},
		"a success with nothing remaining": func(w http.ResponseWriter) {
			w.Header().Set("X-RateLimit-Remaining", "0")
			_, _ = w.Write([]byte(`{}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-RateLimit-Limit", "5000")
				w.Header().Set("X-RateLimit-Reset", reset)
				if calls.Add(1) == 1 {
					limit(w)
					return
				}
				ok(w, r)
			})
			c := h.app(t).Client(1)
			_, _ = c.Get(t.Context(), "repositories/1", nil)
			if _, err := c.Get(t.Context(), "repositories/1", nil); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if calls.Load() != 2 {
				t.Errorf("%d calls arrived, want 2", calls.Load())
			}
		})
	}
}

func TestClassificationWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: fmt.Errorf("connection refused")}
	for name, c := range map[string]struct {
		err   error
		class Class
	}{
		"nothing":                   {nil, None},
		"refused connection":        {&url.Error{Op: "Post", Err: refused}, NotExecuted},
		"reset of a read":           {&url.Error{Op: "Get", Err: fmt.Errorf("reset")}, NotExecuted},
		"reset of a write":          {&url.Error{Op: "Post", Err: fmt.Errorf("reset")}, Unknown},
		"a bare context's end":      {context.DeadlineExceeded, Unknown},
		"JSON that breaks off":      {&json.SyntaxError{}, Unknown},
		"wrapped failure":           {fmt.Errorf("read: %w", &Failure{Class: Gone}), Gone},
		"redirect refused, a write": {&url.Error{Op: "Post", Err: fmt.Errorf("x: %w", errRedirect)}, Refused},
	} {
		if got := Classify(c.err); got.Class != c.class {
			t.Errorf("%s: %s, want %s", name, got.Class, c.class)
		}
	}
}

func TestLostAnswers(t *testing.T) {
	t.Parallel()
	cut := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	torn := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"id": 1`))
	}
	for name, c := range map[string]struct {
		method string
		serve  http.HandlerFunc
		class  Class
	}{
		"read, cut":   {"GET", cut, NotExecuted},
		"write, cut":  {"POST", cut, Unknown},
		"read, torn":  {"GET", torn, NotExecuted},
		"write, torn": {"POST", torn, Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cl := newHub(t, c.serve).app(t).Client(1)
			req, err := cl.GitHub.NewRequest(c.method, "repositories/1/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			var v struct{ ID int }
			_, err = cl.Do(t.Context(), req, &v)
			if got := Classify(err); got.Class != c.class || got.Reason != ReasonInterrupted {
				t.Errorf("got %s %s, want %s", got.Class, got.Reason, c.class)
			}
		})
	}
}

func TestTimeoutOfAWriteIsUnknown(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	h := newHub(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) }) // before the server closes
	cl := h.app(t, func(c *Config) { c.Timeout = 300 * time.Millisecond }).Client(1)
	req, err := cl.GitHub.NewRequest(http.MethodPost, "repositories/1/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = cl.Do(t.Context(), req, nil)
	if got := Classify(err); got.Class != Unknown {
		t.Errorf("got %s %s", got.Class, got.Reason)
	}
}

func TestHostThatIsAwayExecutedNothing(t *testing.T) {
	t.Parallel()
	h := newHub(t, ok)
	cl := h.app(t).Client(1)
	if _, err := cl.Get(t.Context(), "repositories/1", nil); err != nil {
		t.Fatal(err)
	}
	h.CloseClientConnections()
	_ = h.Listener.Close()
	req, err := cl.GitHub.NewRequest(http.MethodPost, "repositories/1/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = cl.Do(t.Context(), req, nil)
	if got := Classify(err); got.Class != NotExecuted || got.Reason != ReasonNotSent {
		t.Errorf("got %s %s", got.Class, got.Reason)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 1000
	for name, c := range map[string]struct {
		size   int
		status int
		class  Class
	}{
		"at the limit":    {limit, 200, None},
		"past the limit":  {limit + 1, 200, Refused},
		"a long failure":  {1 << 20, 500, NotExecuted},
		"a long 403 page": {1 << 20, 403, Refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(`"` + strings.Repeat("x", c.size-2) + `"`))
			})
			var got string
			_, err := h.app(t, func(cfg *Config) { cfg.MaxBody = limit }).Client(1).Get(t.Context(), "repositories/1", &got)
			if f := Classify(err); f.Class != c.class {
				t.Errorf("got %s %s, want %s", f.Class, f.Reason, c.class)
			}
			if c.class == None && len(got) != limit-2 {
				t.Errorf("read %d bytes", len(got))
			}
		})
	}
}
