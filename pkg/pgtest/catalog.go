package pgtest

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
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
		for _, object := range collect(ctx, t, conn, c.query, schemas) {
			key := c.id + " " + object
			if slices.Contains(allow, key) {
				used[key] = true
				continue
			}
			t.Errorf("%s: %s", key, c.means)
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

// checks return one text per finding; $1 is the list of schemas.
var checks = []struct{ id, means, query string }{
	{"C1", "a table with a tenant needs row-level security enabled and forced", `
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped
 WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p') AND NOT (c.relrowsecurity AND c.relforcerowsecurity)`},
	{"C2", "a service's role must have no power over the cluster and inherit nothing", `
SELECT rolname::text FROM pg_roles, unnest($1::text[]) AS s
 WHERE rolname IN ('fl_' || s, 'fl_' || s || '_owner', 'fl_' || s || '_tenant')
   AND (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication OR rolinherit
        OR rolcanlogin <> (rolname = 'fl_' || s))`},
	{"C3", "a role that can log in must own nothing", `
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_roles r ON r.oid = c.relowner WHERE r.rolcanlogin AND n.nspname = ANY ($1)`},
	{"C4", "a security-definer function must pin search_path", `
SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE n.nspname = ANY ($1) AND p.prosecdef
   AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS g WHERE g LIKE 'search_path=%')`},
	{"C5", "a view must run as its caller (security_invoker), and a materialized view can't", `
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = ANY ($1) AND (c.relkind = 'm' OR c.relkind = 'v'
   AND NOT coalesce(c.reloptions && ARRAY['security_invoker=true', 'security_invoker=on'], false))`},
	{"C6", "permissive policies of one table, command and role are ORed", `
SELECT DISTINCT format('%I.%I', p.schemaname, p.tablename) FROM pg_policies p, unnest(p.roles) AS role
 WHERE p.schemaname = ANY ($1) AND p.permissive = 'PERMISSIVE' AND EXISTS (
   SELECT FROM pg_policies q WHERE q.schemaname = p.schemaname AND q.tablename = p.tablename
      AND q.policyname <> p.policyname AND q.permissive = 'PERMISSIVE'
      AND (role = ANY (q.roles) OR 'public' = ANY (q.roles) OR role = 'public')
      AND (q.cmd = p.cmd OR 'ALL' IN (q.cmd, p.cmd)))`},
	{"C7", "grants stay inside the own schema and hold no TRUNCATE, REFERENCES or TRIGGER", `
SELECT DISTINCT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
       aclexplode(c.relacl) AS a LEFT JOIN pg_roles r ON r.oid = a.grantee
 WHERE n.nspname = ANY ($1) AND a.grantee <> c.relowner
   AND (a.privilege_type IN ('TRUNCATE', 'REFERENCES', 'TRIGGER') OR r.rolname IS NULL
        OR r.rolname NOT IN ('fl_' || n.nspname, 'fl_' || n.nspname || '_tenant'))`},
	{"C8", "a leakproof function sees rows that a policy hides", `
SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE p.proleakproof AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND cardinality($1::text[]) > 0`},
	{"C9", "a foreign key without the tenant accepts another tenant's row", `
SELECT format('%I.%I', n.nspname, k.conname) FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace
 WHERE k.contype = 'f' AND n.nspname = ANY ($1)
   AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = k.confrelid AND a.attname = 'tenant')
   AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey) AND a.attname = 'tenant')`},
	// Not meant: one surrogate uuid, which nobody can guess, and tables whose tenant may be null,
	// because the rows of the system share them.
	{"C10", "a unique index without the tenant reveals that another tenant's value exists", `
SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = 'tenant' AND NOT t.attisdropped
 WHERE i.indisunique AND n.nspname = ANY ($1) AND t.attnotnull AND NOT t.attnum = ANY (i.indkey)
   AND NOT (i.indnkeyatts = 1 AND EXISTS (SELECT FROM pg_attribute k
            WHERE k.attrelid = c.oid AND k.attnum = i.indkey[0] AND k.atttypid = 'uuid'::regtype))`},
	{"C11", "a role without a policy for a command silently sees no rows there", `
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
       unnest(ARRAY['fl_' || n.nspname, 'fl_' || n.nspname || '_tenant']) AS role
 WHERE n.nspname = ANY ($1) AND c.relrowsecurity AND NOT EXISTS (
   SELECT FROM pg_policies p WHERE p.schemaname = n.nspname AND p.tablename = c.relname
      AND p.cmd = 'ALL' AND role = ANY (p.roles))`},
	{"C12", "a service's roles must not see another service's schema", `
SELECT format('%s %s', r.rolname, s) FROM pg_roles r, unnest($1::text[]) AS s, unnest($1::text[]) AS own
 WHERE own <> s AND r.rolname IN ('fl_' || own, 'fl_' || own || '_tenant', 'fl_' || own || '_owner')
   AND (has_schema_privilege(r.oid, s, 'USAGE') OR has_schema_privilege(r.oid, s, 'CREATE'))`},
	{"C13", "schema public must be closed", `
SELECT r.rolname::text FROM pg_roles r, unnest($1::text[]) AS s
 WHERE r.rolname IN ('fl_' || s, 'fl_' || s || '_tenant', 'fl_' || s || '_owner')
   AND (has_schema_privilege(r.oid, 'public', 'USAGE') OR has_schema_privilege(r.oid, 'public', 'CREATE'))`},
	{"C14", "session guards must stand on the login role", `
SELECT 'fl_' || s || '.' || guard FROM unnest($1::text[]) AS s,
       unnest(ARRAY['idle_in_transaction_session_timeout', 'lock_timeout', 'statement_timeout']) AS guard
 WHERE NOT EXISTS (SELECT FROM pg_db_role_setting x, unnest(x.setconfig) AS c
                    WHERE x.setdatabase = 0 AND x.setrole = ('fl_' || s)::regrole AND c ~ ('^' || guard || '=[1-9]'))`},
	{"C15", "the tenant role's policies must compare tenant with fenceline.tenant, and fail without one", `
SELECT format('%I.%I', p.schemaname, p.tablename) FROM pg_policies p
 WHERE p.schemaname = ANY ($1) AND ('fl_' || p.schemaname || '_tenant')::name = ANY (p.roles)
   AND (p.qual IS DISTINCT FROM '(tenant = (current_setting(''fenceline.tenant''::text))::uuid)'
        OR coalesce(p.with_check, p.qual) IS DISTINCT FROM p.qual)`},
	{"C16", "a sequence must not be writable", `
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
       aclexplode(c.relacl) AS a
 WHERE n.nspname = ANY ($1) AND c.relkind = 'S' AND a.grantee <> c.relowner AND a.privilege_type = 'UPDATE'`},
}
