package pgtest

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

// frozen finds clocks that stand still inside a transaction: a fence that waited for a lock would
// be judged by the time before the wait.
var frozen = regexp.MustCompile(`(?i)\b(now\s*\(|current_timestamp\b|localtimestamp\b|transaction_timestamp\s*\(|statement_timestamp\s*\()`)

// PrepareAll prepares every statement of a service under its login role, which finds wrong names,
// columns and types without any data, and refuses clocks other than clock_timestamp().
func PrepareAll(t testing.TB, d *DB, service string, queries map[string]string) {
	t.Helper()
	if len(queries) == 0 {
		t.Error("pgtest: no queries to prepare")
	}
	conn := d.connect(t, d.DSN(service))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
	defer cancel()
	if _, err := conn.Exec(ctx, "SELECT set_config('search_path', '', false)"); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(queries)) {
		sql := queries[name]
		if found := frozen.FindString(sql); found != "" {
			t.Errorf("pgtest: query %s reads %s…, which stands still in a transaction: use clock_timestamp()", name, found)
		}
		rewritten, _, err := pgx.NamedArgs{}.RewriteQuery(ctx, conn, sql, nil)
		if err != nil {
			t.Errorf("pgtest: query %s: %v", name, err)
			continue
		}
		if _, err := conn.Prepare(ctx, "q_"+name, rewritten); err != nil {
			t.Errorf("pgtest: query %s does not prepare: %v", name, err)
		}
	}
}
