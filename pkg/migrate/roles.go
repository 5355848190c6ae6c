package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

// prepareLock is the advisory lock of the step that makes roles and schemas. Waiting for it blocks,
// which is why it is not held while migrations run: a waiting statement holds a snapshot, and
// CREATE INDEX CONCURRENTLY waits for every snapshot.
const prepareLock = 0x66656e63 // "fenc"

// preparer makes roles and schemas in one transaction and leaves alone what is as it should be:
// a run that changes nothing writes nothing, so it can't collide with another.
type preparer struct {
	pgx.Tx
	log func(string)
}

func prepare(ctx context.Context, cfg *pgx.ConnConfig, o Options, services []string) error {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := knownRoles(o.Passwords, services); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_catalog.pg_advisory_xact_lock($1)", prepareLock); err != nil {
			return fmt.Errorf("wait for another migrator: %w", err)
		}
		p := preparer{Tx: tx, log: o.Log}
		if err := p.closePublic(ctx); err != nil {
			return err
		}
		for _, s := range services {
			if err := p.service(ctx, s, o); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
}

func knownRoles(passwords map[string]config.Secret, services []string) error {
	var errs []error
	for role := range passwords {
		if !slices.Contains(services, strings.TrimPrefix(role, "fl_")) || !strings.HasPrefix(role, "fl_") {
			errs = append(errs, fmt.Errorf("a password is given for %q, which is no login role of these services", role))
		}
	}
	return errors.Join(errs...)
}

func (p preparer) service(ctx context.Context, s string, o Options) error {
	login, owner, tenant := "fl_"+s, "fl_"+s+"_owner", "fl_"+s+"_tenant"
	for _, role := range []struct {
		name  string
		login bool
	}{{owner, false}, {login, true}, {tenant, false}} {
		if err := p.role(ctx, role.name, role.login); err != nil {
			return err
		}
	}
	if err := p.member(ctx, tenant, login); err != nil {
		return err
	}
	if err := p.adminOf(ctx, owner); err != nil {
		return err
	}
	if err := p.guards(ctx, login, o.Guards); err != nil {
		return err
	}
	if err := p.password(ctx, login, o.Passwords[login]); err != nil {
		return err
	}
	return p.schema(ctx, s)
}

// role creates a role, or takes from an existing one what would let it around the walls.
func (p preparer) role(ctx context.Context, name string, login bool) error {
	var canLogin, inherits, super, bypass, createRole, createDB, replication bool
	err := p.QueryRow(ctx, `
SELECT rolcanlogin, rolinherit, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication
  FROM pg_catalog.pg_roles WHERE rolname = $1`, name).
		Scan(&canLogin, &inherits, &super, &bypass, &createRole, &createDB, &replication)
	kind := map[bool]string{true: "LOGIN", false: "NOLOGIN"}[login]
	if errors.Is(err, pgx.ErrNoRows) {
		return p.do(ctx, "create role "+name, "CREATE ROLE "+name+" "+kind+" NOINHERIT")
	}
	if err != nil {
		return fmt.Errorf("read role %s: %w", name, err)
	}
	// Only what differs: naming SUPERUSER at all asks for a superuser.
	var change []string
	if canLogin != login {
		change = append(change, kind)
	}
	for _, has := range []struct {
		is   bool
		undo string
	}{
		{inherits, "NOINHERIT"},
		{super, "NOSUPERUSER"},
		{bypass, "NOBYPASSRLS"},
		{createRole, "NOCREATEROLE"},
		{createDB, "NOCREATEDB"},
		{replication, "NOREPLICATION"},
	} {
		if has.is {
			change = append(change, has.undo)
		}
	}
	if len(change) == 0 {
		return nil
	}
	return p.do(ctx, "restrict role "+name, "ALTER ROLE "+name+" "+strings.Join(change, " "))
}

func (p preparer) member(ctx context.Context, group, member string) error {
	return p.unless(ctx, "grant "+group+" to "+member, "GRANT "+group+" TO "+member, `
SELECT EXISTS (SELECT FROM pg_catalog.pg_auth_members AS m
                WHERE m.roleid = $1::text::regrole AND m.member = $2::text::regrole)`, group, member)
}

// adminOf lets an administrator that is not a superuser act as the owner.
func (p preparer) adminOf(ctx context.Context, owner string) error {
	return p.unless(ctx, "grant "+owner+" to the administrator", "GRANT "+owner+" TO CURRENT_USER",
		"SELECT pg_catalog.pg_has_role(current_user, $1::name, 'USAGE')", owner)
}

func (p preparer) guards(ctx context.Context, login string, g Guards) error {
	for _, set := range []struct {
		name  string
		value string
	}{
		{"idle_in_transaction_session_timeout", millis(g.IdleInTransaction, 5*time.Second)},
		{"lock_timeout", millis(g.Lock, 3*time.Second)},
		{"statement_timeout", millis(g.Statement, 10*time.Second)},
		{"tcp_keepalives_idle", "10"},
		{"tcp_keepalives_interval", "5"},
		{"tcp_keepalives_count", "3"},
		{"tcp_user_timeout", "15000"},
	} {
		err := p.unless(ctx, "set "+set.name+" on "+login, "ALTER ROLE "+login+" SET "+set.name+" = '"+set.value+"'", `
SELECT EXISTS (SELECT FROM pg_catalog.pg_db_role_setting AS s
                WHERE s.setdatabase = 0 AND s.setrole = $1::text::regrole AND $2 = ANY (s.setconfig))`,
			login, set.name+"="+set.value)
		if err != nil {
			return err
		}
	}
	return nil
}

func millis(d, otherwise time.Duration) string {
	if d <= 0 {
		d = otherwise
	}
	return strconv.FormatInt(d.Milliseconds(), 10)
}

func (p preparer) password(ctx context.Context, login string, password config.Secret) error {
	if password.Empty() {
		return nil
	}
	verifier, err := scramVerifier(password)
	if err != nil {
		return fmt.Errorf("password of %s: %w", login, err)
	}
	return p.do(ctx, "set the password of "+login, "ALTER ROLE "+login+" PASSWORD '"+verifier+"'")
}

// unless runs a statement if a query, which answers with one boolean, says that it is needed.
func (p preparer) unless(ctx context.Context, what, statement, done string, args ...any) error {
	var is bool
	if err := p.QueryRow(ctx, done, args...).Scan(&is); err != nil {
		return fmt.Errorf("see whether to %s: %w", what, err)
	}
	if is {
		return nil
	}
	return p.do(ctx, what, statement)
}

func (p preparer) do(ctx context.Context, what, statement string) error {
	if _, err := p.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	p.log(what)
	return nil
}
