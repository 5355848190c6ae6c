package pg_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

func TestBatchIsOneTransactionInOneTrip(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, db := open(t)
	send := func(id int64) error {
		b := &pg.Batch{}
		b.Queue(insert, alice, id)
		b.Queue("UPDATE acorn.nuts SET weight = $2 WHERE id = $1", id, id)
		return db.TenantBatch(ctx, alice, b)
	}
	if err := send(1); err != nil {
		t.Fatal(err)
	}
	before := db.Stats()
	if err := send(2); err != nil {
		t.Fatal(err)
	}
	after := db.Stats()
	got := pg.Stats{
		Statements: after.Statements - before.Statements, Control: after.Control - before.Control,
		Trips: after.Trips - before.Trips, Commits: after.Commits - before.Commits,
	}
	if diff := cmp.Diff(pg.Stats{Statements: 2, Control: 1, Trips: 1, Commits: 1}, got); diff != "" {
		t.Error(diff)
	}
	if err := send(100); !pg.IsCheck(err, "nuts_light") || pg.Classify(err) != pg.Refused {
		t.Errorf("got %v", err)
	}
	if n := pgCount(ctx, t, db); n != 2 {
		t.Errorf("%d rows: the failure in the last statement left the first", n)
	}
	if err := db.SystemBatch(ctx, &pg.Batch{}); err != nil {
		t.Errorf("an empty batch: %v", err)
	}
}

// What a batch need not wait for is its own commit alone.
func TestNoWait(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := pgtest.New(t, schema)
	db, err := pg.Open(ctx, pg.Config{DSN: config.Secret(d.DSN("acorn") + "&options=-c%20synchronous_commit%3Don"), MaxConns: 1, AllowUnsafe: true}, "acorn", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	setting := func(b *pg.Batch) (value string) {
		b.Queue("SELECT pg_catalog.current_setting('synchronous_commit')").QueryRow(func(r pgx.Row) error { return r.Scan(&value) })
		if err := db.SystemBatch(ctx, b); err != nil {
			t.Fatal(err)
		}
		return value
	}
	before := db.Stats()
	hurried := &pg.Batch{}
	hurried.NoWait()
	if got := setting(hurried); got != "off" {
		t.Errorf("synchronous_commit is %s in the batch", got)
	}
	if got := setting(&pg.Batch{}); got != "on" {
		t.Errorf("synchronous_commit is %s in the next", got)
	}
	if s := db.Stats(); s.Statements-before.Statements != 2 || s.Control-before.Control != 1 {
		t.Errorf("%d statements, %d of control", s.Statements-before.Statements, s.Control-before.Control)
	}
}

func TestBatchCallbacks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, db := open(t)
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		queue func(*pg.Batch)
		want  error // nil: none
		rows  int64
	}{
		"they see the answers": {func(b *pg.Batch) {
			b.Queue(count).QueryRow(func(row pgx.Row) error {
				var n int64
				if err := row.Scan(&n); err != nil || n != 1 {
					return fmt.Errorf("%w: %d, %w", boom, n, err)
				}
				return nil
			})
			b.Queue("SELECT id FROM acorn.nuts").Query(func(rows pgx.Rows) error {
				_, err := pgx.CollectRows(rows, pgx.RowTo[int64])
				return err
			})
		}, nil, 1},
		"their own error comes after the commit": {func(b *pg.Batch) {
			b.Queue(count).Query(func(pgx.Rows) error { return boom })
			b.Queue("UPDATE acorn.nuts SET weight = 7").Exec(func(pgconn.CommandTag) error { return nil })
		}, boom, 1},
		"no row is theirs": {func(b *pg.Batch) {
			b.Queue("SELECT 1 WHERE false").QueryRow(func(row pgx.Row) error { var n int; return row.Scan(&n) })
		}, pgx.ErrNoRows, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, db := open(t)
			b := &pg.Batch{}
			hooked := false
			b.OnCommit(func() { hooked = true })
			b.Queue(insert, alice, 1)
			tc.queue(b)
			if err := db.SystemBatch(ctx, b); !errors.Is(err, tc.want) || (tc.want == nil) != (err == nil) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if n := pgCount(ctx, t, db); n != tc.rows || !hooked {
				t.Errorf("%d rows, hooked %v", n, hooked)
			}
		})
	}
	b := &pg.Batch{}
	b.Queue(insert, alice, 1)
	b.Queue("SELECT 1/0").QueryRow(func(row pgx.Row) error { var n int; _ = row.Scan(&n); return boom })
	if err := db.SystemBatch(ctx, b); pg.Classify(err) != pg.Poison || errors.Is(err, boom) {
		t.Errorf("the database's error was lost: %v", err)
	}
	b = &pg.Batch{}
	b.Queue(insert, alice, 1)
	b.Queue("SELECT 'x'").QueryRow(func(row pgx.Row) error { var n int; return row.Scan(&n) })
	if err := db.SystemBatch(ctx, b); !errors.Is(err, pg.ErrUnknownOutcome) {
		t.Errorf("an answer that can't be scanned: got %v", err)
	}
}
