package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	slash "path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/migrate"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

// exceptions are what the catalog checks may find, each with its reason.
var exceptions = []string{
	// A pause of a host or an installation may hold up several tenants, and each may see why.
	"C15 scheduler.pauses",
}

// TestCatalog checks the walls between tenants and services in the catalogs of the migrated database.
func TestCatalog(t *testing.T) {
	t.Parallel()
	pgtest.Catalog(t, pgtest.New(t, migrations.FS), exceptions...)
}

// TestWallsAfterEveryMigration brings a database up one migration at a time, all services in turn: the walls stand
// after each, also while a rolling upgrade has come no further.
func TestWallsAfterEveryMigration(t *testing.T) {
	t.Parallel()
	const outbox = "0001_outbox.sql"
	so, left := fstest.MapFS{}, map[string][]string{}
	add := func(service, file string) {
		data, err := fs.ReadFile(migrations.FS, slash.Join(service, file))
		if err != nil {
			t.Fatal(err)
		}
		so[slash.Join(service, file)] = &fstest.MapFile{Data: data}
	}
	for _, s := range services {
		files, err := fs.Glob(migrations.FS, slash.Join(s, "*.sql"))
		if err != nil || slash.Base(files[0]) != outbox {
			t.Fatal(files, err)
		}
		add(s, outbox)
		for _, f := range files[1:] {
			left[s] = append(left[s], slash.Base(f))
		}
	}
	db := pgtest.New(t, so)
	pgtest.Catalog(t, db)
	for steps := 1; steps > 0; {
		steps = 0
		for _, s := range services {
			if len(left[s]) == 0 {
				continue
			}
			steps++
			add(s, left[s][0])
			if err := migrate.Run(t.Context(), migrate.Options{DSN: db.AdminDSN(), FS: so}); err != nil {
				t.Fatal(err)
			}
			pgtest.Catalog(t, db, allowedSoFar(t, db)...)
			if t.Failed() {
				t.Fatalf("after %s/%s", s, left[s][0])
			}
			left[s] = left[s][1:]
		}
	}
}

// allowedSoFar are the exceptions that a database needs that has not come to its newest migrations: what is unique
// across tenants says so since the migrations called uniqueness.
func allowedSoFar(t *testing.T, db *pgtest.DB) []string {
	t.Helper()
	early := pgtest.Query[[]string](t, db, `
SELECT coalesce(array_agg('C10 ' || name), '{}')
  FROM unnest(ARRAY['ingest.accounts_bound_once', 'ingest.installations_once', 'ingest.projects_once', 'scheduler.decisions_pkey']) AS name
 WHERE to_regclass(name) IS NOT NULL AND obj_description(to_regclass(name), 'pg_class') IS NULL`)
	if pgtest.Query[bool](t, db, `SELECT to_regclass('scheduler.pauses') IS NOT NULL`) {
		return append(early, exceptions...)
	}
	return early
}

// TestNoRoleReadsAnotherSchema tries every login role on every table of every service.
func TestNoRoleReadsAnotherSchema(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	rows, err := db.Admin(t).Query(t.Context(), `SELECT schemaname, tablename FROM pg_tables WHERE schemaname = ANY ($1)`, services)
	if err != nil {
		t.Fatal(err)
	}
	type table struct{ Schema, Name string }
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[table])
	if err != nil || len(tables) < 20 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	for _, s := range services {
		conn, err := pgx.Connect(t.Context(), db.DSN(s))
		if err != nil {
			t.Fatal(err)
		}
		for _, tb := range tables {
			for _, role := range []string{"fl_" + s, "fl_" + s + "_tenant"} {
				_, err := conn.Exec(t.Context(), fmt.Sprintf(`SET ROLE %s; SELECT FROM %s.%s LIMIT 1`, role, tb.Schema, pgx.Identifier{tb.Name}.Sanitize()))
				if err == nil && tb.Schema != s {
					t.Errorf("%s reads %s.%s", role, tb.Schema, tb.Name)
				}
			}
		}
		_ = conn.Close(t.Context())
	}
}

// TestServicesRefuseWallsWithHoles: each service looks at its walls under its own role before it does anything,
// and ends where somebody made a hole.
func TestServicesRefuseWallsWithHoles(t *testing.T) {
	w := newWorld(t)
	admin, err := pgx.Connect(t.Context(), w.db.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.WithoutCancel(t.Context()))
	if err := pg.Holes(t.Context(), admin, services...); err != nil {
		t.Fatal(err)
	}
	for _, s := range services {
		if _, err := admin.Exec(t.Context(), fmt.Sprintf("ALTER TABLE %s.outbox NO FORCE ROW LEVEL SECURITY", s)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), filepath.Join(binaries, s))
		for k, v := range w.settings(s) {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "C1 "+s+".outbox") {
			t.Errorf("%s ended with %v, saying:\n%s", s, err, out)
		}
		// The migrator tells it, too, once it is done.
		if err := pg.Holes(t.Context(), admin, services...); err == nil || !strings.Contains(err.Error(), "C1 "+s+".outbox") {
			t.Errorf("the migrator says %v", err)
		}
	}
}
