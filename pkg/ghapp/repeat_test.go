package ghapp

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
)

// A write leaves this process once, whatever becomes of it. On a connection that was used before, net/http
// repeats reads by itself; that no write is among them is seen here.
func TestNoWriteIsRepeated(t *testing.T) {
	t.Parallel()
	answers := map[string]func(http.ResponseWriter){
		"cut": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"500": func(w http.ResponseWriter) { w.WriteHeader(500) },
		"502": func(w http.ResponseWriter) { w.WriteHeader(502) },
		"503": func(w http.ResponseWriter) { w.Header().Set("Retry-After", "1"); w.WriteHeader(503) },
		"408": func(w http.ResponseWriter) { w.WriteHeader(408) },
		"403": func(w http.ResponseWriter) { w.WriteHeader(403) },
		"404": func(w http.ResponseWriter) { w.WriteHeader(404) },
		"409": func(w http.ResponseWriter) { w.WriteHeader(409) },
		"422": func(w http.ResponseWriter) { w.WriteHeader(422) },
		"429": func(w http.ResponseWriter) { w.WriteHeader(429) },
	}
	for name, answer := range answers {
		for _, method := range []string{"POST", "PATCH", "PUT", "DELETE"} {
			t.Run(method+" "+name, func(t *testing.T) {
				t.Parallel()
				var writes atomic.Int64
				h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if r.Method == http.MethodGet {
						ok(w, r)
						return
					}
					writes.Add(1)
					answer(w)
				})
				c := h.app(t).Client(1)
				if _, err := c.Get(t.Context(), "repositories/1", nil); err != nil { // the connection is used from now on
					t.Fatal(err)
				}
				req, err := c.GitHub.NewRequest(method, "repositories/1/issues/1/comments", map[string]string{"body": "x"})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.Do(t.Context(), req, nil); err == nil {
					t.Error("no failure")
				}
				if n := writes.Load(); n != 1 {
					t.Errorf("written %d times", n)
				}
			})
		}
	}
}
