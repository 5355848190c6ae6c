package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// setTenant takes role and tenant for the implicit transaction of a batch. SET LOCAL would do the
// same and make the server warn each time that there is no BEGIN.
const setTenant = `SELECT pg_catalog.set_config('role', $1, true), pg_catalog.set_config('fenceline.tenant', $2, true)`

// setNoWait spares one transaction the wait for the disk.
const setNoWait = `SELECT pg_catalog.set_config('synchronous_commit', 'off', true)`

// Batch is a transaction that travels in one round trip: nothing in it can depend on an answer of
// it but through SQL. The zero value is empty and ready.
type Batch struct {
	pgx.Batch
	hooks  []func()
	noWait bool
}

// OnCommit registers a function to run after the batch committed, in order of registration.
func (b *Batch) OnCommit(fn func()) { b.hooks = append(b.hooks, fn) }

// NoWait has the batch answered before its commit is on the disk: a crash of the server within the next
// second may forget it, though nothing before it. Only for what may happen twice.
func (b *Batch) NoWait() { b.noWait = true }

// SystemBatch runs the batch under the login role, as one implicit transaction: every statement or
// none. Callbacks of queued queries observe and must keep no state between runs; an error that one
// returns can't undo the others' work: it is returned after the commit. Retries are as in System.
func (db *DB) SystemBatch(ctx context.Context, b *Batch) error { return db.send(ctx, b, nil) }

// TenantBatch is SystemBatch under the tenant role. uuid.Nil is ErrNoTenant.
func (db *DB) TenantBatch(ctx context.Context, tenant uuid.UUID, b *Batch) error {
	if tenant == uuid.Nil {
		return ErrNoTenant
	}
	return db.send(ctx, b, []any{"fl_" + db.service + "_tenant", tenant.String()})
}

func (db *DB) send(ctx context.Context, b *Batch, tenant []any) error {
	if b.Len() == 0 {
		return nil
	}
	for n := 1; ; n++ {
		own, err := db.sendOnce(ctx, b, tenant)
		switch {
		case err == nil:
			for _, hook := range b.hooks {
				hook()
			}
			return own
		case n == maxRuns || !again(err) || db.pause(ctx, n, err) != nil:
			return err
		}
	}
}

// sendOnce returns the first error of a callback apart from that of the database: the first comes
// with a commit, the second without or with an unknown outcome.
func (db *DB) sendOnce(ctx context.Context, b *Batch, tenant []any) (own, err error) {
	conn, err := db.acquire(context.WithValue(ctx, pinged{}, true))
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	w := &watch{}
	one := w.wrap(b, tenant)
	err = conn.SendBatch(ctx, one).Close()
	if err == nil {
		db.counters.commits.Add(1)
		return w.own, nil
	}
	db.counters.rollbacks.Add(1)
	err = fmt.Errorf("pg: batch: %w", err)
	if w.ambiguous(err, one.Len()) {
		return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return nil, db.explain(ctx, err)
}

// watch follows the answers of one batch, so that its outcome can be told.
type watch struct {
	done int   // statements answered without an error of the database
	own  error // the first error that a callback made up itself
}

// wrap copies the batch for one run: pgx lets a batch be sent only once.
func (w *watch) wrap(b *Batch, tenant []any) *pgx.Batch {
	one := &pgx.Batch{}
	if b.noWait {
		w.watch(one.Queue(setNoWait), nil)
	}
	if tenant != nil {
		w.watch(one.Queue(setTenant, tenant...), nil)
	}
	for _, q := range b.QueuedQueries {
		w.watch(one.Queue(q.SQL, remembered(q.Arguments)...), q.Fn)
	}
	return one
}

func (w *watch) watch(q *pgx.QueuedQuery, callback func(pgx.BatchResults) error) {
	q.Fn = func(br pgx.BatchResults) error {
		answer := &answer{BatchResults: br}
		var own error
		if callback == nil {
			_, _ = answer.Exec()
		} else {
			own = callback(answer)
		}
		if err := answer.failed(); err != nil {
			if errors.Is(own, err) {
				return own // the callback says more of the same error
			}
			return err
		}
		if w.own == nil {
			w.own = own
		}
		w.done++
		return nil
	}
}

// ambiguous reports whether the batch may have committed in spite of err.
func (w *watch) ambiguous(err error, statements int) bool {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		// An ERROR undid the batch. So did the end of the session, if a statement met it.
		return fatal(pe) && w.done >= statements
	}
	return !pgconn.SafeToRetry(err)
}

// answer hands one statement's answer to its callback and remembers what the database, as opposed
// to the callback, had to say.
type answer struct {
	pgx.BatchResults
	rows pgx.Rows
	err  error
}

func (a *answer) failed() error {
	if a.rows != nil {
		a.rows.Close()
		if err := a.rows.Err(); err != nil {
			return err
		}
	}
	return a.err
}

func (a *answer) Exec() (pgconn.CommandTag, error) {
	tag, err := a.BatchResults.Exec()
	a.err = err
	return tag, err
}

func (a *answer) Query() (pgx.Rows, error) {
	rows, err := a.BatchResults.Query()
	a.rows, a.err = rows, err
	return rows, err
}

func (a *answer) QueryRow() pgx.Row {
	rows, _ := a.Query()
	return oneRow{rows}
}

// oneRow is pgx's row, which can't be had from rows outside of pgx.
type oneRow struct{ rows pgx.Rows }

func (r oneRow) Scan(dest ...any) error {
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}
