package ghapp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestTwentyCallsMintOnce(t *testing.T) {
	t.Parallel()
	h := newHub(t, ok)
	c := h.app(t).Client(3)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := c.Get(t.Context(), "repositories/1", nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := h.mints.Load(); n != 1 {
		t.Errorf("minted %d tokens, want 1", n)
	}
}

func TestHangingMintHoldsNobodyPastItsDeadline(t *testing.T) {
	t.Parallel()
	h := newHub(t, ok)
	entered, release := make(chan struct{}), make(chan struct{})
	h.onMint = func(http.ResponseWriter, *http.Request) bool { close(entered); <-release; return false }
	a := h.app(t)
	first := make(chan error, 1)
	go func() { _, err := a.Client(3).Get(t.Context(), "repositories/1", nil); first <- err }()
	<-entered

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	req, err := a.Client(3).GitHub.NewRequest(http.MethodPost, "repositories/1/issues/1/comments", map[string]string{"body": "x"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Client(3).Do(ctx, req, nil)
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("came back after %s", took)
	}
	if f := Classify(err); f.Class != NotExecuted {
		t.Errorf("a write that waited for its token is %s, want not executed", f.Class)
	}

	close(release)
	if err := <-first; err != nil {
		t.Errorf("the patient caller failed: %v", err)
	}
	if _, err := a.Client(3).Get(t.Context(), "repositories/1", nil); err != nil {
		t.Errorf("the minted token is not used: %v", err)
	}
	if n := h.mints.Load(); n != 1 {
		t.Errorf("minted %d tokens, want 1", n)
	}
}

func TestHangingMintDoesNotTouchOtherInstallations(t *testing.T) {
	t.Parallel()
	h := newHub(t, ok)
	entered, release := make(chan struct{}), make(chan struct{})
	h.onMint = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.PathValue("id") == "1" {
			close(entered)
			<-release
		}
		return false
	}
	a := h.app(t)
	first := make(chan error, 1)
	go func() { _, err := a.Client(1).Get(t.Context(), "repositories/1", nil); first <- err }()
	<-entered
	if _, err := a.Client(2).Get(t.Context(), "repositories/2", nil); err != nil {
		t.Error(err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestUnauthorizedRefreshesOnce(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var bodies sync.Map
	h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		b, _ := io.ReadAll(r.Body)
		bodies.Store(strings.TrimSpace(string(b)), true)
		if r.Header.Get("Authorization") == "token secret-3-1" {
			http.Error(w, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
			return
		}
		ok(w, r)
	})
	c := h.app(t).Client(3)
	req, err := c.GitHub.NewRequest(http.MethodPost, "repositories/1/issues/1/comments", map[string]string{"body": "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	if calls.Load() != 2 || h.mints.Load() != 2 {
		t.Errorf("%d calls and %d mints, want 2 and 2", calls.Load(), h.mints.Load())
	}
	bodies.Range(func(k, _ any) bool {
		if k != `{"body":"x"}` {
			t.Errorf("a body arrived as %q", k)
		}
		return true
	})
}

func TestUnauthorizedForGoodIsAuth(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	h := newHub(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		http.Error(w, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
	})
	_, err := h.app(t).Client(3).Get(t.Context(), "repositories/1", nil)
	if f := Classify(err); f.Class != Auth || f.Reason != ReasonBadCredentials || f.Status != http.StatusUnauthorized {
		t.Errorf("got %+v", f)
	}
	if calls.Load() != 2 || h.mints.Load() != 2 {
		t.Errorf("%d calls and %d mints, want 2 and 2", calls.Load(), h.mints.Load())
	}
	if strings.Contains(err.Error(), "secret-") {
		t.Errorf("the token is in the error: %v", err)
	}
}

func TestManyUnauthorizedShareOneRefresh(t *testing.T) {
	t.Parallel()
	var late sync.WaitGroup
	late.Add(20)
	h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "token secret-3-1" {
			late.Done()
			late.Wait() // all twenty hold the same refused token
			http.Error(w, `{}`, http.StatusUnauthorized)
			return
		}
		ok(w, r)
	})
	c := h.app(t).Client(3)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := c.Get(t.Context(), "repositories/1", nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := h.mints.Load(); n != 2 {
		t.Errorf("minted %d tokens, want 2", n)
	}
}

func TestFreshTokenThatLagsIsTriedAgain(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) < 3 {
			http.Error(w, `{}`, http.StatusUnauthorized)
			return
		}
		ok(w, r)
	})
	c := h.app(t, func(c *Config) { c.TokenLag = 3 * time.Second }).Client(3)
	if _, err := c.Get(t.Context(), "repositories/1", nil); err != nil {
		t.Fatal(err)
	}
	if h.mints.Load() != 1 {
		t.Errorf("minted %d tokens, want 1: another would be as fresh", h.mints.Load())
	}
}

func TestTokenNearItsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		life time.Duration
		want int64 // mints after two calls
	}{
		"far":                {time.Hour, 1},
		"almost over":        {30 * time.Second, 2}, // not used again
		"already over":       {-time.Minute, 2},     // used for the call that waited for it, never again
		"renewed in advance": {3 * time.Minute, 2},  // used, and renewed beside
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, ok)
			h.life = c.life
			cl := h.app(t).Client(3)
			for range 2 {
				if _, err := cl.Get(t.Context(), "repositories/1", nil); err != nil {
					t.Fatal(err)
				}
			}
			deadline := time.After(5 * time.Second)
			for h.mints.Load() < c.want {
				select {
				case <-deadline:
					t.Fatalf("minted %d tokens, want %d", h.mints.Load(), c.want)
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
}

func TestMintFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		header map[string]string
		class  Class
		reason string
		wait   time.Duration
	}{
		"suspended":         {403, nil, Throttled, ReasonSuspended, suspendedPause},
		"gone":              {404, nil, Gone, ReasonInstallationGone, 0},
		"refused JWT":       {401, nil, Auth, ReasonJWTRefused, 0},
		"not granted":       {422, nil, Refused, ReasonNotGranted, 0},
		"limited":           {403, map[string]string{"Retry-After": "7"}, Throttled, ReasonSecondaryLimit, 7 * time.Second},
		"limited by 429":    {429, nil, Throttled, ReasonSecondaryLimit, time.Minute},
		"GitHub is away":    {502, nil, NotExecuted, ReasonMintUnavailable, 0},
		"answers something": {302, nil, Refused, ReasonRedirect, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, func(http.ResponseWriter, *http.Request) { t.Error("called without a token") })
			h.onMint = func(w http.ResponseWriter, _ *http.Request) bool {
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(`{"message":"This installation has been suspended"}`))
				return true
			}
			cl := h.app(t).Client(3)
			req, err := cl.GitHub.NewRequest(http.MethodPost, "repositories/1/issues/1/comments", nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = cl.Do(t.Context(), req, nil)
			f := Classify(err)
			if f.Class != c.class || f.Reason != c.reason || f.RetryAfter != c.wait || !f.Mint {
				t.Errorf("got %s %s %s mint=%v", f.Class, f.Reason, f.RetryAfter, f.Mint)
			}
			var again *Failure
			if !errors.As(err, &again) {
				t.Error("not a *Failure")
			}
		})
	}
}
