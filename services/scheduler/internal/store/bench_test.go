package store

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/benchtest"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

const (
	benchClaim = 100 // targets per claim
	benchRuns  = 7   // of each query, after one that warms up
)

// targetsAtRest and targetsDue add rows: $1 of them, numbered from $2, over ten tenants.
const (
	targetsAtRest = `
INSERT INTO scheduler.targets (id, tenant, project_id, host, installation_id, repository_id, number, state, generation,
       resolved_generation, hint_head, read_head, touched_at)
SELECT gen_random_uuid(), ('00000000-0000-7000-8000-' || lpad((n % 10)::text, 12, '0'))::uuid, gen_random_uuid(), 'github.com', 1,
       1 + n / 1000, 1 + n % 1000, 'closed', 1, 1, repeat('a', 40), repeat('a', 40), clock_timestamp()
  FROM generate_series($2::bigint, $2 + $1 - 1) AS n`

	targetsDue = `
INSERT INTO scheduler.targets (id, tenant, project_id, host, installation_id, repository_id, number, state, generation,
       hint_head, due_at, touched_at)
SELECT gen_random_uuid(), ('00000000-0000-7000-8000-' || lpad((n % 10)::text, 12, '0'))::uuid, gen_random_uuid(), 'github.com', 1,
       1000000 + n, 1, 'open', 1, repeat('b', 40), clock_timestamp() - interval '1 hour' + n * interval '1 ms', clock_timestamp()
  FROM generate_series($2::bigint, $2 + $1 - 1) AS n`
)

// BenchmarkClaimBuffers counts the pages that a claim of 100 targets touches, beside none and beside a
// million targets at rest: what is finished must cost disk, never time.
func BenchmarkClaimBuffers(b *testing.B) {
	d := pgtest.New(b, migrations.FS)
	benchtest.Durable(b, d)
	conn, err := pgx.Connect(b.Context(), d.DSN("scheduler")) // under the policies that the service claims under
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(b.Context()) }()
	add(b, d, targetsDue, 2000)
	for counted := false; b.Loop(); counted = true {
		if counted {
			continue // it is a count: once is enough
		}
		none := claimCost(b, conn)
		add(b, d, targetsAtRest, 1_000_000)
		million := claimCost(b, conn)
		for name, c := range map[string]cost{"beside none": none, "beside 1,000,000 at rest": million} {
			b.Logf("%-26s %6.2f buffers per claimed target, %8.3f ms per claim of %d", name, c.buffers, c.millis, benchClaim)
		}
		flat := million.buffers / none.buffers
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(million.buffers, "buffers/target")
		b.ReportMetric(flat, "1M/none")
		benchtest.Report(b,
			benchtest.Figure{What: "buffers per claimed target beside 1,000,000 at rest / beside none", Ratio: benchtest.Exactly(flat), AtMost: 1.5},
			benchtest.Figure{What: "buffers per claimed target beside 1,000,000 at rest, a number", Ratio: benchtest.Exactly(million.buffers)},
			benchtest.Figure{What: "time of the claim's queries beside 1,000,000 at rest / beside none", Ratio: benchtest.Exactly(million.millis / none.millis)},
		)
	}
}

func add(b *testing.B, d *pgtest.DB, sql string, n int) {
	b.Helper()
	conn := d.Admin(b)
	if _, err := conn.Exec(b.Context(), sql, n, 1); err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Exec(b.Context(), "VACUUM ANALYZE scheduler.targets"); err != nil {
		b.Fatal(err)
	}
}

// cost is of one claim: its search for lapsed claims and its search for what is due.
type cost struct{ buffers, millis float64 }

func claimCost(b *testing.B, conn *pgx.Conn) cost {
	b.Helper()
	var buffers, millis []float64
	for range benchRuns + 1 {
		lapsed, ready := explain(b, conn, lockLapsed, lapsedBatch, 0), explain(b, conn, lockReady, benchClaim, benchClaim)
		buffers = append(buffers, (lapsed.buffers+ready.buffers)/benchClaim)
		millis = append(millis, lapsed.millis+ready.millis)
	}
	median := func(v []float64) float64 { return slices.Sorted(slices.Values(v[1:]))[benchRuns/2] }
	return cost{buffers: median(buffers), millis: median(millis)}
}

// explain runs a locking query that returns rows rows, and takes it back.
func explain(b *testing.B, conn *pgx.Conn, sql string, limit, rows int) cost {
	b.Helper()
	var answer []struct {
		Plan struct {
			Rows float64 `json:"Actual Rows"`
			Hit  float64 `json:"Shared Hit Blocks"`
			Read float64 `json:"Shared Read Blocks"`
		}
		Time float64 `json:"Execution Time"`
	}
	undo := errors.New("undo")
	err := pgx.BeginFunc(b.Context(), conn, func(tx pgx.Tx) error {
		var plan []byte
		if err := tx.QueryRow(b.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, pgx.NamedArgs{"limit": limit}).Scan(&plan); err != nil {
			return err
		}
		return errors.Join(json.Unmarshal(plan, &answer), undo)
	})
	if !errors.Is(err, undo) || len(answer) != 1 {
		b.Fatal(err)
	}
	got := answer[0]
	if int(got.Plan.Rows) != rows {
		b.Fatalf("the query returned %v rows, not %d", got.Plan.Rows, rows)
	}
	return cost{buffers: got.Plan.Hit + got.Plan.Read, millis: got.Time}
}
