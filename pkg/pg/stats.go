package pg

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// Stats counts what a DB did since it was opened.
type Stats struct {
	Statements int64 // SQL statements of the callers
	Control    int64 // BEGIN, COMMIT, ROLLBACK and the setting of role, tenant and the like
	Trips      int64 // round trips, without the one that prepares a statement for the first time
	Commits    int64 // transactions committed, batches included
	Rollbacks  int64 // transactions rolled back
	Retries    int64 // transactions run again after a serialization failure or a deadlock
}

// Stats returns the counts so far.
func (db *DB) Stats() Stats {
	c := &db.counters
	return Stats{
		Statements: c.statements.Load(),
		Control:    c.control.Load(),
		Trips:      c.trips.Load(),
		Commits:    c.commits.Load(),
		Rollbacks:  c.rollbacks.Load(),
		Retries:    c.retries.Load(),
	}
}

// counters is a pgx tracer that counts and does nothing else.
type counters struct {
	statements, control, trips, commits, rollbacks, retries atomic.Int64
}

var (
	_ pgx.QueryTracer    = (*counters)(nil)
	_ pgx.BatchTracer    = (*counters)(nil)
	_ pgx.CopyFromTracer = (*counters)(nil)
)

func (c *counters) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	c.trips.Add(1)
	if isControl(d.SQL) {
		c.control.Add(1)
	} else {
		c.statements.Add(1)
	}
	return ctx
}

func (c *counters) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *counters) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	c.trips.Add(1)
	for _, q := range d.Batch.QueuedQueries {
		if q.SQL == setTenant || q.SQL == setNoWait {
			c.control.Add(1)
		} else {
			c.statements.Add(1)
		}
	}
	return ctx
}

func (c *counters) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (c *counters) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (c *counters) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	c.trips.Add(1)
	c.statements.Add(1)
	return ctx
}

func (c *counters) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}

// isControl recognises what pgx and this package send around a closure's own statements.
func isControl(sql string) bool {
	for _, p := range []string{"begin", "BEGIN", "commit", "rollback", "savepoint", "release", "-- ping"} {
		if strings.HasPrefix(sql, p) {
			return true
		}
	}
	return false
}
