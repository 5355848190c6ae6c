package outbox

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/pg"
)

// What runs all the time walks the partial indexes within its bounds, however many rows are finished.
func TestPlansDoNotDependOnFinishedRows(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.admin(t, `INSERT INTO scheduler.outbox (id, key, digest, destination, payload, not_before, available_at, dispatched_at)
		SELECT gen_random_uuid(), 'system:done:' || i, '\x00', $1, '\x00', now(), now(), now() FROM generate_series(1, 20000) i`, settle)
	e.enqueue(t, many(settle, 300)...)
	e.admin(t, "UPDATE scheduler.outbox SET parked_at = now(), park_reason = 'X' WHERE key LIKE 'system:m:1_'")
	e.admin(t, "ANALYZE scheduler.outbox")
	id := uuid.New()
	const batch = 500
	marks := []any{
		make([]uuid.UUID, batch), make([]uuid.UUID, batch), make([]bool, batch), make([]string, batch),
		make([]float64, batch), make([]int32, batch), make([]string, batch),
	}
	for name, c := range map[string]struct {
		sql  string
		args []any
	}{
		"claim":       {e.box.sql.claim, []any{settle, time.Now().Add(-time.Hour), 100, id, 30.0}},
		"take":        {e.box.sql.take, []any{settle, time.Now().Add(-time.Hour), 100}},
		"mark":        {e.box.sql.mark, marks},
		"peek":        {e.box.sql.peek, []any{[]string{settle, void}}},
		"stats":       {e.box.sql.stats, []any{60.0}},
		"listPending": {e.box.sql.listPending, []any{nil, "", false, nil, false, 51}},
		"listParked":  {e.box.sql.listParked, []any{nil, "", false, nil, false, 51}},
		"retrySet":    {e.box.sql.retrySet, []any{settle, "X", 1000}},
	} {
		plan := e.explain(t, c.sql, c.args...)
		if strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s:\n%.3000s", name, plan)
		}
		if name != "claim" && name != "take" {
			continue
		}
		scan := plan[strings.Index(plan, "outbox_due"):]
		_, cond, _ := strings.Cut(scan, "Index Cond")
		cond, _, _ = strings.Cut(cond, "\n")
		if strings.Contains(plan, "Sort") || strings.Count(cond, "available_at") != 2 {
			t.Errorf("the claim is not in the index's order, or not bounded on both sides:\n%s", plan)
		}
	}
}

func (e *env) explain(t *testing.T, sql string, args ...any) string {
	t.Helper()
	var plan strings.Builder
	err := e.db.System(t.Context(), func(tx *pg.Tx) error {
		rows, err := tx.Query(t.Context(), "EXPLAIN (ANALYZE, BUFFERS) "+sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				return err
			}
			plan.WriteString(line + "\n")
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
