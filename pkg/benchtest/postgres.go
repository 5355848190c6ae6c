package benchtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

// Conns is the size of every pool that takes part in a comparison.
const Conns = 32

// Durable ends the benchmark unless a commit of this database reaches the disk before it is answered:
// figures of a server that only pretends are not comparable.
func Durable(b *testing.B, d *pgtest.DB) {
	b.Helper()
	rows, err := d.Admin(b).Query(b.Context(), `
SELECT name, setting
  FROM pg_catalog.pg_settings
 WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes')`)
	if err != nil {
		b.Fatalf("read pg_settings: %v", err)
	}
	var name, setting string
	_, err = pgx.ForEachRow(rows, []any{&name, &setting}, func() error {
		if setting != "on" {
			b.Fatalf("%s is %s: benchmarks need a server that syncs, as make bench starts one", name, setting)
		}
		return nil
	})
	if err != nil {
		b.Fatalf("read pg_settings: %v", err)
	}
}

// Open opens a service's pool as the service itself does, with Conns connections.
func Open(b *testing.B, d *pgtest.DB, service string) *pg.DB {
	b.Helper()
	db, err := pg.Open(b.Context(), pg.Config{DSN: config.Secret(d.DSN(service)), MaxConns: Conns}, service, nil)
	if err != nil {
		b.Fatalf("open as %s: %v", service, err)
	}
	b.Cleanup(db.Close)
	return db
}

// Pool opens a plain pgx pool of the same size under the same role: what one would use by hand.
func Pool(b *testing.B, d *pgtest.DB, service string) *pgxpool.Pool {
	b.Helper()
	cfg, err := pgxpool.ParseConfig(d.DSN(service))
	if err != nil {
		b.Fatalf("plain pool: %v", err)
	}
	cfg.MaxConns = Conns
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(b.Context()), cfg)
	if err != nil {
		b.Fatalf("plain pool: %v", err)
	}
	b.Cleanup(pool.Close)
	return pool
}

// Exec runs statements as the administrator, outside of what is measured.
func Exec(b *testing.B, d *pgtest.DB, statements ...string) {
	b.Helper()
	conn := d.Admin(b)
	for _, sql := range statements {
		if _, err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatalf("prepare the benchmark: %v", err)
		}
	}
}
