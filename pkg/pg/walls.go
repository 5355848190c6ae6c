package pg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Wall is a rule that keeps tenants and services apart, and a query that returns one text for each object
// that breaks it. Any role may ask it; $1 is a list of schemas.
type Wall struct {
	ID, Means, Query string
}

// CheckWalls refuses a schema of the service whose walls have holes: row-level security that is not enabled,
// not forced or without a tenant's policy, roles that could get around it, grants that let others in. The
// error names every finding. Owners and superusers make holes by hand, so it is asked at every start.
func (db *DB) CheckWalls(ctx context.Context, service string) error {
	conn, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	findings, err := holes(ctx, conn.Conn(), service)
	if err != nil {
		return db.explain(ctx, fmt.Errorf("pg: check the walls of %s: %w", service, err))
	}
	return joined(findings)
}

// Holes is CheckWalls of several services for whoever has a connection, as the migrator when it is done.
func Holes(ctx context.Context, conn *pgx.Conn, services ...string) error {
	findings, err := holes(ctx, conn, services...)
	if err != nil {
		return fmt.Errorf("pg: check the walls: %w", err)
	}
	return joined(findings)
}

func holes(ctx context.Context, conn *pgx.Conn, services ...string) ([]finding, error) {
	rows, err := conn.Query(ctx, wallsQuery, pgx.QueryExecModeExec, services)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[finding])
}

func joined(findings []finding) error {
	errs := make([]error, len(findings))
	for i, f := range findings {
		errs[i] = fmt.Errorf("%w: %s %s: %s", errRefused, f.ID, f.Object, f.Means)
	}
	return errors.Join(errs...)
}

type finding struct{ ID, Object, Means string }

// wallsQuery asks for all at once.
var wallsQuery = func() string {
	parts := make([]string, len(Walls))
	for i, w := range Walls {
		parts[i] = fmt.Sprintf("SELECT '%s', found.object, '%s' FROM (%s) AS found (object)", w.ID, strings.ReplaceAll(w.Means, "'", "''"), w.Query)
	}
	return strings.Join(parts, "\nUNION ALL\n")
}()

// Walls are the rules that hold for every schema without exception. Package pgtest has more, which need a
// judgement.
var Walls = []Wall{
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
 WHERE p.proleakproof AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND cardinality($1::text[]) > 0
   AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.objid = p.oid AND e.classid = 'pg_proc'::regclass AND e.deptype = 'e')`},
	{"C9", "a foreign key without the tenant accepts another tenant's row", `
SELECT format('%I.%I', n.nspname, k.conname) FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace
 WHERE k.contype = 'f' AND n.nspname = ANY ($1)
   AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = k.confrelid AND a.attname = 'tenant')
   AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey) AND a.attname = 'tenant')`},
	// Not meant: one surrogate uuid, which nobody can guess; tables whose tenant may be null, because the rows of the
	// system share them; and an index whose comment says why. That stands in the database, so that a binary that is
	// older than the index starts, too.
	{"C10", "a unique index without the tenant reveals that another tenant's value exists", `
SELECT format('%I.%I', n.nspname, x.relname) FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
  JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = 'tenant' AND NOT t.attisdropped
 WHERE i.indisunique AND n.nspname = ANY ($1) AND t.attnotnull AND NOT t.attnum = ANY (i.indkey)
   AND coalesce(obj_description(i.indexrelid, 'pg_class'), '') NOT LIKE 'across tenants: %'
   AND NOT (i.indnkeyatts = 1 AND EXISTS (SELECT FROM pg_attribute k
            WHERE k.attrelid = c.oid AND k.attnum = i.indkey[0] AND k.atttypid = 'uuid'::regtype))`},
	{"C11", "a role without a policy for a command silently sees no rows there", `
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
       unnest(ARRAY['fl_' || n.nspname, 'fl_' || n.nspname || '_tenant']) AS role
 WHERE n.nspname = ANY ($1) AND c.relrowsecurity AND NOT EXISTS (
   SELECT FROM pg_policies p WHERE p.schemaname = n.nspname AND p.tablename = c.relname
      AND p.cmd = 'ALL' AND role = ANY (p.roles))`},
	{"C12", "a service's roles must not see another service's schema", `
SELECT format('%s %s', r.rolname, n.nspname) FROM pg_roles r, unnest($1::text[]) AS own, pg_namespace n
 WHERE n.nspname <> own AND pg_get_userbyid(n.nspowner) = 'fl_' || n.nspname || '_owner'
   AND r.rolname IN ('fl_' || own, 'fl_' || own || '_tenant', 'fl_' || own || '_owner')
   AND (has_schema_privilege(r.oid, n.oid, 'USAGE') OR has_schema_privilege(r.oid, n.oid, 'CREATE'))`},
	{"C14", "session guards must stand on the login role", `
SELECT 'fl_' || s || '.' || guard FROM unnest($1::text[]) AS s,
       unnest(ARRAY['idle_in_transaction_session_timeout', 'lock_timeout', 'statement_timeout']) AS guard
 WHERE NOT EXISTS (SELECT FROM pg_db_role_setting x, unnest(x.setconfig) AS c
                    WHERE x.setdatabase = 0 AND x.setrole = ('fl_' || s)::regrole AND c ~ ('^' || guard || '=[1-9]'))`},
	{"C16", "a sequence must not be writable", `
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
       aclexplode(c.relacl) AS a
 WHERE n.nspname = ANY ($1) AND c.relkind = 'S' AND a.grantee <> c.relowner AND a.privilege_type = 'UPDATE'`},
	{"C17", "what the tenant role sees and writes must depend on fenceline.tenant, and fail without one", `
SELECT format('%I.%I', p.schemaname, p.tablename) FROM pg_policies p
 WHERE p.schemaname = ANY ($1) AND (('fl_' || p.schemaname || '_tenant')::name = ANY (p.roles) OR 'public' = ANY (p.roles))
   AND (p.qual IS NULL OR strpos(p.qual, '(tenant = (current_setting(''fenceline.tenant''::text))::uuid)') = 0
        OR coalesce(p.with_check, p.qual) <> '(tenant = (current_setting(''fenceline.tenant''::text))::uuid)')`},
}
