package pgtest_test

import (
	"strings"
	"testing"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

// A service asks under its own login role at every start, and refuses each hole that somebody made by hand.
func TestCheckWallsRefusesEveryHole(t *testing.T) {
	t.Parallel()
	if err := pgtest.New(t, forest("")).Open(t, "acorn").CheckWalls(t.Context(), "acorn"); err != nil {
		t.Fatalf("walls that are whole: %v", err)
	}
	for want, sql := range map[string]string{
		"C1 acorn.nuts":  "ALTER TABLE acorn.nuts NO FORCE ROW LEVEL SECURITY",
		"C3 acorn.nuts":  "ALTER TABLE acorn.nuts OWNER TO fl_acorn",
		"C4 acorn.f()":   "CREATE FUNCTION acorn.f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
		"C5 acorn.v":     "CREATE VIEW acorn.v AS SELECT * FROM acorn.nuts",
		"C6 acorn.nuts":  "CREATE POLICY more ON acorn.nuts FOR SELECT TO fl_acorn_tenant USING (tenant = current_setting('fenceline.tenant')::uuid OR name = 'x')",
		"C7 acorn.nuts":  "GRANT SELECT ON acorn.nuts TO PUBLIC",
		"C8 acorn.f()":   "CREATE FUNCTION acorn.f() RETURNS int LANGUAGE sql LEAKPROOF AS 'SELECT 1'",
		"C9 acorn.t_fk":  "CREATE TABLE acorn.t (nut uuid, CONSTRAINT t_fk FOREIGN KEY (nut) REFERENCES acorn.nuts (id))",
		"C10 acorn.by":   "CREATE UNIQUE INDEX by ON acorn.nuts (name)",
		"C11 acorn.nuts": "DROP POLICY nuts_tenant ON acorn.nuts",
		"C12 fl_acorn b": "GRANT USAGE ON SCHEMA beech TO fl_acorn",
		"C17 acorn.nuts": "ALTER POLICY nuts_tenant ON acorn.nuts USING (true)",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t, forest(""))
			db := d.Open(t, "acorn")
			if _, err := d.Admin(t).Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
			if err := db.CheckWalls(t.Context(), "acorn"); err == nil || !strings.Contains(err.Error(), "refused: "+want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}
