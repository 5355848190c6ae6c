package pg_test

import (
	"fmt"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

func TestStatementSpansAreASettingAndHoldNoParameters(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t, schema)
	for _, on := range []bool{false, true} {
		spans := tracetest.NewSpanRecorder()
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		ctx, store := tracer.Tracer("").Start(t.Context(), "a store's method") // without one there are no spans
		db, err := pg.Open(ctx, pg.Config{DSN: config.Secret(d.DSN("acorn")), AllowUnsafe: true, TraceStatements: on}, "acorn", tracer)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		const canary = 987654321987
		b := &pg.Batch{}
		b.Queue("SELECT $1::bigint", canary)
		if err := db.SystemBatch(ctx, b); err != nil {
			t.Fatal(err)
		}
		if err := db.Tenant(ctx, alice, func(tx *pg.Tx) error { _, err := tx.Exec(ctx, "SELECT $1::bigint", canary); return err }); err != nil {
			t.Fatal(err)
		}
		if got := len(spans.Ended()); (got > 0) != on {
			t.Errorf("traced %v: %d spans", on, got)
		}
		store.End()
		for _, s := range spans.Ended() {
			if text := fmt.Sprint(s.Name(), s.Attributes(), s.Events()); strings.Contains(text, fmt.Sprint(canary)) {
				t.Errorf("a parameter is in span %s", text)
			}
		}
		if s := db.Stats(); s.Statements < 2 || s.Commits != 2 {
			t.Errorf("traced %v: counts are lost: %+v", on, s)
		}
	}
}
