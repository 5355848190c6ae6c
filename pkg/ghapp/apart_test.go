package ghapp

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A hundred installations that GitHub throttles, or does not answer, at once hold up no other one: each has its own
// client, its own token and its own limits.
func TestInstallationsAreApart(t *testing.T) {
	t.Parallel()
	const many = 100
	for name, bad := range map[string]func(w http.ResponseWriter, released <-chan struct{}){
		"throttled": func(w http.ResponseWriter, _ <-chan struct{}) { w.WriteHeader(http.StatusTooManyRequests) },
		"hanging":   func(_ http.ResponseWriter, released <-chan struct{}) { <-released },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var arrived sync.WaitGroup
			arrived.Add(many)
			released := make(chan struct{})
			h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.Header.Get("Authorization"), "token secret-500-") {
					ok(w, r)
					return
				}
				arrived.Done()
				bad(w, released)
			})
			a := h.app(t, func(c *Config) { c.Timeout = time.Minute })
			var calls sync.WaitGroup
			for n := range int64(many) {
				calls.Go(func() { _, _ = a.Client(n+1).Get(t.Context(), "repositories/1", nil) })
			}
			arrived.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if _, err := a.Client(500).Get(ctx, "repositories/1", nil); err != nil {
				t.Errorf("another installation: %v", err)
			}
			close(released)
			calls.Wait()
		})
	}
}
