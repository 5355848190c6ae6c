package outbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/benchtest"
	door "github.com/fenceline-dev/fenceline/pkg/doorbell"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/redistest"
)

// BenchmarkCommitToStart measures from the call of COMMIT to the moment at which a worker has claimed the
// job in a statement of its own: woken by a ring through outbox, Redis and doorbell, or by a raw NOTIFY
// inside the transaction. Commits come about 40 times a second, at random.
func BenchmarkCommitToStart(b *testing.B) {
	e := newBenchEnv(b)
	benchtest.Exec(b, e.DB, "INSERT INTO scheduler.bare SELECT gen_random_uuid(), gen_random_uuid(), '', now() FROM generate_series(1, 1000)",
		"INSERT INTO scheduler.owned SELECT id, tenant, body, started_at FROM scheduler.bare", "VACUUM ANALYZE scheduler.bare, scheduler.owned")
	ring, notify := e.ringing(b), e.notifying(b)
	got := benchtest.Compare(b,
		benchtest.Variant{Name: "LISTEN/NOTIFY", Run: notify.slice},
		benchtest.Variant{Name: "outbox and doorbell", Run: ring.slice},
	)
	p50 := got["outbox and doorbell"].LatencyOver(got["LISTEN/NOTIFY"], 0.5)
	p99 := got["outbox and doorbell"].LatencyOver(got["LISTEN/NOTIFY"], 0.99)
	b.ReportMetric(p50.Pooled, "p50/notify")
	benchtest.Report(b,
		benchtest.Figure{What: "commit to start by outbox and doorbell / raw LISTEN/NOTIFY, p50", Ratio: p50, AtMost: 1.3},
		benchtest.Figure{What: "commit to start by outbox and doorbell / raw LISTEN/NOTIFY, p99", Ratio: p99},
	)
}

// starter commits jobs and notes when a worker starts them.
type starter struct {
	commit func(ctx context.Context, id uuid.UUID, called func()) error // called: just before COMMIT

	mu      sync.Mutex
	waiting map[uuid.UUID]time.Time
	took    []time.Duration
	idle    chan struct{} // a job was started
}

func newStarter() *starter {
	return &starter{waiting: map[uuid.UUID]time.Time{}, idle: make(chan struct{}, 1000)}
}

func (s *starter) called(id uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[id] = time.Now()
}

func (s *starter) started(id uuid.UUID) {
	now := time.Now()
	s.mu.Lock()
	s.took = append(s.took, now.Sub(s.waiting[id]))
	delete(s.waiting, id)
	s.mu.Unlock()
	s.idle <- struct{}{}
}

// slice commits for a second and waits until all is started.
func (s *starter) slice(b *testing.B) benchtest.Slice {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	s.took = nil
	start, jobs := time.Now(), 0
	for time.Since(start) < time.Second {
		id := must(uuid.NewV7())
		if err := s.commit(ctx, id, func() { s.called(id) }); err != nil {
			b.Fatal(err)
		}
		jobs++
		pause := time.NewTimer(time.Duration(rand.ExpFloat64() * float64(25*time.Millisecond)))
		<-pause.C
	}
	for range jobs {
		select {
		case <-s.idle:
		case <-ctx.Done():
			b.Fatalf("a job did not start: %d of %d did", len(s.took), jobs)
		}
	}
	return benchtest.Slice{Ops: jobs, Elapsed: time.Since(start), Latencies: s.took}
}

// takeJob is the claim of both workers: one statement, one commit.
func takeJob(table string) string {
	return `
UPDATE scheduler.` + table + ` AS j
   SET started_at = clock_timestamp()
 WHERE j.id = (SELECT w.id FROM scheduler.` + table + ` AS w
                WHERE w.started_at IS NULL ORDER BY w.id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING j.id`
}

// work claims one job per wake-up until ctx ends.
func (e *benchEnv) work(b *testing.B, ctx context.Context, s *starter, table string, woken func(context.Context) error) (done chan struct{}) {
	done = make(chan struct{})
	take := takeJob(table)
	go func() {
		defer close(done)
		for woken(ctx) == nil {
			var id uuid.UUID
			if err := e.plain.QueryRow(ctx, take).Scan(&id); err != nil {
				if ctx.Err() == nil {
					b.Errorf("claim a job: %v", err)
				}
				return
			}
			s.started(id)
		}
	}()
	return done
}

// ringing is the product's way: row and ring in one transaction, the dispatcher nudged by the commit.
func (e *benchEnv) ringing(b *testing.B) *starter {
	cfg := door.Config{Addr: redistest.New(b)}
	stream := fmt.Sprintf("bench-%s", uuid.New())
	chime, listener := door.NewBell(cfg), door.NewListener(cfg, door.ListenerOptions{Stream: stream, Group: "bench", Consumer: "one"})
	e.run(b, NewDispatcher(DispatcherConfig{Outbox: e.box, DB: e.db, Bell: chime, Destinations: []string{doorbell + stream}}))
	ctx, cancel := context.WithCancel(b.Context())
	s := newStarter()
	done := e.work(b, ctx, s, "owned", func(ctx context.Context) error {
		_, err := listener.Next(ctx)
		return err
	})
	b.Cleanup(func() {
		cancel()
		<-done
		_ = listener.Close()
		_ = chime.Close()
	})
	s.commit = func(ctx context.Context, id uuid.UUID, called func()) error {
		ctx = tracedContext(ctx)
		return e.db.Tenant(ctx, benchTenant, func(tx *pg.Tx) error {
			if _, err := tx.Exec(ctx, insertOwned, id, benchTenant, businessBody); err != nil {
				return err
			}
			if err := e.box.Enqueue(ctx, tx, Message{Destination: doorbell + stream, Key: "ring:" + id.String(), Tenant: benchTenant}); err != nil {
				return err
			}
			called()
			return nil
		})
	}
	return s
}

// notifying is the shortest way there is: NOTIFY inside the transaction, a connection that listens.
func (e *benchEnv) notifying(b *testing.B) *starter {
	conn, err := pgx.Connect(b.Context(), e.DSN("scheduler"))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Exec(b.Context(), "LISTEN jobs"); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	s := newStarter()
	done := e.work(b, ctx, s, "bare", func(ctx context.Context) error {
		_, err := conn.WaitForNotification(ctx)
		return err
	})
	b.Cleanup(func() {
		cancel()
		<-done
		_ = conn.Close(context.Background())
	})
	s.commit = func(ctx context.Context, id uuid.UUID, called func()) error {
		tx, err := e.plain.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertBare, binary(id), binary(benchTenant), businessBody); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT pg_notify('jobs', $1)", id.String()); err != nil {
			return err
		}
		called()
		return tx.Commit(ctx)
	}
	return s
}
