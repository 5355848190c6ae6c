// Package store keeps receipts and whom they belong to in Postgres: every exported method is one
// transaction.
package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Store is ingest's door to Postgres.
type Store struct {
	db     *pg.DB
	outbox *outbox.Outbox
	policy ingest.Policy
	known  *known
	ring   func()        // after a command was stored
	news   chan struct{} // a project is to be listed at once
	takes  atomic.Uint32 // of projects to list
}

// OnCommand has ring called after a command was stored.
func (s *Store) OnCommand(ring func()) { s.ring = ring }

// New returns a store that admits deliveries by the policy.
func New(db *pg.DB, box *outbox.Outbox, policy ingest.Policy) *Store {
	return &Store{
		db: db, outbox: box, policy: policy, known: &known{at: map[owner]remembered{}},
		ring: func() {}, news: make(chan struct{}, 1),
	}
}

func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// owner is the key under which an integration is looked up: the ids of a payload.
type owner struct {
	host         string
	account      int64
	installation int64
	repository   int64
}

// known remembers fully bound integrations for a moment, so that the receipt of a busy repository is one
// round trip. What it holds stale, a suspension or a removal, costs a hint that the scheduler or the read
// of GitHub then refuses: the receipt is as certain as ever.
type known struct {
	mu sync.Mutex
	at map[owner]remembered
}

type remembered struct {
	ingest.Integration
	until time.Time
}

const (
	rememberFor = 15 * time.Second
	rememberMax = 10_000
)

func (k *known) get(o owner) (ingest.Integration, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.at[o]
	return r.Integration, ok && time.Now().Before(r.until)
}

func (k *known) put(o owner, i ingest.Integration) {
	if i.Tenant == (ingest.TenantID{}) || i.ProjectState != ingest.ProjectEnrolled ||
		i.InstallationState == "" || i.InstallationState == ingest.InstallationDeleted {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.at) >= rememberMax {
		clear(k.at)
	}
	k.at[o] = remembered{i, time.Now().Add(rememberFor)}
}

// forget drops everything after a change of installations or projects by this process.
func (k *known) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.at)
}

// integration looks up whom an event belongs to.
func (s *Store) integration(ctx context.Context, o owner) (ingest.Integration, error) {
	if i, ok := s.known.get(o); ok {
		return i, nil
	}
	var i ingest.Integration
	b := &pg.Batch{}
	queueIntegration(b, o, &i)
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return ingest.Integration{}, err
	}
	s.known.put(o, i)
	return i, nil
}
