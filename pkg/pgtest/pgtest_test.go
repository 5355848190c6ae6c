package pgtest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, pgtest.Goroutines()...) }

// walled is a table as every tenant table should be.
const walled = `-- +goose Up
CREATE TABLE acorn.nuts (tenant uuid NOT NULL, id uuid PRIMARY KEY, name text NOT NULL, at timestamptz, CONSTRAINT nuts_name UNIQUE (tenant, name));
ALTER TABLE acorn.nuts ENABLE ROW LEVEL SECURITY;
ALTER TABLE acorn.nuts FORCE ROW LEVEL SECURITY;
CREATE POLICY nuts_system ON acorn.nuts TO fl_acorn USING (true) WITH CHECK (true);
CREATE POLICY nuts_tenant ON acorn.nuts TO fl_acorn_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);`

func forest(extra string) fstest.MapFS {
	fs := fstest.MapFS{
		"acorn/0001_nuts.sql": {Data: []byte(walled)},
		"beech/0001_mast.sql": {Data: []byte("-- +goose Up\nCREATE TABLE beech.mast (id uuid PRIMARY KEY);")},
	}
	if extra != "" {
		fs["acorn/0002_extra.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + extra)}
	}
	return fs
}

// recorder is a testing.TB that keeps what a helper complains about.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Error(args ...any) { r.errors = append(r.errors, fmt.Sprintf("%v", args)) }

func TestDatabasesAreIsolatedAndMigrated(t *testing.T) {
	t.Parallel()
	a, b := pgtest.New(t, forest("")), pgtest.New(t, forest(""))
	insert := "INSERT INTO acorn.nuts (tenant, id, name) VALUES (gen_random_uuid(), gen_random_uuid(), 'x')"
	if err := a.Open(t, "acorn").System(t.Context(), func(tx *pg.Tx) error {
		_, err := tx.Exec(t.Context(), insert)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	count := "SELECT count(*) FROM acorn.nuts"
	if x, y := pgtest.Query[int64](t, a, count), pgtest.Query[int64](t, b, count); x != 1 || y != 0 {
		t.Errorf("the databases hold %d and %d rows, want 1 and 0", x, y)
	}
	if who := pgtest.Query[string](t, a, "SELECT current_user::text"); who == "fl_acorn" {
		t.Errorf("Query runs as %s", who)
	}
	if err := b.Open(t, "beech").CheckSchema(t.Context(), "beech", 1); err != nil {
		t.Error(err)
	}
	if err := b.Open(t, "beech").CheckSchema(t.Context(), "acorn", 1); err == nil {
		t.Error("a service reads another's schema")
	}
}

func TestCatalogAcceptsWalls(t *testing.T) {
	t.Parallel()
	pgtest.Catalog(t, pgtest.New(t, forest("")))
}

func TestCatalogFindsEveryHole(t *testing.T) {
	t.Parallel()
	const own = "ALTER TABLE acorn.t ENABLE ROW LEVEL SECURITY; ALTER TABLE acorn.t FORCE ROW LEVEL SECURITY; " +
		"CREATE POLICY s ON acorn.t TO fl_acorn USING (true); "
	const tenant = "CREATE POLICY p ON acorn.t TO fl_acorn_tenant USING (tenant = current_setting('fenceline.tenant')::uuid); "
	for want, sql := range map[string]string{
		"C1 acorn.t":         "CREATE TABLE acorn.t (tenant uuid NOT NULL);",
		"C4 acorn.f()":       "CREATE FUNCTION acorn.f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';",
		"C5 acorn.v":         "CREATE VIEW acorn.v AS SELECT * FROM acorn.nuts;",
		"C6 acorn.t":         "CREATE TABLE acorn.t (tenant uuid NOT NULL); " + own + tenant + "CREATE POLICY o ON acorn.t FOR SELECT TO fl_acorn_tenant USING (true);",
		"C7 acorn.nuts":      "GRANT TRUNCATE ON acorn.nuts TO fl_acorn;",
		"C9 acorn.t_fk":      "CREATE TABLE acorn.t (tenant uuid NOT NULL, nut uuid, CONSTRAINT t_fk FOREIGN KEY (nut) REFERENCES acorn.nuts (id)); " + own + tenant,
		"C10 acorn.by":       "CREATE UNIQUE INDEX by ON acorn.nuts (name);",
		"C11 acorn.t":        "CREATE TABLE acorn.t (tenant uuid NOT NULL); " + own,
		"C12 fl_beech acorn": "GRANT USAGE ON SCHEMA acorn TO fl_beech;",
		"C15 acorn.t": "CREATE TABLE acorn.t (tenant uuid); " + own + "CREATE POLICY p ON acorn.t TO fl_acorn_tenant " +
			"USING (tenant = current_setting('fenceline.tenant')::uuid OR tenant IS NULL) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);",
		"C17 acorn.t": "CREATE TABLE acorn.t (tenant uuid NOT NULL); " + own + "CREATE POLICY p ON acorn.t TO fl_acorn_tenant USING (true);",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			r := &recorder{TB: t}
			pgtest.Catalog(r, pgtest.New(t, forest(sql)))
			if len(r.errors) == 0 || !strings.HasPrefix(strings.Join(r.errors, "\n")+":", want+":") {
				t.Errorf("found %q, want %s", r.errors, want)
			}
		})
	}
}

func TestCatalogExceptions(t *testing.T) {
	t.Parallel()
	pgtest.Catalog(t, pgtest.New(t, forest("CREATE UNIQUE INDEX by ON acorn.nuts (name); COMMENT ON INDEX acorn.by IS 'across tenants: names are everybody''s';")))
	d := pgtest.New(t, forest("CREATE UNIQUE INDEX by ON acorn.nuts (name);"))
	pgtest.Catalog(t, d, "C10 acorn.by")
	r := &recorder{TB: t}
	pgtest.Catalog(r, d, "C10 acorn.by", "C10 acorn.gone")
	if len(r.errors) != 1 || !strings.Contains(r.errors[0], "not needed") {
		t.Errorf("got %q", r.errors)
	}
}

func TestPrepareAll(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t, forest(""))
	pgtest.PrepareAll(t, d, "acorn", map[string]string{"fine": "SELECT id FROM acorn.nuts WHERE tenant = @tenant AND at < clock_timestamp()"})
	for name, sql := range map[string]string{
		"column":      "SELECT weight FROM acorn.nuts",
		"unqualified": "SELECT id FROM nuts",
		"frozen":      "SELECT id FROM acorn.nuts WHERE at < NOW()",
		"foreign":     "SELECT id FROM beech.mast",
	} {
		r := &recorder{TB: t}
		pgtest.PrepareAll(r, d, "acorn", map[string]string{name: sql})
		if len(r.errors) != 1 || !strings.Contains(r.errors[0], name) {
			t.Errorf("%s: got %q", name, r.errors)
		}
	}
}
