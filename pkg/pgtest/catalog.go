package pgtest

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
)

// Catalog checks what the system catalogs say about the walls between tenants and between services,
// for every schema that an fl_<service>_owner owns. A finding reads "C10 schema.index: …"; those
// whose first two words are in allow, as "C10 schema.index", are reviewed exceptions.
func Catalog(t testing.TB, d *DB, allow ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
	defer cancel()
	conn := d.Admin(t)
	schemas := collect(ctx, t, conn, `
SELECT nspname::text FROM pg_namespace WHERE pg_get_userbyid(nspowner) = 'fl_' || nspname || '_owner' ORDER BY 1`)
	if len(schemas) == 0 {
		t.Error("pgtest: no schema to check")
	}
	used := make(map[string]bool)
	for _, c := range checks {
		for _, object := range collect(ctx, t, conn, c.Query, schemas) {
			key := c.ID + " " + object
			if slices.Contains(allow, key) {
				used[key] = true
				continue
			}
			t.Errorf("%s: %s", key, c.Means)
		}
	}
	for _, a := range allow {
		if !used[a] {
			t.Errorf("the exception %q is not needed", a)
		}
	}
}

func collect(ctx context.Context, t testing.TB, conn *pgx.Conn, query string, args ...any) []string {
	t.Helper()
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("pgtest: %v in %s", err, query)
	}
	return found
}

// checks are those of package pg, and some that need a judgement: their findings may be exceptions.
var checks = append(slices.Clone(pg.Walls), []pg.Wall{
	{ID: "C13", Means: "schema public must be closed", Query: `
SELECT r.rolname::text FROM pg_roles r, unnest($1::text[]) AS s
 WHERE r.rolname IN ('fl_' || s, 'fl_' || s || '_tenant', 'fl_' || s || '_owner')
   AND (has_schema_privilege(r.oid, 'public', 'USAGE') OR has_schema_privilege(r.oid, 'public', 'CREATE'))`},
	{ID: "C15", Means: "the tenant role's policies must compare tenant with fenceline.tenant, and fail without one", Query: `
SELECT format('%I.%I', p.schemaname, p.tablename) FROM pg_policies p
 WHERE p.schemaname = ANY ($1) AND ('fl_' || p.schemaname || '_tenant')::name = ANY (p.roles)
   AND (p.qual IS DISTINCT FROM '(tenant = (current_setting(''fenceline.tenant''::text))::uuid)'
        OR coalesce(p.with_check, p.qual) IS DISTINCT FROM p.qual)`},
}...)
