package ghapp

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// wired is a GitHub without a network, so that a test's clock can be its own.
type wired struct {
	mu    sync.Mutex
	mints int
	calls []string                                // "GET token secret-1", in order
	serve func(n int, token string) (int, string) // n counts the calls
	life  time.Duration
}

func (g *wired) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	status, body := http.StatusCreated, ""
	if strings.HasSuffix(r.URL.Path, "/access_tokens") {
		g.mints++
		body = fmt.Sprintf(`{"token":"secret-%d","expires_at":%q}`, g.mints, time.Now().Add(g.life).UTC().Format(time.RFC3339))
	} else {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "token ")
		g.calls = append(g.calls, r.Method+" "+token)
		status, body = g.serve(len(g.calls), token)
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

func (g *wired) client(t *testing.T) *Client {
	t.Helper()
	if g.life == 0 {
		g.life = time.Hour
	}
	a, err := NewApp(Config{AppID: 7, PrivateKey: testKey(), BaseURL: "https://api.github.com", TokenLag: 5 * time.Second}, Deps{Transport: g})
	if err != nil {
		t.Fatal(err)
	}
	return a.Client(3)
}

func (g *wired) call(t *testing.T, c *Client, method string) Failure {
	t.Helper()
	var body any
	if method != http.MethodGet {
		body = map[string]string{"body": "x"}
	}
	req, err := c.GitHub.NewRequest(method, "repositories/1/issues/1/comments", body)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(t.Context(), req, nil)
	return Classify(err)
}

const masked = `{"message":"Not Found"}`

// What a fresh token brings at first is doubted, for a bounded time and with that same token.
func TestFreshTokenLag(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, body string
		status       int
		lasts        int // calls that are answered so
		class        Class
		reason       string
		calls, mints int
		within       time.Duration
	}{
		"read, 401":               {"GET", `{}`, 401, 2, None, "", 3, 1, 3 * time.Second},
		"read, 403":               {"GET", `{"message":"Resource not accessible by integration"}`, 403, 2, None, "", 3, 1, 3 * time.Second},
		"read, 404":               {"GET", masked, 404, 3, None, "", 4, 1, 5 * time.Second},
		"read, 404 for good":      {"GET", masked, 404, 99, Gone, ReasonNotFound, 4, 1, 5 * time.Second},
		"read, 403 for good":      {"GET", `{}`, 403, 99, Refused, ReasonForbidden, 4, 1, 5 * time.Second},
		"read, 401 for good":      {"GET", `{}`, 401, 99, Auth, ReasonBadCredentials, 5, 2, 5 * time.Second},
		"a limit is believed":     {"GET", `{"message":"You have exceeded a secondary rate limit"}`, 403, 99, Throttled, ReasonSecondaryLimit, 1, 1, time.Second},
		"an error is no lag":      {"GET", `{}`, 502, 99, NotExecuted, ReasonServerError, 1, 1, time.Second},
		"write, 401":              {"POST", `{}`, 401, 1, None, "", 2, 1, time.Second},
		"write, 404: not again":   {"POST", masked, 404, 99, NotExecuted, ReasonTokenLag, 1, 1, time.Second},
		"write, 403: not again":   {"PATCH", `{}`, 403, 99, NotExecuted, ReasonTokenLag, 1, 1, time.Second},
		"write, 422 is the truth": {"POST", `{}`, 422, 99, Refused, ReasonInvalid, 1, 1, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := &wired{serve: func(n int, _ string) (int, string) {
					if n <= c.lasts {
						return c.status, c.body
					}
					return 200, `{}`
				}}
				began := time.Now()
				f := g.call(t, g.client(t), c.method)
				if f.Class != c.class || f.Reason != c.reason || len(g.calls) != c.calls || g.mints != c.mints {
					t.Errorf("got %s %s after %v, %d mints", f.Class, f.Reason, g.calls, g.mints)
				}
				if f.Reason == ReasonTokenLag && (f.RetryAfter <= 0 || f.RetryAfter > 5*time.Second) {
					t.Errorf("to be tried again in %s", f.RetryAfter)
				}
				if took := time.Since(began); took > c.within {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

// Once the token is known everywhere, a refusal is the truth.
func TestOldTokenIsBelieved(t *testing.T) {
	t.Parallel()
	for _, status := range []int{403, 404} {
		for _, method := range []string{"GET", "POST"} {
			synctest.Test(t, func(t *testing.T) {
				g := &wired{serve: func(n int, _ string) (int, string) {
					if n == 1 {
						return 200, `{}`
					}
					return status, `{}`
				}}
				c := g.client(t)
				g.call(t, c, "GET")
				<-time.After(time.Minute)
				if f := g.call(t, c, method); f.Class != Refused && f.Class != Gone || len(g.calls) != 2 {
					t.Errorf("%s %d: %s %s after %v", method, status, f.Class, f.Reason, g.calls)
				}
			})
		}
	}
}

// A token that is renewed in advance is used only once all of GitHub knows it.
func TestRenewedTokenIsUsedLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &wired{serve: func(int, string) (int, string) { return 200, `{}` }, life: 20 * time.Minute}
		c := g.client(t)
		for _, after := range []time.Duration{0, 16 * time.Minute, time.Second, 5 * time.Second} {
			<-time.After(after)
			if f := g.call(t, c, "POST"); f.Class != None {
				t.Fatal(f.Reason)
			}
			synctest.Wait() // for the renewal beside
		}
		if want := []string{"POST secret-1", "POST secret-1", "POST secret-1", "POST secret-2"}; fmt.Sprint(g.calls) != fmt.Sprint(want) || g.mints != 2 {
			t.Errorf("sent %v after %d mints", g.calls, g.mints)
		}
	})
}

// The one minted in advance is there when the old one is refused before its time.
func TestRefusedTokenGivesWayToTheRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &wired{life: 20 * time.Minute}
		g.serve = func(n int, token string) (int, string) {
			if n == 3 && token == "secret-1" {
				return 401, `{}`
			}
			return 200, `{}`
		}
		c := g.client(t)
		for _, after := range []time.Duration{0, 16 * time.Minute, time.Second} {
			<-time.After(after)
			if f := g.call(t, c, "POST"); f.Class != None {
				t.Fatal(f.Reason)
			}
			synctest.Wait()
		}
		if got := g.calls[len(g.calls)-1]; got != "POST secret-2" || g.mints != 2 {
			t.Errorf("sent %v after %d mints", g.calls, g.mints)
		}
	})
}

// A token that is revoked mid-run is replaced once for all who hold it, and each call is sent once more.
func TestRevokedTokenIsReplacedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		revoked := ""
		g := &wired{serve: func(_ int, token string) (int, string) {
			if token == revoked {
				return 401, `{"message":"Bad credentials"}`
			}
			return 200, `{}`
		}}
		c := g.client(t)
		g.call(t, c, "GET")
		<-time.After(10 * time.Minute)
		revoked = "secret-1"
		var calls sync.WaitGroup
		for n := range 20 {
			calls.Go(func() {
				if f := g.call(t, c, []string{"GET", "POST"}[n%2]); f.Class != None {
					t.Error(f.Reason)
				}
			})
		}
		calls.Wait()
		if g.mints != 2 || len(g.calls) > 1+2*20 {
			t.Errorf("%d mints, %d calls", g.mints, len(g.calls))
		}
	})
}
