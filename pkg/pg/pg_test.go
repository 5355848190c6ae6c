package pg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, pgtest.Goroutines()...) }

var schema = fstest.MapFS{"acorn/0001_nuts.sql": {Data: []byte(`-- +goose Up
CREATE TABLE acorn.nuts (
    tenant uuid NOT NULL, id bigint PRIMARY KEY, weight bigint NOT NULL DEFAULT 0, at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT nuts_light CHECK (weight < 100),
    CONSTRAINT nuts_deferred UNIQUE (weight, id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE acorn.later (id bigint, CONSTRAINT later_once UNIQUE (id) DEFERRABLE INITIALLY DEFERRED);
ALTER TABLE acorn.nuts ENABLE ROW LEVEL SECURITY;
ALTER TABLE acorn.nuts FORCE ROW LEVEL SECURITY;
CREATE POLICY nuts_system ON acorn.nuts TO fl_acorn USING (true) WITH CHECK (true);
CREATE POLICY nuts_tenant ON acorn.nuts TO fl_acorn_tenant
    USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid);`)}}

const (
	insert = "INSERT INTO acorn.nuts (tenant, id) VALUES ($1, $2)"
	count  = "SELECT count(*) FROM acorn.nuts"
)

var alice, bob = uuid.MustParse("00000000-0000-7000-8000-00000000000a"), uuid.MustParse("00000000-0000-7000-8000-00000000000b")

func open(t *testing.T) (*pgtest.DB, *pg.DB) {
	t.Helper()
	d := pgtest.New(t, schema)
	return d, d.Open(t, "acorn")
}

// add returns a closure that inserts a row.
func add(ctx context.Context, tenant uuid.UUID, id int64) func(*pg.Tx) error {
	return func(tx *pg.Tx) error {
		_, err := tx.Exec(ctx, insert, tenant, id)
		return err
	}
}

