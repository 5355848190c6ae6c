package e2e

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/migrate"
	"github.com/fenceline-dev/fenceline/pkg/pglocal"
)

// ownPostgres is a cluster of one test alone, which may crash it.
type ownPostgres struct {
	*testing.T
	dir     string
	cluster *pglocal.Cluster
}

const ownPassword = "a password of one test alone"

func newOwnPostgres(t *testing.T) *ownPostgres {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "fenceline-e2e-pg-") //nolint:usetesting // short, for the socket's path
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the server's user has to enter
		t.Fatal(err)
	}
	p := &ownPostgres{T: t, dir: filepath.Join(dir, "pg")}
	t.Cleanup(func() {
		if err := p.cluster.Stop(); err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	p.start(0)
	passwords := map[string]config.Secret{}
	for _, s := range services {
		passwords["fl_"+s] = ownPassword
	}
	if err := migrate.Run(t.Context(), migrate.Options{DSN: p.AdminDSN(), FS: migrations.FS, Passwords: passwords}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *ownPostgres) start(port int) {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), patience)
	defer cancel()
	c, err := pglocal.Start(ctx, pglocal.Options{Dir: p.dir, Port: port})
	if err != nil {
		p.Fatal(err)
	}
	p.cluster = c
}

// crash ends the server as pg_ctl stop -m immediate does: no checkpoint, every connection cut.
func (p *ownPostgres) crash() {
	p.Helper()
	if err := syscall.Kill(p.cluster.Pid(), syscall.SIGQUIT); err != nil {
		p.Fatal(err)
	}
	select {
	case <-p.cluster.Done():
	case <-time.After(patience):
		p.Fatal("the server does not end")
	}
	_ = p.cluster.Stop()
}

// restart brings a crashed server back at its old address.
func (p *ownPostgres) restart() { p.start(p.cluster.Port) }

// AdminDSN implements database.
func (p *ownPostgres) AdminDSN() string { return p.cluster.DSN("postgres") }

// DSN implements database.
func (p *ownPostgres) DSN(service string) string {
	u, err := url.Parse(p.AdminDSN())
	if err != nil {
		p.Fatal(err)
	}
	u.User = url.UserPassword("fl_"+service, ownPassword)
	return u.String()
}
