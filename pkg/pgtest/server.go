package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/internal/child"
	"github.com/fenceline-dev/fenceline/pkg/migrate"
	"github.com/fenceline-dev/fenceline/pkg/pglocal"
)

// Variable names the environment variable with an administrator's connection string of a cluster
// to use. Its databases named fltpl_* and flt_* are the harness's.
const Variable = "FENCELINE_TEST_POSTGRES"

// server is the cluster of this test process.
type server struct {
	admin     string // connection string of an administrator, with some database to connect to
	templates sync.Map
	keep      []any // what ends a cluster of one's own when it is collected
}

// theServer finds or starts the cluster, once.
var theServer = sync.OnceValues(func() (*server, error) {
	if dsn := os.Getenv(Variable); dsn != "" {
		s := &server{admin: dsn}
		return s, s.sweep()
	}
	return startServer()
})

// Goroutines excuses what a cluster that was started for this process keeps running.
func Goroutines() []goleak.Option {
	const process = "github.com/fenceline-dev/fenceline/pkg/internal/child.(*Process)."
	return []goleak.Option{goleak.IgnoreAnyFunction(process + "own"), goleak.IgnoreAnyFunction(process + "pump")}
}

func startServer() (*server, error) {
	dir, err := os.MkdirTemp("/tmp", "fenceline-pgtest-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the server's user has to enter
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	c, err := pglocal.Start(ctx, pglocal.Options{Dir: filepath.Join(dir, "pg")})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	mourner, err := child.Mourn(c.Pid(), dir)
	if err != nil {
		return nil, errors.Join(err, c.Stop(), os.RemoveAll(dir))
	}
	return &server{admin: c.DSN("postgres"), keep: []any{c, mourner}}, nil
}

// do runs fn on a connection to the administrator's own database. A connection per call, and no
// pool, because a pool would be found by every test that looks for leaked goroutines.
func (s *server) do(fn func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return fn(ctx, conn)
}

// template returns the name of the database to clone, made if it is not there. Test processes
// that share a cluster wait for each other.
func (s *server) template(migrations fs.FS) (string, error) {
	name, err := templateName(migrations)
	if err != nil {
		return "", err
	}
	once, _ := s.templates.LoadOrStore(name, sync.OnceValue(func() error {
		return s.do(func(ctx context.Context, conn *pgx.Conn) error { return s.makeTemplate(ctx, conn, name, migrations) })
	}))
	return name, once.(func() error)()
}

func (s *server) makeTemplate(ctx context.Context, conn *pgx.Conn, name string, migrations fs.FS) error {
	// Held to the end of the session. One lock for all templates: they share the roles.
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", 0x666c747ced); err != nil {
		return err
	}
	var done bool
	err := conn.QueryRow(ctx, "SELECT datistemplate FROM pg_database WHERE datname = $1", name).Scan(&done)
	if done {
		return nil
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if err := s.exec(ctx, conn, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)", "CREATE DATABASE "+name); err != nil {
		return err
	}
	services, err := migrate.Services(migrations)
	if err != nil {
		return err
	}
	passwords := make(map[string]config.Secret)
	for _, service := range services {
		passwords["fl_"+service] = s.password("fl_" + service)
	}
	if err := migrate.Run(ctx, migrate.Options{DSN: s.dsn(name, ""), FS: migrations, Passwords: passwords}); err != nil {
		return err
	}
	// The mark that it is complete.
	return s.exec(ctx, conn, "ALTER DATABASE "+name+" IS_TEMPLATE true ALLOW_CONNECTIONS false")
}

// clone makes a database. Another session may still be leaving the template, an autovacuum worker
// for instance, which PostgreSQL gives five seconds to go.
func (s *server) clone(template string) (string, error) {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails, by its contract
	name := fmt.Sprintf("flt_%x_%s", time.Now().Unix(), hex.EncodeToString(b))
	return name, s.do(func(ctx context.Context, conn *pgx.Conn) error {
		var pe *pgconn.PgError
		for n := 1; ; n++ {
			err := s.exec(ctx, conn, "CREATE DATABASE "+name+" TEMPLATE "+template+" STRATEGY FILE_COPY")
			if !errors.As(err, &pe) || pe.Code != "55006" || n == 5 {
				return err
			}
		}
	})
}

func (s *server) drop(name string) error {
	return s.do(func(ctx context.Context, conn *pgx.Conn) error {
		return s.exec(ctx, conn, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	})
}

// sweepAfter is older than any test can be.
const sweepAfter = 6 * time.Hour

// sweep drops the databases of test processes that were killed.
func (s *server) sweep() error {
	return s.do(func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT datname::text FROM pg_database WHERE datname LIKE 'flt\_%'`)
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, name := range names {
			parts := strings.Split(name, "_")
			made, err := strconv.ParseInt(parts[1], 16, 64)
			if err != nil || time.Since(time.Unix(made, 0)) < sweepAfter {
				continue
			}
			if err := s.exec(ctx, conn, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *server) exec(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, st := range statements {
		if _, err := conn.Exec(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

// password derives a login role's password from the administrator's connection string: test
// processes that share a cluster share its roles, and must not change each other's passwords.
func (s *server) password(role string) config.Secret {
	sum := sha256.Sum256([]byte(s.admin + "\x00" + role))
	return config.Secret(hex.EncodeToString(sum[:16]))
}

// dsn points the administrator's connection string at another database and, unless role is "", role.
func (s *server) dsn(database, role string) string {
	if u, err := url.Parse(s.admin); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		u.Path = "/" + database
		if role != "" {
			u.User = url.UserPassword(role, s.password(role).Reveal())
		}
		return u.String()
	}
	dsn := s.admin + " dbname=" + database // of a keyword given twice the last one counts
	if role != "" {
		dsn += " user=" + role + " password=" + s.password(role).Reveal()
	}
	return dsn
}

// templateRevision changes when the same migrations would make another template.
const templateRevision = "1"

func templateName(migrations fs.FS) (string, error) {
	h := sha256.New()
	h.Write([]byte(templateRevision))
	err := fs.WalkDir(migrations, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := fs.ReadFile(migrations, path)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(h, "%s %d\n%s", path, len(content), content)
		return nil
	})
	return "fltpl_" + hex.EncodeToString(h.Sum(nil)[:10]), err
}
