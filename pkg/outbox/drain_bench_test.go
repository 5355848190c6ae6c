package outbox

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"

	"github.com/fenceline-dev/fenceline/pkg/benchtest"
)

const (
	drainRows  = 50_000
	drainBatch = 500
)

// BenchmarkDrain empties an outbox of 50,000 due messages in batches of 500: by a dispatcher whose peer
// answers at once, with spans that are exported to nowhere, and by hand with the same claim and mark.
func BenchmarkDrain(b *testing.B) {
	e := newBenchEnv(b)
	benchtest.Exec(b, e.DB, `
CREATE TABLE scheduler.waiting AS
SELECT gen_random_uuid() AS id, '018f0000-0000-7000-8000-00000000000a'::uuid AS tenant,
       '018f0000-0000-7000-8000-00000000000a:settle:' || i AS key, sha256(i::text::bytea) AS digest,
       '`+settle+`' AS destination, decode(repeat('00', 300), 'hex') AS payload,
       '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' AS traceparent, i
  FROM generate_series(1, `+strconv.Itoa(drainRows)+`) AS i`)
	got := benchtest.Compare(b,
		benchtest.Variant{Name: "by hand", Run: func(b *testing.B) benchtest.Slice { return e.drained(b, e.drainByHand) }},
		benchtest.Variant{Name: "dispatcher", Run: func(b *testing.B) benchtest.Slice { return e.drained(b, e.drainByDispatcher) }},
	)
	ratio := got["dispatcher"].Over(got["by hand"])
	b.ReportMetric(ratio.Pooled, "dispatcher/hand")
	b.ReportMetric(got["dispatcher"].Rate(), "rows/s")
	benchtest.Report(b, benchtest.Figure{What: "fenced drain of 50,000 rows by the dispatcher / the same SQL by hand", Ratio: ratio, AtLeast: 0.8})
}

// drained fills the outbox anew and times only how it empties.
func (e *benchEnv) drained(b *testing.B, drain func(*testing.B)) benchtest.Slice {
	b.Helper()
	benchtest.Exec(b, e.DB, "TRUNCATE scheduler.outbox", `
INSERT INTO scheduler.outbox (id, tenant, key, digest, destination, payload, traceparent, not_before, available_at)
SELECT id, tenant, key, digest, destination, payload, traceparent, at, at
  FROM (SELECT w.*, clock_timestamp() - interval '1 minute' + i * interval '1 microsecond' AS at FROM scheduler.waiting AS w) AS w
 ORDER BY i`, "VACUUM ANALYZE scheduler.outbox", "CHECKPOINT")
	start := time.Now()
	drain(b)
	elapsed := time.Since(start)
	var left int
	if err := e.plain.QueryRow(b.Context(), "SELECT count(*) FROM scheduler.outbox WHERE dispatched_at IS NULL").Scan(&left); err != nil || left > 0 {
		b.Fatalf("%d messages left: %v", left, err)
	}
	return benchtest.Slice{Ops: drainRows, Elapsed: elapsed}
}

// drainByHand claims and marks, a transaction each, with a low-water mark, and nothing in between.
func (e *benchEnv) drainByHand(b *testing.B) {
	ctx := b.Context()
	conn, err := pgx.Connect(ctx, e.DSN("scheduler"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "SET synchronous_commit = off"); err != nil { // as the dispatcher has it
		b.Fatal(err)
	}
	low := time.Unix(0, 0)
	ones, zeros := make([]bool, drainBatch), make([]float64, drainBatch)
	attempts, none := make([]int32, drainBatch), make([]string, drainBatch)
	for i := range ones {
		ones[i], attempts[i] = true, 1
	}
	for {
		claim := uuid.New()
		rows, err := conn.Query(ctx, e.box.sql.claim, settle, low, drainBatch, claim, 30.0)
		if err != nil {
			b.Fatal(err)
		}
		ids, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (id uuid.UUID, err error) {
			var at time.Time
			err = r.Scan(&id, nil, nil, nil, nil, nil, &at, nil)
			if at.After(low) {
				low = at
			}
			return id, err
		})
		if err != nil {
			b.Fatal(err)
		}
		n := len(ids)
		if n == 0 {
			return
		}
		claims := make([]uuid.UUID, n)
		for i := range claims {
			claims[i] = claim
		}
		tag, err := conn.Exec(ctx, e.box.sql.mark, ids, claims, ones[:n], none[:n], zeros[:n], attempts[:n], none[:n])
		if err != nil || int(tag.RowsAffected()) != n {
			b.Fatalf("marked %d of %d: %v", tag.RowsAffected(), n, err)
		}
	}
}

// drainByDispatcher ends once every message has been sent and the dispatcher has marked the last batch.
func (e *benchEnv) drainByDispatcher(b *testing.B) {
	spans := sdktrace.NewTracerProvider(sdktrace.WithBatcher(nowhere{}))
	peer := &atOnce{all: make(chan struct{})}
	stop := e.run(b, NewDispatcher(DispatcherConfig{
		Outbox: e.box, DB: e.db, Peers: map[string]grpc.ClientConnInterface{"ledger": peer},
		Destinations: []string{settle}, Settings: Settings{Batch: drainBatch}, Tracer: spans,
	}))
	<-peer.all
	stop()
	if err := spans.Shutdown(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// atOnce is a receiver that answers every call at once and tells when it has had all of them.
type atOnce struct {
	got atomic.Int64
	all chan struct{}
}

func (r *atOnce) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	if r.got.Add(1) == drainRows {
		close(r.all)
	}
	return nil
}

func (*atOnce) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("the outbox makes unary calls only")
}

// nowhere is a span exporter.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }
