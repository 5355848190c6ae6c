package githubsim

import (
	"net/http"
	"sync"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// truthLog remembers every request, in the order they came.
type truthLog struct {
	mu   sync.Mutex
	seen []*control.Request
}

// entry is one request's line in the log while the request runs.
type entry struct {
	log *truthLog
	*control.Request
}

// begin logs a request before anything can go wrong with it.
func (t *truthLog) begin(c *call, req *http.Request) entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &control.Request{
		Seq: int64(len(t.seen) + 1), At: c.now, Method: req.Method, Path: req.URL.RequestURI(), Class: c.class(),
		UserAgent: req.UserAgent(), Traceparent: req.Header.Get("Traceparent"), Body: string(c.body), Faults: []string{},
	}
	t.seen = append(t.seen, e)
	return entry{t, e}
}

// aim adds what the request turned out to be about.
func (e entry) aim(c *call) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	if c.repo != nil {
		e.RepositoryID = c.repo.id
	}
	e.InstallationID = c.installation()
	e.Faults = append(e.Faults, c.hit.ids...)
}

// end adds how it ended, before the caller can know.
func (e entry) end(now time.Time, status int, handled, answered bool) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.Status, e.Handled, e.Answered = status, handled, answered
	e.Duration = control.Duration(now.Sub(e.At))
}

// list returns copies of the requests that match.
func (t *truthLog) list(f control.RequestFilter) []control.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []control.Request{}
	for _, e := range t.seen[min(int(f.After), len(t.seen)):] {
		if (f.Class == "" || f.Class == e.Class) && (f.Method == "" || f.Method == e.Method) {
			out = append(out, *e)
		}
	}
	return out
}
