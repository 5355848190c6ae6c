package pg_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/migrate"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pglocal"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

// dropper is a proxy in front of PostgreSQL that, once armed, cuts the connection when the client
// sends what carries the trigger and the server has answered, and loses the answer.
type dropper struct {
	net.Listener
	target  string
	trigger []byte
	armed   atomic.Bool
	open    sync.WaitGroup
}

// behind returns a DSN that leads through a dropper.
func behind(t *testing.T, dsn, trigger string) (string, *dropper) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &dropper{Listener: l, target: u.Host, trigger: []byte(trigger)}
	d.open.Add(1)
	go d.serve()
	t.Cleanup(func() { _ = l.Close(); d.open.Wait() })
	u.Host = l.Addr().String()
	return u.String(), d
}

func (d *dropper) serve() {
	defer d.open.Done()
	for {
		client, err := d.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", d.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		var cut atomic.Bool
		d.open.Add(2)
		go d.copy(server, client, func(b []byte) bool {
			if bytes.Contains(b, d.trigger) && d.armed.CompareAndSwap(true, false) {
				cut.Store(true)
			}
			return true
		})
		go d.copy(client, server, func([]byte) bool { return !cut.Load() })
	}
}

// copy passes bytes on until pass says no, and then closes both sides.
func (d *dropper) copy(to, from net.Conn, pass func([]byte) bool) {
	defer d.open.Done()
	defer func() { _ = to.Close(); _ = from.Close() }()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && !pass(b[:n]) {
			return
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func TestLostAnswerToACommitIsUnknownAndTheRowIsThere(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d, plain := open(t)
	for name, tc := range map[string]struct {
		trigger string
		run     func(db *pg.DB, id int64, hook func()) error
	}{
		"transaction": {"commit", func(db *pg.DB, id int64, hook func()) error {
			return db.Tenant(ctx, alice, func(tx *pg.Tx) error { tx.OnCommit(hook); return add(ctx, alice, id)(tx) })
		}},
		"batch": {"fl_acorn_tenant", func(db *pg.DB, id int64, hook func()) error {
			b := &pg.Batch{}
			b.OnCommit(hook)
			b.Queue(insert, alice, id)
			return db.TenantBatch(ctx, alice, b)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dsn, dropper := behind(t, d.DSN("acorn"), tc.trigger)
			db, err := pg.Open(ctx, pg.Config{DSN: config.Secret(dsn), AllowUnsafe: true}, "acorn", nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(db.Close)
			before := pgCount(ctx, t, plain)
			if err := tc.run(db, before+10, func() {}); err != nil { // statements are prepared by now
				t.Fatal(err)
			}
			dropper.armed.Store(true)
			err = tc.run(db, before+11, func() { t.Error("a hook ran on an unknown outcome") })
			if !errors.Is(err, pg.ErrUnknownOutcome) || errors.Is(err, pg.ErrUnavailable) || pg.Classify(err) != pg.Unknown {
				t.Errorf("got %v", err)
			}
			if n := pgCount(ctx, t, plain); n != before+2 {
				t.Errorf("%d rows, want %d: the commit went through", n, before+2)
			}
			if err := tc.run(db, before+11, func() {}); !pg.IsUnique(err, "nuts_pkey") {
				t.Errorf("again by the same key: %v", err)
			}
		})
	}
}

func TestKilledSessionBeforeCommitIsUnavailable(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d, db := open(t)
	kill := func(tx *pg.Tx) {
		var pid int
		if err := tx.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		// pg_terminate_backend with a timeout returns when the session is gone.
		if !pgtest.Query[bool](t, d, "SELECT pg_terminate_backend($1, 10000)", pid) {
			t.Fatal("the session survived")
		}
	}
	for name, fn := range map[string]func(*pg.Tx) error{
		"in a statement": func(tx *pg.Tx) error { kill(tx); return add(ctx, alice, 1)(tx) },
		"swallowed":      func(tx *pg.Tx) error { kill(tx); _ = add(ctx, alice, 2)(tx); return nil },
	} {
		if err := db.System(ctx, fn); !errors.Is(err, pg.ErrUnavailable) || pg.Classify(err) != pg.NotExecuted {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// The server had closed the session before COMMIT was sent, which the client can't tell.
	err := db.System(ctx, func(tx *pg.Tx) error { err := add(ctx, alice, 3)(tx); kill(tx); return err })
	if !errors.Is(err, pg.ErrUnknownOutcome) {
		t.Errorf("at commit: got %v", err)
	}
	if n := pgCount(ctx, t, db); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestIdleInTransactionIsNotExecuted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d, db := open(t)
	idle := func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = '20ms'"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(7)"); err != nil {
			return err
		}
		if err := add(ctx, alice, 1)(tx); err != nil {
			return err
		}
		pgtest.Query[string](t, d, "SELECT pg_advisory_lock(7)::text") // waits for the session's end
		return nil
	}
	for name, fn := range map[string]func(*pg.Tx) error{
		"found by a statement": func(tx *pg.Tx) error { return errors.Join(idle(tx), add(ctx, alice, 2)(tx)) },
		"found by commit":      idle,
	} {
		if err := db.System(ctx, fn); !errors.Is(err, pg.ErrUnavailable) || pg.Classify(err) != pg.NotExecuted {
			t.Errorf("%s: got %v", name, err)
		}
		if n := pgCount(ctx, t, db); n != 0 {
			t.Errorf("%s: %d rows", name, n)
		}
	}
}

func TestCancelledCallerKeepsThePoolWhole(t *testing.T) {
	t.Parallel()
	_, db := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := db.System(ctx, func(tx *pg.Tx) error {
		defer cancel()
		return add(ctx, alice, 1)(tx)
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, pg.ErrUnavailable) || pg.Classify(err) != pg.NotExecuted {
		t.Errorf("got %v", err)
	}
	if err := db.System(ctx, add(ctx, alice, 2)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := pgCount(t.Context(), t, db); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestFullPoolIsUnavailable(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := pgtest.New(t, schema)
	db, err := pg.Open(ctx, pg.Config{DSN: config.Secret(d.DSN("acorn")), MaxConns: 1, AcquireTimeout: 500 * time.Millisecond, AllowUnsafe: true}, "acorn", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	err = db.System(ctx, func(*pg.Tx) error { return db.System(ctx, add(ctx, alice, 1)) })
	if !errors.Is(err, pg.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if err := db.System(ctx, add(ctx, alice, 1)); err != nil {
		t.Error(err)
	}
}

func TestReadOnlyServerIsUnavailable(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, db := open(t)
	err := db.System(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, "SET TRANSACTION READ ONLY"); err != nil {
			return err
		}
		return add(ctx, alice, 1)(tx)
	})
	if !errors.Is(err, pg.ErrUnavailable) || pg.Classify(err) != pg.NotExecuted {
		t.Errorf("got %v", err)
	}
}

func TestPoolOutlivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir, err := os.MkdirTemp("/tmp", "pg-restart-") //nolint:usetesting // the user postgres has to enter, and TempDir is closed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	o := pglocal.Options{Dir: filepath.Join(dir, "pg"), Fsync: true, Log: io.Discard}
	c, err := pglocal.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	if err := migrate.Run(ctx, migrate.Options{DSN: c.DSN("postgres"), FS: schema, Passwords: map[string]config.Secret{"fl_acorn": "pw"}}); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(c.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("fl_acorn", "pw")
	// A safe server: no AllowUnsafe.
	db, err := pg.Open(ctx, pg.Config{DSN: config.Secret(u.String()), MaxConns: 4}, "acorn", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	var held sync.WaitGroup // fills the pool with connections that will die
	held.Add(4)
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			_ = db.System(ctx, func(*pg.Tx) error { held.Done(); held.Wait(); return nil })
		})
	}
	done.Wait()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	b := &pg.Batch{}
	b.Queue(insert, alice, 1)
	if err := db.SystemBatch(ctx, b); !errors.Is(err, pg.ErrUnavailable) {
		t.Errorf("batch, server away: got %v", err)
	}
	if err := db.System(ctx, add(ctx, alice, 1)); !errors.Is(err, pg.ErrUnavailable) {
		t.Errorf("server away: got %v", err)
	}
	if err := db.Ping(ctx); !errors.Is(err, pg.ErrUnavailable) {
		t.Errorf("ping, server away: got %v", err)
	}
	o.Port = c.Port
	if c, err = pglocal.Start(ctx, o); err != nil {
		t.Fatal(err)
	}
	if err := db.System(ctx, add(ctx, alice, 2)); err != nil {
		t.Errorf("server back: %v", err)
	}
}
