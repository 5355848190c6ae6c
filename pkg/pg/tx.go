package pg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// maxRuns bounds how often a transaction runs when it keeps losing to concurrent ones.
const maxRuns = 5

// Tx is a transaction inside System or Tenant.
type Tx struct {
	pgx.Tx
	hooks []func()
}

// OnCommit registers a function to run after the transaction committed, in order of registration.
// It does not run when the commit failed or its answer was lost.
func (tx *Tx) OnCommit(fn func()) { tx.hooks = append(tx.hooks, fn) }

// Commit refuses: the transaction ends when the closure returns.
func (tx *Tx) Commit(context.Context) error { return errors.New("pg: the closure must not commit") }

// Rollback refuses: a closure rolls back by returning an error.
func (tx *Tx) Rollback(context.Context) error {
	return errors.New("pg: the closure must not roll back")
}

// System runs fn in a transaction of the login role, which sees the rows of every tenant. After a
// serialization failure or a deadlock fn runs again, at most 5 times in all, so it must keep no
// state between runs. An error of fn rolls back and is returned as it is; see ErrUnavailable and
// ErrUnknownOutcome for the database's own.
func (db *DB) System(ctx context.Context, fn func(*Tx) error) error {
	return db.run(ctx, "BEGIN", fn)
}

// Tenant is System under the role fl_<service>_tenant, which sees the rows of one tenant only.
// Role and tenant travel with BEGIN in one round trip. uuid.Nil is ErrNoTenant.
func (db *DB) Tenant(ctx context.Context, tenant uuid.UUID, fn func(*Tx) error) error {
	return db.tenant(ctx, "BEGIN", tenant, fn)
}

// TenantSnapshot is Tenant for reads of several statements that must agree: all see the database as it
// was at the first. A write in it is refused.
func (db *DB) TenantSnapshot(ctx context.Context, tenant uuid.UUID, fn func(*Tx) error) error {
	return db.tenant(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", tenant, fn)
}

func (db *DB) tenant(ctx context.Context, begin string, tenant uuid.UUID, fn func(*Tx) error) error {
	if tenant == uuid.Nil {
		return ErrNoTenant
	}
	// Several statements in one message can't have parameters. A uuid's text form and a checked
	// service name can be spliced.
	return db.run(ctx, begin+"; SELECT pg_catalog.set_config('role', 'fl_"+db.service+"_tenant', true), "+
		"pg_catalog.set_config('fenceline.tenant', '"+tenant.String()+"', true)", fn)
}

func (db *DB) run(ctx context.Context, begin string, fn func(*Tx) error) error {
	for n := 1; ; n++ {
		err := db.once(ctx, begin, fn)
		if err == nil || n == maxRuns || !again(err) || db.pause(ctx, n, err) != nil {
			return err
		}
	}
}

// pause waits before the next run, longer each time and never as long as a rival does.
func (db *DB) pause(ctx context.Context, n int, cause error) error {
	db.counters.retries.Add(1)
	trace.SpanFromContext(ctx).AddEvent("fenceline.pg.retry", trace.WithAttributes(
		attribute.String("db.response.status_code", sqlState(cause)), attribute.Int("fenceline.pg.run", n)))
	timer := time.NewTimer(rand.N(10 * time.Millisecond << n))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (db *DB) once(ctx context.Context, begin string, fn func(*Tx) error) (err error) {
	conn, ptx, err := db.begin(ctx, begin)
	if err != nil {
		return err
	}
	defer conn.Release() // destroys a connection that is not idle, also after a panic of fn
	tx := &Tx{Tx: ptx}
	if err := fn(tx); err != nil {
		db.rollback(ctx, ptx)
		return db.explain(ctx, err)
	}
	if err := db.commit(ctx, conn, ptx); err != nil {
		return err
	}
	conn.Release() // a hook may need the pool's last connection
	for _, hook := range tx.hooks {
		hook()
	}
	return nil
}

// begin starts a transaction. A pooled connection may have died since its last use, with the server
// perhaps: BEGIN did nothing then, so the next one is tried, up to a fresh one.
func (db *DB) begin(ctx context.Context, begin string) (*pgxpool.Conn, pgx.Tx, error) {
	for n := int32(0); ; n++ {
		conn, err := db.acquire(ctx)
		if err != nil {
			return nil, nil, err
		}
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
		if err == nil {
			return conn, tx, nil
		}
		conn.Release()
		err = db.explain(ctx, fmt.Errorf("pg: begin: %w", err))
		if n >= db.cfg.MaxConns || !errors.Is(err, ErrUnavailable) {
			return nil, nil, err
		}
	}
}

func (db *DB) commit(ctx context.Context, conn *pgxpool.Conn, tx pgx.Tx) error {
	if conn.Conn().IsClosed() { // fn lost it and said nothing: no COMMIT was ever sent
		db.counters.rollbacks.Add(1)
		return fmt.Errorf("%w: connection lost before commit", ErrUnavailable)
	}
	err := tx.Commit(ctx)
	if err == nil {
		db.counters.commits.Add(1)
		return nil
	}
	db.counters.rollbacks.Add(1)
	err = fmt.Errorf("pg: commit: %w", err)
	if ambiguous(err) {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return db.explain(ctx, err)
}

// ambiguous reports whether the commit that err answers may have happened.
func ambiguous(err error) bool {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		// An ERROR rolled back. The end of a session may come after the commit, except where it is
		// said to have found the transaction idle, that is, before COMMIT was read.
		return fatal(pe) && pe.Code != "25P03"
	}
	return !errors.Is(err, pgx.ErrTxCommitRollback) && !errors.Is(err, pgx.ErrTxClosed) && !pgconn.SafeToRetry(err)
}

// rollback ends a failed transaction and keeps its connection, also when the caller's context is
// over; without an answer within a second the connection is dropped, and the server rolls back.
func (db *DB) rollback(ctx context.Context, tx pgx.Tx) {
	db.counters.rollbacks.Add(1)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = tx.Rollback(within)
}
