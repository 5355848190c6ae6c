package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Sweep is the leased row of one sweep: of all replicas, one holds it.
type Sweep struct {
	store *Store
	name  string
	me    uuid.UUID
	lease time.Duration
}

// Sweep returns this process's hand on the named sweep, with the lease that each step renews.
func (s *Store) Sweep(name string, lease time.Duration) *Sweep {
	return &Sweep{store: s, name: name, me: newID(), lease: lease}
}

func (w *Sweep) args(more pgx.NamedArgs) pgx.NamedArgs {
	args := pgx.NamedArgs{"name": w.name, "holder": w.me, "lease": w.lease}
	for k, v := range more {
		args[k] = v
	}
	return args
}

// Hold takes the sweep, where its time has come and nobody else holds it.
func (w *Sweep) Hold(ctx context.Context) (p ingest.Pass, held bool, err error) {
	var top, seen *time.Time
	b := &pg.Batch{}
	b.Queue(holdSweep, w.args(nil)).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&p.Cursor, &top, &seen)
		held = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err := w.store.db.SystemBatch(ctx, b); err != nil {
		return ingest.Pass{}, false, fmt.Errorf("hold sweep: %w", err)
	}
	p.Seen = or(seen)
	return p, held, nil
}

// Renew extends the lease; ErrSweepLost where another holds it.
func (w *Sweep) Renew(ctx context.Context) error { return w.step(ctx, "renew sweep", renewSweep, nil) }

// Leave gives the sweep back, for anybody to take after the pause.
func (w *Sweep) Leave(ctx context.Context, after time.Duration) error {
	err := w.step(ctx, "leave sweep", leaveSweep, pgx.NamedArgs{"after": after})
	if errors.Is(err, ingest.ErrSweepLost) {
		return nil // nothing is left to give back
	}
	return err
}

