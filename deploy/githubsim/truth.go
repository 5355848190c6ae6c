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
		Creates:   c.route != nil && c.route.create,
		UserAgent: req.UserAgent(), Traceparent: req.Header.Get("Traceparent"), Body: string(c.body), Faults: []string{},
	}
	t.seen = append(t.seen, e)
	return entry{t, e}
}

// aim adds what the request turned out to be about.
func (e entry) aim(c *call, actor string) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	if c.repo != nil {
		e.RepositoryID = c.repo.id
	}
	e.InstallationID, e.Actor = c.installation(), actor
	e.Faults = append(e.Faults, c.hit.ids...)
}

// end adds how it ended, before the caller can know.
func (e entry) end(c *call, now time.Time, status int, handled, answered bool) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.Status, e.Handled, e.Answered, e.Limited = status, handled, answered, c.limited
	e.Duration = control.Duration(now.Sub(e.At))
}

// list returns copies of the requests that match.
func (t *truthLog) list(f control.RequestFilter) []control.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []control.Request{}
	for _, e := range t.seen[min(int(f.After), len(t.seen)):] {
		write := e.Method != http.MethodGet && e.Method != http.MethodHead && e.Class != "tokens.create"
		if (f.Class == "" || f.Class == e.Class) && (f.Method == "" || f.Method == e.Method) && (!f.Writes || write) &&
			(f.Repository == 0 || f.Repository == e.RepositoryID) && (f.Installation == 0 || f.Installation == e.InstallationID) {
			out = append(out, *e)
		}
	}
	return out
}
