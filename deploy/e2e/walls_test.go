package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

// exceptions are what the catalog checks may find, each with its reason.
var exceptions = []string{
	// One account of a host has one tenant, one installation one account, one repository one project,
	// whoever asks: a second binding must fail, and only the system role writes these rows.
	"C10 ingest.accounts_bound_once",
	"C10 ingest.installations_once",
	"C10 ingest.projects_once",
	// A number made by the database, never asked for by a tenant.
	"C10 scheduler.decisions_pkey",
	// A pause of a host or an installation may hold up several tenants, and each may see why.
	"C15 scheduler.pauses",
}

// TestCatalog checks the walls between tenants and services in the catalogs of the migrated database.
func TestCatalog(t *testing.T) {
	t.Parallel()
	pgtest.Catalog(t, pgtest.New(t, migrations.FS), exceptions...)
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
	}
}
