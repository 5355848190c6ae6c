package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

func clock(ctx context.Context, tx *pg.Tx) (now time.Time, err error) {
	err = tx.QueryRow(ctx, readClock).Scan(&now)
	return now.UTC(), err
}

func (s *Store) targets(ctx context.Context, tenant *scheduler.TenantID, sql string, named pgx.NamedArgs) ([]scheduler.Target, error) {
	var found []scheduler.Target
	err := s.as(ctx, tenant, func(tx *pg.Tx) error {
		rows, err := tx.Query(ctx, sql, named)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (scheduler.Target, error) {
			l, err := scanLoaded(row)
			return l.Target, err
		})
		return err
	})
	return found, err
}

// Target reads one target.
func (s *Store) Target(ctx context.Context, tenant scheduler.TenantID, id scheduler.TargetID) (scheduler.Target, error) {
	found, err := s.targets(ctx, &tenant, getTarget, pgx.NamedArgs{"tenant": tenant, "target": id})
	if err == nil && len(found) == 0 {
		err = scheduler.ErrNotFound
	}
	if err != nil {
		return scheduler.Target{}, fmt.Errorf("read target: %w", err)
	}
	return found[0], nil
}

// Targets lists a tenant's targets by ascending id.
func (s *Store) Targets(ctx context.Context, tenant scheduler.TenantID, f scheduler.TargetFilter, limit int) ([]scheduler.Target, error) {
	sql := listTargets
	if f.LiveOnly {
		sql = listLive
	}
	found, err := s.targets(ctx, &tenant, sql, pgx.NamedArgs{
		"tenant": tenant, "project": f.Project, "due": f.DueOnly, "after": f.After, "limit": limit,
	})
	if err != nil {
		return nil, fmt.Errorf("list targets: %w", err)
	}
	return found, nil
}

// Lookup finds targets by what a person has, at most twenty.
func (s *Store) Lookup(ctx context.Context, tenant *scheduler.TenantID, l scheduler.Lookup) ([]scheduler.Target, error) {
	named := pgx.NamedArgs{
		"tenant": tenant, "number": l.Number, "repository": l.FullName, "sha": l.SHA, "trace": l.Trace, "delivery": l.ID,
	}
	sql := lookupURL
	switch {
	case l.SHA != "":
		sql = lookupSHA
	case l.Trace != "":
		sql = lookupTrace
	case l.ID != "":
		id, err := uuid.Parse(l.ID)
		if err != nil {
			return nil, scheduler.ErrLookup
		}
		sql, named["id"] = lookupID, id
	}
	found, err := s.targets(ctx, tenant, sql, named)
	if err != nil {
		return nil, fmt.Errorf("look up target: %w", err)
	}
	return found, nil
}

func scanRunRow(row pgx.CollectableRow) (scheduler.RunRow, error) {
	var r scheduler.RunRow
	err := row.Scan(append(places(runColumns, &r.Run), &r.Target, &r.Repository, &r.Number, &r.Version, &r.CreatedAt, moment{&r.EndedAt})...)
	return r, err
}

// Runs lists a target's runs before the given id, newest first.
func (s *Store) Runs(ctx context.Context, tenant scheduler.TenantID, target scheduler.TargetID, before scheduler.RunID, limit int) ([]scheduler.RunRow, error) {
	var found []scheduler.RunRow
	err := s.tenant(ctx, tenant, func(tx *pg.Tx) error {
		rows, err := tx.Query(ctx, listRuns, pgx.NamedArgs{"tenant": tenant, "target": target, "before": before, "limit": limit})
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scanRunRow)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return found, nil
}

// pollRun is how often a waiting GetRun looks by itself: the change may have been another replica's.
const pollRun = time.Second

// Run reads a run; where it is not newer than the version, it waits for a change until ctx ends or wait
// has passed, and answers with what there is then.
func (s *Store) Run(ctx context.Context, tenant scheduler.TenantID, id scheduler.RunID, newerThan int64, wait time.Duration) (scheduler.RunRow, error) {
	changed, done := s.runs.add(id)
	defer done()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		r, err := s.run(ctx, tenant, id)
		if err != nil {
			return scheduler.RunRow{}, fmt.Errorf("read run: %w", err)
		}
		if r.Version > newerThan {
			return r, nil
		}
		select {
		case <-ctx.Done():
			return scheduler.RunRow{}, fmt.Errorf("wait for run: %w", ctx.Err())
		case <-timeout.C:
			return r, nil
		case <-changed:
		case <-time.After(pollRun):
		}
	}
}

func (s *Store) run(ctx context.Context, tenant scheduler.TenantID, id scheduler.RunID) (scheduler.RunRow, error) {
	var r scheduler.RunRow
	err := s.tenant(ctx, tenant, func(tx *pg.Tx) error {
		rows, err := tx.Query(ctx, getRun, pgx.NamedArgs{"tenant": tenant, "run": id})
		if err != nil {
			return err
		}
		r, err = pgx.CollectExactlyOneRow(rows, scanRunRow)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return r, scheduler.ErrNotFound
	}
	return r, err
}

// Decisions lists a target's decisions before the given sequence, newest first.
func (s *Store) Decisions(ctx context.Context, tenant scheduler.TenantID, target scheduler.TargetID, before int64, limit int) ([]scheduler.DecisionRow, error) {
	return s.decisions(ctx, tenant, listDecisions, pgx.NamedArgs{"tenant": tenant, "target": target, "before": before, "limit": limit})
}

// RequestDecisions lists the decisions that name a request, before the given sequence, newest first. A zero
// target means: whichever it is.
func (s *Store) RequestDecisions(ctx context.Context, tenant scheduler.TenantID, request scheduler.RequestID, target scheduler.TargetID, before int64, limit int) ([]scheduler.DecisionRow, error) {
	named := pgx.NamedArgs{"tenant": tenant, "request": request, "target": nil, "before": before, "limit": limit}
	if target != (scheduler.TargetID{}) {
		named["target"] = target
	}
	return s.decisions(ctx, tenant, listRequestDecisions, named)
}

func (s *Store) decisions(ctx context.Context, tenant scheduler.TenantID, sql string, named pgx.NamedArgs) ([]scheduler.DecisionRow, error) {
	var found []scheduler.DecisionRow
	err := s.tenant(ctx, tenant, func(tx *pg.Tx) error {
		rows, err := tx.Query(ctx, sql, named)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (scheduler.DecisionRow, error) {
			var d scheduler.DecisionRow
			err := row.Scan(&d.Sequence, &d.Target, &d.Kind, &d.Reason, &d.Detail, &d.Generation, &d.Lifecycle, &d.Epoch,
				optionalID(&d.Run), optionalID(&d.Claim), &d.Activity, &d.Request, &d.Trace, &d.At)
			return d, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list decisions: %w", err)
	}
	return found, nil
}

// mostExplained bounds an explanation's decisions.
const mostExplained = 500

// Explain reads the newest decisions of a target, oldest first.
func (s *Store) Explain(ctx context.Context, tenant scheduler.TenantID, target scheduler.TargetID) ([]scheduler.DecisionRow, error) {
	found, err := s.Decisions(ctx, tenant, target, 1<<62, mostExplained)
	slices.Reverse(found)
	return found, err
}
