package ghapp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestRedirectToAnotherHostIsRefused(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(canary.Close)
	h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, canary.URL+"/repositories/1", http.StatusMovedPermanently)
	})
	a := h.app(t)
	for name, c := range map[string]*Client{"installation": a.Client(1), "app": a.JWT()} {
		_, err := c.Get(t.Context(), "repositories/1", nil)
		if f := Classify(err); f.Class != Refused || f.Reason != ReasonRedirect {
			t.Errorf("%s: got %s %s", name, f.Class, f.Reason)
		}
		if strings.Contains(err.Error(), canary.URL) || strings.Contains(err.Error(), "secret-") {
			t.Errorf("%s: the error says too much: %v", name, err)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("the other host was called %d times", hits.Load())
	}
}

// Whatever builds the request, the transport itself lets no credential out.
func TestForeignURLNeverGetsTheToken(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(canary.Close)
	_, err := newHub(t, ok).app(t).Client(1).Get(t.Context(), canary.URL+"/steal", nil)
	if f := Classify(err); f.Class != Refused || f.Reason != ReasonRedirect {
		t.Errorf("got %s %s", f.Class, f.Reason)
	}
	if hits.Load() != 0 {
		t.Error("the other host was called")
	}
}

func TestRenamedRepositoryIsFollowed(t *testing.T) {
	t.Parallel()
	h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/repos/") {
			http.Redirect(w, r, "/repositories/1", http.StatusMovedPermanently)
			return
		}
		if got := r.Header.Values("Authorization"); len(got) != 1 || got[0] != "token secret-1-1" {
			t.Errorf("%d credentials after the redirect", len(got))
		}
		_, _ = w.Write([]byte(`{"id":1}`))
	})
	var v struct{ ID int }
	if _, err := h.app(t).Client(1).Get(t.Context(), "repos/old/name", &v); err != nil || v.ID != 1 {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestRedirectedWriteIsRefused(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			var calls atomic.Int64
			h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				w.Header().Set("Location", "/repositories/1/elsewhere")
				w.WriteHeader(status)
			})
			c := h.app(t).Client(1)
			req, err := c.GitHub.NewRequest(method, "repositories/1/issues/1/comments", map[string]string{"body": "x"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Do(t.Context(), req, nil)
			if f := Classify(err); f.Class != Refused || f.Reason != ReasonRedirect {
				t.Errorf("%s %d: got %s %s", method, status, f.Class, f.Reason)
			}
			if calls.Load() != 1 {
				t.Errorf("%s %d: %d calls, want 1", method, status, calls.Load())
			}
		}
	}
}

func TestRedirectLoopEnds(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	})
	_, err := h.app(t).Client(1).Get(t.Context(), "repositories/1", nil)
	if f := Classify(err); f.Class != Refused || calls.Load() > 6 {
		t.Errorf("got %s %s after %d calls", f.Class, f.Reason, calls.Load())
	}
}
