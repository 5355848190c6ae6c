package pg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// errRefused marks a server or role that a service must not work with, however reachable it is.
var errRefused = errors.New("pg: refused")

// trust is what a connection can get around, and what the server can lose.
const trust = `
SELECT r.rolsuper OR r.rolbypassrls,
       pg_catalog.pg_has_role(r.oid, @owner::name, 'MEMBER'),
       pg_catalog.pg_has_role(r.oid, @tenant::name, 'MEMBER'),
       r.rolname,
       pg_catalog.current_setting('fsync') = 'off',
       pg_catalog.current_setting('full_page_writes') = 'off',
       pg_catalog.current_setting('synchronous_commit') = 'off'
  FROM pg_catalog.pg_roles AS r
 WHERE r.rolname = session_user`

// check runs on every new connection: after a failover the same name may lead to another server.
func check(ctx context.Context, conn *pgx.Conn, service string, allowUnsafe bool) error {
	var (
		bypasses, owns, tenant           bool
		role                             string
		noFsync, noFullPages, noSyncWait bool
	)
	args := pgx.NamedArgs{"owner": "fl_" + service + "_owner", "tenant": "fl_" + service + "_tenant"}
	// The simple protocol leaves no prepared statement behind for a query that runs once.
	row := conn.QueryRow(ctx, trust, pgx.QueryExecModeExec, args)
	if err := row.Scan(&bypasses, &owns, &tenant, &role, &noFsync, &noFullPages, &noSyncWait); err != nil {
		return fmt.Errorf("pg: read what the role may do: %w", err)
	}
	switch {
	case bypasses:
		return fmt.Errorf("%w: role %s is a superuser or bypasses row-level security", errRefused, role)
	case owns:
		return fmt.Errorf("%w: role %s is a member of the owner of schema %s", errRefused, role, service)
	case !tenant:
		return fmt.Errorf("%w: role %s is not a member of fl_%s_tenant", errRefused, role, service)
	case allowUnsafe:
		return nil
	}
	var off []string
	for name, is := range map[string]bool{"fsync": noFsync, "full_page_writes": noFullPages, "synchronous_commit": noSyncWait} {
		if is {
			off = append(off, name)
		}
	}
	if len(off) > 0 {
		return fmt.Errorf("%w: the server has %s off and can lose a commit it acknowledged (PG_ALLOW_UNSAFE accepts that)", errRefused, strings.Join(off, ", "))
	}
	return nil
}
