package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// schema creates a service's schema and says what its two roles may do with tables to come.
func (p preparer) schema(ctx context.Context, s string) error {
	login, owner, tenant := "fl_"+s, "fl_"+s+"_owner", "fl_"+s+"_tenant"
	var is string
	err := p.QueryRow(ctx, `
SELECT pg_catalog.pg_get_userbyid(nspowner)::text FROM pg_catalog.pg_namespace WHERE nspname = $1`, s).Scan(&is)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		if err := p.do(ctx, "create schema "+s, "CREATE SCHEMA "+s+" AUTHORIZATION "+owner); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("read schema %s: %w", s, err)
	case is != owner:
		return fmt.Errorf("schema %s belongs to %s, not to %s", s, is, owner)
	}
	// The login role needs USAGE as well as the tenant role: names are resolved when a statement
	// is parsed, before the role is taken.
	for _, role := range []string{login, tenant} {
		if err := p.unless(ctx, "let "+role+" use schema "+s, "GRANT USAGE ON SCHEMA "+s+" TO "+role, `
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace AS n, pg_catalog.aclexplode(n.nspacl) AS a
                WHERE n.nspname = $1 AND a.grantee = $2::text::regrole AND a.privilege_type = 'USAGE')`, s, role); err != nil {
			return err
		}
		for _, objects := range []struct {
			kind, name, privileges string
			count                  int
		}{
			{"r", "TABLES", "SELECT, INSERT, UPDATE, DELETE", 4},
			{"S", "SEQUENCES", "USAGE", 1},
		} {
			what := "let " + role + " work with " + s + "'s future " + objects.name
			grant := "ALTER DEFAULT PRIVILEGES FOR ROLE " + owner + " IN SCHEMA " + s +
				" GRANT " + objects.privileges + " ON " + objects.name + " TO " + role
			if err := p.unless(ctx, what, grant, `
SELECT count(*) = $5 FROM pg_catalog.pg_default_acl AS d, pg_catalog.aclexplode(d.defaclacl) AS a
 WHERE d.defaclrole = $1::text::regrole AND d.defaclnamespace = $2::text::regnamespace
   AND d.defaclobjtype = $3::text::"char" AND a.grantee = $4::text::regrole`,
				owner, s, objects.kind, role, objects.count); err != nil {
				return err
			}
		}
	}
	return nil
}

// closePublic takes the schema that every role can see out of use.
func (p preparer) closePublic(ctx context.Context) error {
	return p.unless(ctx, "close schema public", "REVOKE ALL ON SCHEMA public FROM PUBLIC", `
SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_namespace AS n, pg_catalog.aclexplode(n.nspacl) AS a
                    WHERE n.nspname = 'public' AND a.grantee = 0)`)
}

// closeVersions lets a service read its schema's version and not write it.
const closeVersions = `REVOKE INSERT, UPDATE, DELETE ON %[1]s.schema_version FROM fl_%[1]s;
REVOKE ALL ON %[1]s.schema_version FROM fl_%[1]s_tenant`

// versionsClosed tells whether closeVersions has run.
const versionsClosed = `
SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS a
                    WHERE c.oid = $1::text::regclass
                      AND (a.grantee = $3::text::regrole
                           OR (a.grantee = $2::text::regrole AND a.privilege_type <> 'SELECT')))`
