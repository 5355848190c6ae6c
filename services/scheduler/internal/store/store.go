// Package store keeps targets, runs and decisions in Postgres: every exported method is one transaction,
// of the shape load under lock, decide, save with what leaves through the outbox.
package store

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// Store is the scheduler's door to Postgres.
type Store struct {
	db     *pg.DB
	outbox *outbox.Outbox
	rules  scheduler.Rules
	bell   string // the outbox destination of rings
	runs   *watch
}

// New returns a store that decides by the rules and rings the doorbell of the stream.
func New(db *pg.DB, box *outbox.Outbox, rules scheduler.Rules, stream string) *Store {
	return &Store{db: db, outbox: box, rules: rules, bell: "doorbell:" + stream, runs: newWatch()}
}

func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// tenant runs fn for one tenant.
func (s *Store) tenant(ctx context.Context, tenant scheduler.TenantID, fn func(*pg.Tx) error) error {
	return s.db.Tenant(ctx, uuid.UUID(tenant), fn)
}

// as runs a read for one tenant, or over all of them where tenant is nil: for operators.
func (s *Store) as(ctx context.Context, tenant *scheduler.TenantID, fn func(*pg.Tx) error) error {
	if tenant == nil {
		return s.db.System(ctx, fn)
	}
	return s.tenant(ctx, *tenant, fn)
}

// watch wakes those of this process who wait for a run's next version. It is a hint: they look for
// themselves too.
type watch struct {
	mu      sync.Mutex
	waiting map[scheduler.RunID]map[chan struct{}]bool
}

func newWatch() *watch { return &watch{waiting: map[scheduler.RunID]map[chan struct{}]bool{}} }

// add returns a channel that gets a value at the run's changes, and what ends the watching.
func (w *watch) add(run scheduler.RunID) (changed <-chan struct{}, done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := make(chan struct{}, 1)
	if w.waiting[run] == nil {
		w.waiting[run] = map[chan struct{}]bool{}
	}
	w.waiting[run][ch] = true
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiting[run], ch)
		if len(w.waiting[run]) == 0 {
			delete(w.waiting, run)
		}
	}
}

func (w *watch) tell(run scheduler.RunID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range w.waiting[run] {
		select {
		case ch <- struct{}{}:
		default: // it has not looked since the last one
		}
	}
}
