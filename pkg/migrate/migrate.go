// Package migrate brings a database to the newest schemas: roles, schemas and privileges first,
// then each service's migrations as the role that owns its schema.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

// Options says what to migrate and how.
type Options struct {
	DSN       string                   // of an administrator: a superuser, or the database's owner with CREATEROLE; a direct connection, no pooler
	FS        fs.FS                    // one folder per service
	Passwords map[string]config.Secret // of login roles, by role name; roles without one keep theirs
	Guards    Guards                   // zero fields take the defaults
	Log       func(string)             // told what was done, a line each; may be nil
}

// Guards bound what a session of a login role may hold up. A stopped process must not keep the
// row that another one waits to take over: settings of a role taken later by SET ROLE don't apply,
// so they stand on the login roles.
type Guards struct {
	IdleInTransaction time.Duration // default 5 s
	Lock              time.Duration // default 3 s
	Statement         time.Duration // default 10 s
}

// attempts bounds how often a step is run again that lost to another migrator or to a long reader.
const attempts = 20

// Run brings the database of o.DSN to the newest version of every folder. It changes nothing when
// all is in place, and may run any number of times at once, also on databases of one cluster.
func Run(ctx context.Context, o Options) error {
	services, err := Services(o.FS)
	if err != nil {
		return err
	}
	cfg, err := pgx.ParseConfig(o.DSN)
	if err != nil {
		return errors.New("migrate: the administrator's DSN is not a PostgreSQL connection string (value withheld)")
	}
	cfg.RuntimeParams["application_name"] = "fenceline-migrate"
	cfg.RuntimeParams["search_path"] = ""
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if err := repeat(ctx, func() error { return prepare(ctx, cfg, o, services) }); err != nil {
		return fmt.Errorf("migrate: prepare roles and schemas: %w", err)
	}
	for _, s := range services {
		if err := repeat(ctx, func() error { return up(ctx, cfg, o, s) }); err != nil {
			return fmt.Errorf("migrate: %s: %w", s, err)
		}
	}
	return nil
}

// serviceName is what may be spliced into SQL as a schema or as part of a role's name.
var serviceName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

// Services lists the folders of migrations, sorted.
func Services(migrations fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(migrations, ".")
	if err != nil {
		return nil, fmt.Errorf("migrate: list services: %w", err)
	}
	var services []string
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if !serviceName.MatchString(e.Name()) {
			return nil, fmt.Errorf("migrate: folder %q is not named like a service", e.Name())
		}
		services = append(services, e.Name())
	}
	if len(services) == 0 {
		return nil, errors.New("migrate: no service has a folder")
	}
	slices.Sort(services)
	return services, nil
}

// Version returns the newest version in a service's folder, which is what a binary that embeds it
// asks of its schema.
func Version(migrations fs.FS, service string) (int64, error) {
	versions, err := versions(migrations, service)
	if err != nil {
		return 0, err
	}
	return versions[len(versions)-1], nil
}

// versions lists a folder's versions in order; there is at least one.
func versions(migrations fs.FS, service string) ([]int64, error) {
	names, err := fs.Glob(migrations, path.Join(service, "*.sql"))
	if err != nil {
		return nil, fmt.Errorf("migrate: list migrations of %s: %w", service, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("migrate: %s has no migrations", service)
	}
	var all []int64
	for _, name := range names {
		v, err := goose.NumericComponent(name)
		if err != nil {
			return nil, fmt.Errorf("migrate: %s: %w", name, err)
		}
		all = append(all, v)
	}
	slices.Sort(all)
	return all, nil
}

// repeat runs a step again that failed for what another migrator or a reader did meanwhile.
func repeat(ctx context.Context, step func() error) error {
	for n := 1; ; n++ {
		err := step()
		if err == nil || n == attempts || !contended(err) {
			return err
		}
		timer := time.NewTimer(50*time.Millisecond + rand.N(200*time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, ctx.Err())
		case <-timer.C:
		}
	}
}

// contended reports whether a step met a concurrent one. Roles belong to the cluster and no lock
// spans its databases, so two migrators may create or grant the same at once.
func contended(err error) bool {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return false
	}
	switch pe.Code {
	case "42710", "42P06", "23505", "40001", "40P01", "55P03":
		return true
	case "XX000":
		return pe.Message == "tuple concurrently updated" || pe.Message == "tuple concurrently deleted"
	default:
		return false
	}
}
