package e2e

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestOlderDatabaseRestored puts the publisher's tables back to what they held while the first comment was on its way.
// Everything that was posted since is found by its marker: nothing is posted twice, and in the end every page is right.
func TestOlderDatabaseRestored(t *testing.T) {
	w := newWorld(t)
	w.restored = true
	w.brisk()
	w.fault(control.Fault{Class: "comments.create", Times: 1, Delay: control.Duration(400e6)})
	w.up()
	w.repository()
	opened := w.open(control.Send)
	first := opened.Pull.Number
	w.called("comments.create")
	w.dump()
	w.resting(first, opened.Pull.HeadSHA)
	pushed := w.push("change", map[string]string{"data.json": comma}, control.Send)
	w.resting(first, pushed.After)
	other := w.branch("other", map[string]string{"notes.txt": conflicted, "b.txt": conflicted})
	eventually(t, "the second pull request is shown", func() error { return w.shown(other.HeadSHA) })
	w.atPeace()
	before := [2]view{w.view(first), w.view(other.Number)}

	w.crash("publisher")
	w.restore()
	w.up("publisher")
	w.written() // what was on its way then
	for n, number := range []int{first, other.Number} {
		v := w.view(number)
		if len(v.comments) != 1 || len(v.reviews) != len(before[n].reviews) || !slices.Equal(v.paths(), before[n].paths()) || len(v.checks) != 1 {
			t.Errorf("pull request %d: %d comments, %d reviews, remarks on %v, %d check runs", number, len(v.comments), len(v.reviews), v.paths(), len(v.checks))
		}
		if v.comments[0].Body != before[n].comments[0].Body {
			t.Errorf("the page went back to\n%s", v.comments[0].Body)
		}
	}

	// The next heads are shown where the ones before were.
	next := w.change(1, control.Send)
	eventually(t, "the next head is shown", func() error { return w.shown(next.After) })
	last := w.push("other", map[string]string{"notes.txt": conflicted + "more\n"}, control.Send)
	eventually(t, "the other's next head is shown", func() error { return w.shown(last.After) })
	w.atPeace()
	for n, head := range map[int]string{first: next.After, other.Number: last.After} {
		v := w.view(n)
		if len(v.comments) != 1 || len(v.checks) != 1 || v.checks[0].Status != "completed" {
			t.Fatalf("pull request %d: %d comments, check runs %+v", n, len(v.comments), v.checks)
		}
		says(t, "the comment", v.comments[0].Body, head)
	}
	if got := w.view(other.Number).paths(); !slices.Equal(got, []string{"b.txt", "notes.txt"}) {
		t.Errorf("remarks on %v: something was said twice, or not", got)
	}
	w.handled("comments.create", 2)
	w.handled("reviews.create", 3)
}

// dump keeps the publisher's tables as they are at this moment.
func (w *world) dump() {
	w.Helper()
	conn, done := w.admin()
	defer done()
	tx, err := conn.BeginTx(w.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		w.Fatal(err)
	}
	if _, err := tx.Exec(w.Context(), `CREATE SCHEMA dumped`); err != nil {
		w.Fatal(err)
	}
	for _, table := range w.tables("publisher") {
		name := pgx.Identifier{table}.Sanitize()
		if _, err := tx.Exec(w.Context(), `CREATE TABLE dumped.`+name+` AS TABLE publisher.`+name); err != nil {
			w.Fatal(err)
		}
	}
	if err := tx.Commit(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// restore puts back what was dumped.
func (w *world) restore() {
	w.Helper()
	all := w.tables("publisher")
	conn, done := w.admin()
	defer done()
	tx, err := conn.Begin(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	if _, err := tx.Exec(w.Context(), `SET LOCAL session_replication_role = replica`); err != nil {
		w.Fatal(err)
	}
	for _, table := range all {
		name := pgx.Identifier{table}.Sanitize()
		if _, err := tx.Exec(w.Context(), `DELETE FROM publisher.`+name); err != nil {
			w.Fatal(err)
		}
		if _, err := tx.Exec(w.Context(), `INSERT INTO publisher.`+name+` SELECT * FROM dumped.`+name); err != nil {
			w.Fatal(err)
		}
	}
	if err := tx.Commit(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// tables are those of a schema, but for its migrations.
func (w *world) tables(schema string) []string {
	w.Helper()
	conn, done := w.admin()
	defer done()
	rows, _ := conn.Query(w.Context(), `SELECT tablename::text FROM pg_tables WHERE schemaname = $1 AND tablename <> 'schema_version' ORDER BY 1`, schema)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.Fatal(err)
	}
	return all
}