func (w *Sweep) step(ctx context.Context, what, sql string, more pgx.NamedArgs) error {
	err := w.store.db.System(ctx, func(tx *pg.Tx) error { return w.stepIn(ctx, tx, sql, more) })
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// stepIn fails a transaction whose process has lost the sweep.
func (w *Sweep) stepIn(ctx context.Context, tx *pg.Tx, sql string, more pgx.NamedArgs) error {
	tag, err := tx.Exec(ctx, sql, w.args(more))
	if err == nil && tag.RowsAffected() == 0 {
		err = ingest.ErrSweepLost
	}
	return err
}

// LogSweep is the sweep through the App's delivery log.
type LogSweep struct {
	*Sweep
	host, hook string
}

// LogSweep returns this process's hand on the sweep through the log of the App's own hook on a host.
func (s *Store) LogSweep(host string, lease time.Duration) *LogSweep {
	return &LogSweep{Sweep: s.Sweep("deliveries", lease), host: host, hook: s.policy.Hook}
}

// Logged records what of a page of the log failed and has no receipt, and where the pass goes on. It returns
// how many deliveries were found missed, and how many refused by rule.
func (w *LogSweep) Logged(ctx context.Context, list []ingest.Attempt, next string, first time.Duration) (missed, refused int, err error) {
	failed, delivered := ingest.Newest(list)
	n := len(failed)
	guids, attempts, isRefused := make([]string, n), make([]int64, n), make([]bool, n)
	events, actions, statuses := make([]string, n), make([]string, n), make([]int32, n)
	installations, repos, ats := make([]int64, n), make([]int64, n), make([]time.Time, n)
	for i, a := range failed {
		guids[i], attempts[i], isRefused[i] = a.GUID, a.ID, a.Outcome() == ingest.AttemptRefused
		events[i], actions[i], statuses[i] = a.Event, a.Action, int32(a.Status)
		installations[i], repos[i], ats[i] = a.InstallationID, a.RepositoryID, a.At
	}
	var top *time.Time
	if len(list) > 0 {
		top = &list[0].At
	}
	err = w.store.db.System(ctx, func(tx *pg.Tx) error {
		missed, refused = 0, 0
		if err := w.stepIn(ctx, tx, saveCursor, pgx.NamedArgs{"cursor": next, "top": top}); err != nil {
			return err
		}
		if len(delivered) > 0 {
			if _, err := tx.Exec(ctx, endDelivered, pgx.NamedArgs{"host": w.host, "hook": w.hook, "guids": delivered}); err != nil {
				return err
			}
		}
		if n == 0 {
			return nil
		}
		rows, err := tx.Query(ctx, recordMissed, pgx.NamedArgs{
			"host": w.host, "hook": w.hook, "guids": guids, "attempts": attempts, "refused": isRefused, "events": events, "actions": actions,
			"statuses": statuses, "installations": installations, "repositories": repos, "ats": ats, "after": first,
		})
		if err != nil {
			return err
		}
		var state string
		var fresh bool
		_, err = pgx.ForEachRow(rows, []any{&state, &fresh}, func() error {
			switch {
			case state == string(ingest.MissedRefused):
				refused++
			case fresh:
				missed++
			}
			return nil
		})
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("record delivery log: %w", err)
	}
	return missed, refused, nil
}

// EndPass notes that the pass has come to its end.
func (w *LogSweep) EndPass(ctx context.Context, overlap time.Duration) error {
	err := w.store.db.System(ctx, func(tx *pg.Tx) error {
		return w.stepIn(ctx, tx, endPass, pgx.NamedArgs{"overlap": overlap})
	})
	if err != nil {
		return fmt.Errorf("end pass: %w", err)
	}
	return nil
}

// Settle ends what came after all, and what was asked for as often as it may be, and counts both.
func (w *LogSweep) Settle(ctx context.Context, most int) (ended ingest.MissedEnds, err error) {
	err = w.store.db.System(ctx, func(tx *pg.Tx) error {
		if err := w.stepIn(ctx, tx, renewSweep, nil); err != nil {
			return err
		}
		recovered, err := tx.Exec(ctx, endRecovered)
		if err != nil {
			return err
		}
		given, err := tx.Exec(ctx, endTried, pgx.NamedArgs{"most": most})
		ended = ingest.MissedEnds{Recovered: recovered.RowsAffected(), GivenUp: given.RowsAffected()}
		return err
	})
	if err != nil {
		return ingest.MissedEnds{}, fmt.Errorf("settle missed deliveries: %w", err)
	}
	return ended, nil
}

// TakeMissed gives out the missed delivery that is due the longest, its try already counted. found is false
// where none is due.
func (w *LogSweep) TakeMissed(ctx context.Context, most int, first time.Duration) (m ingest.Missed, found bool, err error) {
	err = w.store.db.System(ctx, func(tx *pg.Tx) error {
		if err := w.stepIn(ctx, tx, renewSweep, nil); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, takeMissed, pgx.NamedArgs{"most": most, "after": first}).Scan(&m.GUID, &m.Attempt, &m.Tries, &m.Event, &m.Action)
		found = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return ingest.Missed{}, false, fmt.Errorf("take missed delivery: %w", err)
	}
	return m, found, nil
}

// EndMissed ends a missed delivery.
func (w *LogSweep) EndMissed(ctx context.Context, m ingest.Missed, state ingest.MissedState) error {
	return w.about(ctx, "end missed delivery", endMissed, m, pgx.NamedArgs{"state": state})
}

// PutOffMissed gives a try back that GitHub's limits did not let happen.
func (w *LogSweep) PutOffMissed(ctx context.Context, m ingest.Missed, after time.Duration) error {
	return w.about(ctx, "put off missed delivery", putOffMissed, m, pgx.NamedArgs{"after": after})
}

func (w *LogSweep) about(ctx context.Context, what, sql string, m ingest.Missed, args pgx.NamedArgs) error {
	args["host"], args["hook"], args["guid"] = w.host, w.hook, m.GUID
	b := &pg.Batch{}
	b.Queue(sql, args)
	if err := w.store.db.SystemBatch(ctx, b); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// MissedDepth counts the deliveries that are waited for, and how long the oldest is.
func (s *Store) MissedDepth(ctx context.Context) (int64, time.Duration, error) {
	return s.depth(ctx, missedDepth)
}

// SweepDepth counts the projects whose listing is due, and for how long the oldest is.
func (s *Store) SweepDepth(ctx context.Context) (int64, time.Duration, error) {
	return s.depth(ctx, sweepDepth)
}

func (s *Store) depth(ctx context.Context, sql string) (n int64, age time.Duration, err error) {
	var seconds float64
	b := &pg.Batch{}
	b.Queue(sql).QueryRow(func(row pgx.Row) error { return row.Scan(&n, &seconds) })
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return 0, 0, fmt.Errorf("measure sweeps: %w", err)
	}
	return n, time.Duration(seconds * float64(time.Second)), nil
}
