package outbox

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/benchtest"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

// Business rows beside the outbox: one kind as any service would write them, one as a tenant's.
const businessRows = `-- +goose Up
CREATE TABLE scheduler.bare (id uuid PRIMARY KEY, tenant uuid NOT NULL, body bytea NOT NULL, started_at timestamptz);
CREATE TABLE scheduler.owned (id uuid PRIMARY KEY, tenant uuid NOT NULL, body bytea NOT NULL, started_at timestamptz);
CREATE INDEX owned_waiting ON scheduler.owned (id) WHERE started_at IS NULL;
CREATE INDEX bare_waiting ON scheduler.bare (id) WHERE started_at IS NULL;
ALTER TABLE scheduler.owned ENABLE ROW LEVEL SECURITY;
ALTER TABLE scheduler.owned FORCE ROW LEVEL SECURITY;
CREATE POLICY owned_system ON scheduler.owned TO fl_scheduler USING (true) WITH CHECK (true);
CREATE POLICY owned_tenant ON scheduler.owned TO fl_scheduler_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);
`

// benchEnv is a benchmark's database, with a service's pool and a plain one of the same size and role.
type benchEnv struct {
	*pgtest.DB
	db    *pg.DB
	plain *pgxpool.Pool
	box   *Outbox
}

func newBenchEnv(b *testing.B) *benchEnv {
	b.Helper()
	sql, err := os.ReadFile("../../migrations/scheduler/0001_outbox.sql")
	if err != nil {
		b.Fatal(err)
	}
	d := pgtest.New(b, fstest.MapFS{
		"scheduler/0001_outbox.sql":   {Data: sql},
		"scheduler/0002_business.sql": {Data: []byte(businessRows)},
	})
	benchtest.Durable(b, d)
	return &benchEnv{DB: d, db: benchtest.Open(b, d, "scheduler"), plain: benchtest.Pool(b, d, "scheduler"), box: New("scheduler")}
}

// run runs a dispatcher until stop, which waits for it.
func (e *benchEnv) run(b *testing.B, d *Dispatcher) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			b.Errorf("Run = %v", err)
		}
	})
	b.Cleanup(stop)
	return stop
}

// tracedContext carries a sampled span, whose context every message stores.
func tracedContext(ctx context.Context) context.Context {
	id, span := uuid.New(), uuid.New()
	sc := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(id), SpanID: trace.SpanID(span[:8]), TraceFlags: trace.FlagsSampled, Remote: true,
	})
	return trace.ContextWithRemoteSpanContext(ctx, sc)
}
