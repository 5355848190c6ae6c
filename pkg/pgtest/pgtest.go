// Package pgtest gives each test a migrated PostgreSQL database of its own, cloned from a template
// that is made once.
package pgtest

import (
	"context"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/pg"
)

// within bounds every step of the harness.
const within = 2 * time.Minute

// DB is one test's database.
type DB struct {
	Name string

	server *server
}

// New clones a database with the newest schemas of migrations and drops it when the test ends. The
// cluster is that of $FENCELINE_TEST_POSTGRES, an administrator's connection string, or one that is
// started for this test process and goes with it.
func New(t testing.TB, migrations fs.FS) *DB {
	t.Helper()
	s, err := theServer()
	if err != nil {
		t.Fatalf("pgtest: no PostgreSQL: %v", err)
	}
	template, err := s.template(migrations)
	if err != nil {
		t.Fatalf("pgtest: make the template: %v", err)
	}
	name, err := s.clone(template)
	if err != nil {
		t.Fatalf("pgtest: clone %s: %v", template, err)
	}
	t.Cleanup(func() {
		if err := s.drop(name); err != nil {
			t.Errorf("pgtest: drop %s: %v", name, err)
		}
	})
	return &DB{Name: name, server: s}
}

// AdminDSN returns the administrator's connection string for the database.
func (d *DB) AdminDSN() string { return d.server.dsn(d.Name, "") }

// DSN returns the connection string of a service's login role, which owns nothing and bypasses
// nothing: a test that connects as the owner does not test row-level security.
func (d *DB) DSN(service string) string { return d.server.dsn(d.Name, "fl_"+service) }

// Open opens a pool under the service's login role and closes it when the test ends.
func (d *DB) Open(t testing.TB, service string) *pg.DB {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
	defer cancel()
	db, err := pg.Open(ctx, pg.Config{DSN: config.Secret(d.DSN(service)), MaxConns: 8, AllowUnsafe: true}, service, nil)
	if err != nil {
		t.Fatalf("pgtest: open as fl_%s: %v", service, err)
	}
	t.Cleanup(db.Close)
	return db
}

// Admin connects as the administrator, past every policy: to look at what a service wrote, or to
// seed what it can't. The connection closes when the test ends.
func (d *DB) Admin(t testing.TB) *pgx.Conn {
	t.Helper()
	return d.connect(t, d.AdminDSN())
}

func (d *DB) connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatalf("pgtest: connect: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn
}

// Query returns one value of one row, read as the administrator.
func Query[T any](t testing.TB, d *DB, sql string, args ...any) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.AdminDSN())
	if err != nil {
		t.Fatalf("pgtest: connect: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("pgtest: %s: %v", oneLine(sql), err)
	}
	return v
}

func oneLine(sql string) string {
	if len(sql) > 80 {
		sql = sql[:80] + "…"
	}
	return fmt.Sprintf("%q", sql)
}
