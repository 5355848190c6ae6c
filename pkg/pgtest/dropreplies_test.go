package pgtest_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

func TestDropRepliesLosesWhatWasCommitted(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t, forest(""))
	db, p := pgtest.DropReplies(t, d, "acorn")
	const insert = "INSERT INTO acorn.nuts (tenant, id, name) VALUES ($1, $2, $3)"
	tenant := uuid.New()
	rows := func() int64 { return pgtest.Query[int64](t, d, "SELECT count(*) FROM acorn.nuts") }
	transaction := func(name string) error {
		return db.Tenant(t.Context(), tenant, func(tx *pg.Tx) error {
			_, err := tx.Exec(t.Context(), insert, tenant, uuid.New(), name)
			return err
		})
	}
	batch := func(name string) error {
		b := &pg.Batch{}
		b.Queue(insert, tenant, uuid.New(), name)
		b.Queue("SELECT count(*) FROM acorn.nuts")
		return db.TenantBatch(t.Context(), tenant, b)
	}
	for name, run := range map[string]func(string) error{"transaction": transaction, "batch": batch} {
		if err := run(name + " unarmed"); err != nil {
			t.Fatal(err)
		}
		commits, have, lost := p.Commits(), rows(), p.Lost()
		if err := run(name + " counted"); err != nil || p.Commits() != commits+1 {
			t.Errorf("%s: %d commits, %v; want 1", name, p.Commits()-commits, err)
		}
		p.Arm()
		if err := run(name + " lost"); !errors.Is(err, pg.ErrUnknownOutcome) {
			t.Errorf("%s: %v, want an unknown outcome", name, err)
		}
		if got := rows() - have; got != 2 || p.Lost() != lost+1 {
			t.Errorf("%s: %d rows and %d lost replies, want 2 and 1", name, got, p.Lost()-lost)
		}
		if err := run(name + " after"); err != nil || p.Lost() != lost+1 {
			t.Errorf("%s: armed once it lost %d replies: %v", name, p.Lost()-lost, err)
		}
		if err := run(name + " lost"); !pg.IsUnique(err, "nuts_name") {
			t.Errorf("%s: %v, want what was lost to be there", name, err)
		}
	}
	p.Arm(1)
	if err := transaction("passes"); err != nil {
		t.Error(err)
	}
	if err := batch("is lost"); !errors.Is(err, pg.ErrUnknownOutcome) {
		t.Errorf("the second commit: %v, want an unknown outcome", err)
	}
}

// TestDropRepliesKeepsOtherAnswers: inside a transaction nothing is a commit but COMMIT, and a failed
// statement's answer is an answer.
func TestDropRepliesKeepsOtherAnswers(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t, forest(""))
	db, p := pgtest.DropReplies(t, d, "acorn")
	if err := db.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Arm()
	boom := errors.New("boom")
	err := db.System(t.Context(), func(tx *pg.Tx) error {
		for range 3 {
			if _, err := tx.Exec(t.Context(), "SELECT $1::int", 1); err != nil {
				return err
			}
		}
		return boom
	})
	if !errors.Is(err, boom) || p.Lost() != 0 {
		t.Errorf("%v, %d lost; want the closure's own error and none", err, p.Lost())
	}
}
