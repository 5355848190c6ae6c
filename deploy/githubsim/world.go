package githubsim

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"time"
)

// world is everything that exists, in memory; only git objects are on disk. mu guards every field that is
// reached from here, and is never held while git or the network runs.
type world struct {
	mu       sync.Mutex
	last     int64
	bot      *account
	accounts map[string]*account // by lower-case login
	repos    map[int64]*repo
	names    map[string]*repo // by lower-case owner/name, old names too
	installs map[int64]*installation
	tokens   map[string]*token
	comments map[int64]*comment
	reviews  map[int64]*review
	remarks  map[int64]*reviewComment
	checks   map[int64]*checkRun
	suites   map[string]int64 // check suite ids by repository and sha
	runs     map[string]int   // check runs by suite and name
}

func newWorld(first int64) *world {
	return &world{
		last: first, accounts: map[string]*account{}, repos: map[int64]*repo{}, names: map[string]*repo{},
		installs: map[int64]*installation{}, tokens: map[string]*token{}, comments: map[int64]*comment{},
		reviews: map[int64]*review{}, remarks: map[int64]*reviewComment{},
		checks: map[int64]*checkRun{}, suites: map[string]int64{}, runs: map[string]int{},
	}
}

// id returns an id that nothing else has.
func (w *world) id() int64 {
	w.last++
	return w.last
}

// newID is id for callers that do not hold the lock.
func (w *world) newID() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.id()
}

type account struct {
	id    int64
	login string
	kind  string // User, Organization or Bot
	name  string
}

// account returns the account of a login and makes it where it is unknown.
func (w *world) account(login, kind string) *account {
	if a, ok := w.accounts[strings.ToLower(login)]; ok {
		return a
	}
	a := &account{id: w.id(), login: login, kind: kind}
	w.accounts[strings.ToLower(login)] = a
	return a
}

// nodeID looks like GitHub's opaque GraphQL ids.
func nodeID(kind string, id int64) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%03d:%s%d", len(kind), kind, id))
}

// stamp writes a time the way GitHub does: UTC, whole seconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// stampOrNil is null for a time that never came.
func stampOrNil(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}

// obj is a JSON object in the making.
type obj = map[string]any

// version is one state of something whose writes can lag behind.
type version[T any] struct {
	at      time.Time
	shown   time.Time // lists see it from here on
	getToo  bool      // single reads as well
	deleted bool
	value   T
}

// history holds every state, oldest first.
type history[T any] []version[T]

// now is the newest state, seen or not.
func (h history[T]) now() *version[T] { return &h[len(h)-1] }

// seen returns the newest state that a reader sees, nil where it sees nothing.
func (h history[T]) seen(now time.Time, list bool) *T {
	for i := len(h) - 1; i >= 0; i-- {
		v := &h[i]
		if v.shown.After(now) && (list || v.getToo) {
			continue
		}
		if v.deleted {
			return nil
		}
		return &v.value
	}
	return nil
}

// settle lets everything be seen.
func (h history[T]) settle() {
	for i := range h {
		h[i].shown = time.Time{}
	}
}
