package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// Record folds an activity into its target, making the target where it is new. Idempotent on the
// activity's id: recorded again, it is answered as before and changes nothing.
func (s *Store) Record(ctx context.Context, tenant scheduler.TenantID, a scheduler.Activity, event string) (scheduler.Recorded, error) {
	a.Trace = obs.Inject(ctx)
	var done scheduler.Recorded
	err := s.tenant(ctx, tenant, func(tx *pg.Tx) error {
		l, err := s.lockOrMake(ctx, tx, tenant, a.PullRequest)
		if err != nil {
			return err
		}
		var found bool
		if done, found, err = recorded(ctx, tx, tenant, a.ID); err != nil || found {
			return err
		}
		t, e := s.rules.Record(l.Target, a, l.now)
		done = scheduler.Recorded{Target: t.ID, Generation: t.Generation, Decision: kindOf(e, a.ID)}
		if err := s.save(ctx, tx, t, e, write{sql: saveTarget}); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, insertActivity, pgx.NamedArgs{
			"tenant": tenant, "activity": a.ID, "target": t.ID, "cause": a.Cause, "event": event,
			"delivery": a.Delivery, "generation": t.Generation, "decision": done.Decision,
		})
		return err
	})
	if err != nil {
		return scheduler.Recorded{}, fmt.Errorf("record activity: %w", err)
	}
	return done, nil
}

// lockOrMake locks the pull request's target. The lock comes before the look for the activity's id, so
// that the same activity at two instances at once is recorded by one and found by the other.
func (s *Store) lockOrMake(ctx context.Context, tx *pg.Tx, tenant scheduler.TenantID, pr scheduler.PullRequest) (l loaded, err error) {
	named := pgx.NamedArgs{"tenant": tenant, "host": pr.Host, "repository_id": pr.Repository, "number": pr.Number}
	l, err = lockOne(ctx, tx, lockPullRequest, named)
	if !errors.Is(err, scheduler.ErrNotFound) {
		return l, err
	}
	t := scheduler.NewTarget(scheduler.TargetID(newID()), tenant, pr, time.Time{})
	t.TouchedAt = time.Unix(0, 0)
	err = tx.QueryRow(ctx, insertTarget, args(targetColumns, t)).Scan(&l.now)
	if errors.Is(err, pgx.ErrNoRows) { // another instance made it just now
		l, err = lockOne(ctx, tx, lockPullRequest, named)
		return l, err
	}
	l.Target = scheduler.NewTarget(t.ID, tenant, pr, l.now)
	return l, err
}

func lockOne(ctx context.Context, tx *pg.Tx, sql string, named pgx.NamedArgs) (loaded, error) {
	rows, err := tx.Query(ctx, sql, named)
	if err != nil {
		return loaded{}, err
	}
	l, err := pgx.CollectExactlyOneRow(rows, scanLoaded)
	if errors.Is(err, pgx.ErrNoRows) {
		return l, scheduler.ErrNotFound
	}
	return l, err
}

func recorded(ctx context.Context, tx *pg.Tx, tenant scheduler.TenantID, id scheduler.ActivityID) (scheduler.Recorded, bool, error) {
	var r scheduler.Recorded
	err := tx.QueryRow(ctx, getActivity, pgx.NamedArgs{"tenant": tenant, "activity": id}).Scan(&r.Target, &r.Generation, &r.Decision)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, false, nil
	}
	return r, err == nil, err
}

// kindOf is the decision that names the activity.
func kindOf(e scheduler.Effects, id scheduler.ActivityID) scheduler.DecisionKind {
	for _, d := range e.Decisions {
		if d.Activity == id {
			return d.Kind
		}
	}
	return scheduler.DecisionDue
}