func TestTenantSeesItsOwnRowsOnly(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, db := open(t)
	for id, tenant := range map[int64]uuid.UUID{1: alice, 2: bob} {
		if err := db.Tenant(ctx, tenant, add(ctx, tenant, id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Tenant(ctx, alice, add(ctx, bob, 3)); pg.Classify(err) != pg.Refused {
		t.Errorf("wrote another tenant's row: %v", err)
	}
	see := func(run func(func(*pg.Tx) error) error) (n int64, role string) {
		err := run(func(tx *pg.Tx) error {
			return errors.Join(tx.QueryRow(ctx, count).Scan(&n), tx.QueryRow(ctx, "SELECT current_user::text").Scan(&role))
		})
		if err != nil {
			t.Fatal(err)
		}
		return n, role
	}
	if n, role := see(func(fn func(*pg.Tx) error) error { return db.Tenant(ctx, alice, fn) }); n != 1 || role != "fl_acorn_tenant" {
		t.Errorf("tenant: %d rows as %s", n, role)
	}
	if n, role := see(func(fn func(*pg.Tx) error) error { return db.System(ctx, fn) }); n != 2 || role != "fl_acorn" {
		t.Errorf("system: %d rows as %s", n, role)
	}
	if err := db.Tenant(ctx, uuid.Nil, add(ctx, alice, 4)); !errors.Is(err, pg.ErrNoTenant) {
		t.Errorf("got %v, want ErrNoTenant", err)
	}
	if err := db.TenantBatch(ctx, uuid.Nil, &pg.Batch{}); !errors.Is(err, pg.ErrNoTenant) {
		t.Errorf("got %v, want ErrNoTenant", err)
	}
}

// TestTenantSnapshotIsOfOneMoment commits a row between two reads, and tries to write.
func TestTenantSnapshotIsOfOneMoment(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, db := open(t)
	var before, after int64
	err := db.TenantSnapshot(ctx, alice, func(tx *pg.Tx) error {
		err := tx.QueryRow(ctx, count).Scan(&before)
		return errors.Join(err, db.Tenant(ctx, alice, add(ctx, alice, 1)), tx.QueryRow(ctx, count).Scan(&after))
	})
	if err != nil || before != 0 || after != 0 {
		t.Errorf("%d rows, then %d, %v; want none both times", before, after, err)
	}
	if err := db.TenantSnapshot(ctx, alice, add(ctx, alice, 2)); err == nil {
		t.Error("a snapshot was written to")
	}
	if err := db.TenantSnapshot(ctx, uuid.Nil, add(ctx, alice, 2)); !errors.Is(err, pg.ErrNoTenant) {
		t.Errorf("got %v, want ErrNoTenant", err)
	}
}

func TestTenantWithoutSettingIsAnError(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, db := open(t)
	if err := db.System(ctx, add(ctx, alice, 1)); err != nil {
		t.Fatal(err)
	}
	for _, connection := range []string{"fresh", "used"} { // that has no setting, or an empty one
		err := db.System(ctx, func(tx *pg.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT set_config('role', 'fl_acorn_tenant', true)"); err != nil {
				return err
			}
			var n int64
			return tx.QueryRow(ctx, count).Scan(&n)
		})
		if err == nil {
			t.Errorf("a tenant role without a tenant read rows on a %s connection", connection)
		}
		if err := db.Tenant(ctx, alice, func(tx *pg.Tx) error { _, err := tx.Exec(ctx, count); return err }); err != nil {
			t.Fatal(err)
		}
	}
}

func pgCount(ctx context.Context, t *testing.T, db *pg.DB) (n int64) {
	t.Helper()
	if err := db.System(ctx, func(tx *pg.Tx) error { return tx.QueryRow(ctx, count).Scan(&n) }); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestErrorAndPanicRollBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, db := open(t)
	boom := errors.New("boom")
	err := db.System(ctx, func(tx *pg.Tx) error {
		tx.OnCommit(func() { t.Error("ran a hook of a rolled back transaction") })
		return errors.Join(add(ctx, alice, 1)(tx), boom)
	})
	if !errors.Is(err, boom) || errors.Is(err, pg.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = db.System(ctx, func(tx *pg.Tx) error { _ = add(ctx, alice, 2)(tx); panic("boom") })
		t.Error("the panic was swallowed")
	}()
	if n := pgCount(ctx, t, db); n != 0 {
		t.Errorf("%d rows survived", n)
	}
}

func TestClosureMustNotEndTheTransaction(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, db := open(t)
	err := db.System(ctx, func(tx *pg.Tx) error {
		if tx.Commit(ctx) == nil || tx.Rollback(ctx) == nil {
			t.Error("the closure ended the transaction")
		}
		return add(ctx, alice, 1)(tx)
	})
	if err != nil || pgCount(ctx, t, db) != 1 {
		t.Errorf("err %v, rows %d", err, pgCount(ctx, t, db))
	}
}

func TestHooksRunInOrderAfterTheCommitAndMayUseThePool(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := pgtest.New(t, schema)
	db, err := pg.Open(ctx, pg.Config{DSN: config.Secret(d.DSN("acorn")), MaxConns: 1, AllowUnsafe: true}, "acorn", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	var seen []string
	hook := func(name string) func() {
		return func() { seen = append(seen, fmt.Sprint(name, pgCount(ctx, t, db))) }
	}
	err = db.System(ctx, func(tx *pg.Tx) error {
		tx.OnCommit(hook("a"))
		tx.OnCommit(hook("b"))
		return add(ctx, alice, 1)(tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &pg.Batch{}
	b.Queue(insert, alice, 2)
	b.OnCommit(hook("c"))
	if err := db.TenantBatch(ctx, alice, b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a1", "b1", "c2"}, seen); diff != "" {
		t.Error(diff)
	}
}

func TestSwallowedFailureDoesNotPassForACommit(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, db := open(t)
	err := db.System(ctx, func(tx *pg.Tx) error {
		_, _ = tx.Exec(ctx, "SELECT nonsense")
		return nil
	})
	if !errors.Is(err, pgx.ErrTxCommitRollback) || pg.Classify(err) != pg.NotExecuted {
		t.Errorf("got %v, %v", err, pg.Classify(err))
	}
}

func TestConstraintsAtCommitAreRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, db := open(t)
	twice := "INSERT INTO acorn.later VALUES (1), (1)"
	err := db.System(ctx, func(tx *pg.Tx) error { _, err := tx.Exec(ctx, twice); return err })
	if !pg.IsUnique(err, "later_once") || pg.Classify(err) != pg.Refused {
		t.Errorf("transaction: got %v, %v", err, pg.Classify(err))
	}
	b := &pg.Batch{}
	b.Queue(twice)
	b.OnCommit(func() { t.Error("ran a hook of a refused batch") })
	if err := db.SystemBatch(ctx, b); !pg.IsUnique(err, "later_once") || pg.Classify(err) != pg.Refused {
		t.Errorf("batch: got %v, %v", err, pg.Classify(err))
	}
}

func TestDeadlocksAndSerializationFailuresRunAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, db := open(t)
	for id := range int64(2) {
		if err := db.System(ctx, add(ctx, alice, id)); err != nil {
			t.Fatal(err)
		}
	}
	var both, met sync.WaitGroup
	met.Add(2)
	runs := make(chan int, 20)
	raise := func(first, second int64) {
		defer both.Done()
		n := 0
		err := db.System(ctx, func(tx *pg.Tx) error {
			n++
			if _, err := tx.Exec(ctx, "UPDATE acorn.nuts SET weight = weight + 1 WHERE id = $1", first); err != nil {
				return err
			}
			if n == 1 { // both hold their first row
				met.Done()
				met.Wait()
			}
			_, err := tx.Exec(ctx, "UPDATE acorn.nuts SET weight = weight + 1 WHERE id = $1", second)
			return err
		})
		if err != nil {
			t.Error(err)
		}
		runs <- n
	}
	both.Add(2)
	go raise(0, 1)
	go raise(1, 0)
	both.Wait()
	if n := <-runs + <-runs; n < 3 {
		t.Errorf("%d runs in all: no deadlock was run again", n)
	}
	if s := db.Stats(); s.Retries < 1 {
		t.Errorf("stats show no retry: %+v", s)
	}
	n := 0
	err := db.System(ctx, func(tx *pg.Tx) error {
		n++
		_, err := tx.Exec(ctx, "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$")
		return fmt.Errorf("wrapped: %w", err)
	})
	if n != 5 || pg.Classify(err) != pg.NotExecuted {
		t.Errorf("%d runs, outcome %v of %v", n, pg.Classify(err), err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := pgtest.New(t, schema)
	for name, tc := range map[string]struct {
		cfg     pg.Config
		service string
		want    string
	}{
		"an administrator":   {pg.Config{DSN: config.Secret(d.AdminDSN()), AllowUnsafe: true}, "acorn", "superuser"},
		"an unsafe server":   {pg.Config{DSN: config.Secret(d.DSN("acorn"))}, "acorn", "fsync"},
		"another's role":     {pg.Config{DSN: config.Secret(d.DSN("acorn")), AllowUnsafe: true}, "beech", "beech"},
		"a name to splice":   {pg.Config{DSN: config.Secret(d.DSN("acorn")), AllowUnsafe: true}, "a'; --", "not a service name"},
		"no DSN":             {pg.Config{}, "acorn", "DSN is empty"},
		"nonsense":           {pg.Config{DSN: "postgres://u:canary@[::1"}, "acorn", "withheld"},
		"a negative setting": {pg.Config{DSN: config.Secret(d.DSN("acorn")), MaxConns: -1}, "acorn", "PG_MAX_CONNS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := pg.Open(ctx, tc.cfg, tc.service, nil)
			if err == nil {
				db.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestSessionSettings(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, db := open(t)
	for name, want := range map[string]string{
		"application_name": "fenceline-acorn", "search_path": "", "TimeZone": "UTC",
		"idle_in_transaction_session_timeout": "5s", "lock_timeout": "3s", "statement_timeout": "10s",
	} {
		var got string
		if err := db.System(ctx, func(tx *pg.Tx) error { return tx.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&got) }); err != nil {
			t.Fatal(err)
		}
		if got != want && !(want == "" && got == `""`) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	now, err := db.Now(ctx)
	if err != nil || now.Location() != time.UTC || time.Since(now).Abs() > time.Minute {
		t.Errorf("Now: %v in %v, %v", now, now.Location(), err)
	}
	var at []time.Time
	if err := db.System(ctx, func(tx *pg.Tx) error { return tx.QueryRow(ctx, "SELECT ARRAY[clock_timestamp()]").Scan(&at) }); err != nil || at[0].Location() != time.UTC {
		t.Errorf("array of times: %v, %v", at, err)
	}
}

func TestCheckSchema(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, db := open(t)
	if err := errors.Join(db.CheckSchema(ctx, "acorn", 1), db.CheckSchema(ctx, "acorn", 0)); err != nil {
		t.Error(err)
	}
	if err := db.CheckSchema(ctx, "acorn", 2); err == nil || !strings.Contains(err.Error(), "version 1, this binary needs 2") {
		t.Errorf("got %v", err)
	}
	if err := db.CheckSchema(ctx, "beech", 1); err == nil || !strings.Contains(err.Error(), "migrator") {
		t.Errorf("got %v", err)
	}
	err := db.System(ctx, func(tx *pg.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO acorn.schema_version (version_id, is_applied) VALUES (9, true)")
		return err
	})
	if pg.Classify(err) != pg.Refused {
		t.Errorf("a service wrote its schema's version: %v", err)
	}
}
