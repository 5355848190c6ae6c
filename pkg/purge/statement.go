package purge

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fenceline-dev/fenceline/pkg/pg"
)

// Statement is a Remove that is one statement under the system role, in one round trip: it deletes up to
// @limit rows that are older than @age.
func Statement(db *pg.DB, sql string) func(context.Context, time.Duration, int) (int, error) {
	return func(ctx context.Context, age time.Duration, limit int) (int, error) {
		return exec(ctx, db, sql, pgx.NamedArgs{"age": age, "limit": limit})
	}
}

func exec(ctx context.Context, db *pg.DB, sql string, args pgx.NamedArgs) (int, error) {
	n := 0
	b := &pg.Batch{}
	b.Queue(sql, args).Exec(func(tag pgconn.CommandTag) error {
		n = int(tag.RowsAffected())
		return nil
	})
	if err := db.SystemBatch(ctx, b); err != nil {
		return 0, fmt.Errorf("purge: %w", err)
	}
	return n, nil
}

// Made is SQL for the smallest UUIDv7 that may have been made after @age ago: ids are in the order of time,
// so that a primary key finds what is old without an index on a time. It is a subquery, so that its clock
// is read once and can bound a scan.
const Made = `(SELECT (lpad(to_hex(GREATEST(extract(epoch FROM clock_timestamp() - @age::interval) * 1000, 0)::bigint), 12, '0')
               || repeat('0', 20))::uuid)`
