package outbox

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/fenceline-dev/fenceline/pkg/benchtest"
	"github.com/fenceline-dev/fenceline/pkg/purge"
)

// BenchmarkPurge writes messages alone, and beside a purge that has more to remove than it can: what is past
// its retention goes without taking the way from what comes.
func BenchmarkPurge(b *testing.B) {
	e := newBenchEnv(b)
	const finished = 400_000
	_, err := e.Admin(b).Exec(b.Context(), `INSERT INTO scheduler.outbox (id, key, digest, destination, payload, not_before, available_at, dispatched_at)
		SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp() - interval '30 days') * 1000)::bigint + i), 12, '0') || substr(md5(i::text), 13))::uuid,
		       'system:done:' || i, sha256(i::text::bytea), $1, convert_to(repeat('m', 300), 'UTF8'), now(), now(), now() - interval '30 days'
		  FROM generate_series(1, $2) AS i`, settle, finished)
	if err != nil {
		b.Fatal(err)
	}
	kind := e.box.Retention(e.db, Settings{Retention: 7 * 24 * time.Hour})
	settings := purge.Settings{Every: time.Millisecond, Batch: 500, Pause: 100 * time.Millisecond}
	p, err := purge.New(settings, slog.New(slog.DiscardHandler), noop.NewMeterProvider(), kind)
	if err != nil {
		b.Fatal(err)
	}
	ctx := tracedContext(b.Context())
	enqueue := benchtest.Clients(8, func(int) error { return e.enqueueBatch(ctx) })
	got := benchtest.Compare(b,
		benchtest.Variant{Name: "alone", Run: enqueue},
		benchtest.Variant{Name: "beside a purge", Run: func(b *testing.B) benchtest.Slice {
			b.Helper()
			ctx, stop := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- p.Run(ctx) }()
			slice := enqueue(b)
			stop()
			if err := <-done; err != nil {
				b.Fatal(err)
			}
			return slice
		}},
	)
	beside := got["beside a purge"].Over(got["alone"])
	b.ReportMetric(beside.Pooled, "purge/alone")
	benchtest.Report(b, benchtest.Figure{What: "enqueue beside a purge / alone, c=8", Ratio: beside, AtLeast: 0.9})
	var left int
	if err := e.Admin(b).QueryRow(b.Context(), `SELECT count(*) FROM scheduler.outbox WHERE key LIKE 'system:done:%'`).Scan(&left); err != nil {
		b.Fatal(err)
	}
	if left == 0 || left == finished {
		b.Errorf("%d of %d finished rows are left: the purge was not at work throughout", left, finished)
	}
	b.Logf("%d rows were removed meanwhile", finished-left)
}
