package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"
)

// DB runs the transactions of one service.
type DB struct {
	pool     *pgxpool.Pool
	cfg      Config
	service  string
	counters counters
}

// Open connects as the login role fl_<service> and proves the connection with one round trip. It
// refuses a role that is a superuser, bypasses row-level security or owns the schema, and, unless
// AllowUnsafe, a server that can lose acknowledged commits. A server that can't be reached is
// ErrUnavailable. tracer may be nil; it is used only with TraceStatements.
func Open(ctx context.Context, cfg Config, service string, tracer trace.TracerProvider) (*DB, error) {
	if !serviceName.MatchString(service) {
		return nil, fmt.Errorf("pg: %q is not a service name", service)
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("pg: %w", err)
	}
	db := &DB{cfg: cfg.withDefaults(), service: service}
	pc, err := poolConfig(db.cfg, service, &db.counters, tracer)
	if err != nil {
		return nil, fmt.Errorf("pg: DSN: %w", err)
	}
	// The pool's own context must outlive the caller's start-up deadline.
	db.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), pc)
	if err != nil {
		return nil, fmt.Errorf("pg: open pool: %w", err)
	}
	if err := db.Ping(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// Close ends the pool and waits for the connections that are in use.
func (db *DB) Close() { db.pool.Close() }

// Ping proves that a connection can be had and answers.
func (db *DB) Ping(ctx context.Context) error {
	conn, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := conn.Ping(ctx); err != nil {
		return db.explain(ctx, fmt.Errorf("pg: ping: %w", err))
	}
	return nil
}

// Now returns the database's clock, in UTC. Only that clock judges leases.
func (db *DB) Now(ctx context.Context) (time.Time, error) {
	conn, err := db.acquire(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer conn.Release()
	var now time.Time
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.clock_timestamp()").Scan(&now); err != nil {
		return time.Time{}, db.explain(ctx, fmt.Errorf("pg: read the clock: %w", err))
	}
	return now, nil
}

// CheckSchema refuses a schema of the service that is older than want, or absent: services never
// migrate. A newer one is fine, migrations keep the previous binary working.
func (db *DB) CheckSchema(ctx context.Context, service string, want int64) error {
	if !serviceName.MatchString(service) {
		return fmt.Errorf("pg: %q is not a service name", service)
	}
	conn, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var have int64
	query := "SELECT pg_catalog.max(version_id) FROM " + service + ".schema_version WHERE is_applied"
	if err := conn.QueryRow(ctx, query, pgx.QueryExecModeExec).Scan(&have); err != nil {
		if code := sqlState(err); code == "42P01" || code == "3F000" || code == "42501" {
			return fmt.Errorf("pg: schema %s has no version that this role can read; run the migrator first: %w", service, err)
		}
		return db.explain(ctx, fmt.Errorf("pg: read the schema version of %s: %w", service, err))
	}
	if have < want {
		return fmt.Errorf("pg: schema %s is at version %d, this binary needs %d; run the migrator first", service, have, want)
	}
	return nil
}

// acquire waits for a connection, at most AcquireTimeout.
func (db *DB) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	within, cancel := context.WithTimeout(ctx, db.cfg.AcquireTimeout)
	defer cancel()
	conn, err := db.pool.Acquire(within)
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("pg: wait for a connection: %w", ctx.Err())
	case errors.Is(err, errRefused):
		return nil, err
	default:
		return nil, fmt.Errorf("%w: no connection: %w", ErrUnavailable, err)
	}
}
