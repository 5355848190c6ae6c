package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// Open makes an attempt for a claim's run, unless a finished one can be taken over or the run's are
// used up. Idempotent on the claim. A claim whose attempt has ended is ErrClosed.
func (s *Store) Open(ctx context.Context, ask reviewer.Ask) (reviewer.Opening, error) {
	var out reviewer.Opening
	err := s.db.Tenant(ctx, uuid.UUID(ask.Tenant), func(tx *pg.Tx) error {
		rows, err := tx.Query(ctx, known, pgx.NamedArgs{
			"tenant": ask.Tenant, "run": ask.Run.ID, "target": ask.Fence.Target, "head": ask.Run.HeadSHA,
			"lifecycle": ask.Run.Lifecycle, "merge_base": ask.Run.MergeBase, "ordinal": ask.Run.Ordinal, "claim": ask.Fence.Claim,
		})
		if err != nil {
			return err
		}
		attempts, err := pgx.CollectRows(rows, scanAttempt(nil))
		if err != nil {
			return err
		}
		out = ask.Open(attempts)
		made := func(a reviewer.Attempt) bool { return a.ID == out.Attempt.ID }
		if out.Kind != reviewer.OpenFresh || slices.ContainsFunc(attempts, made) {
			return nil
		}
		a := &out.Attempt
		return tx.QueryRow(ctx, insertAttempt, insertArgs(*a, ask.Lease)).Scan(&a.LeaseUntil, &a.CreatedAt)
	})
	if pg.IsUnique(err, "attempts_one_per_claim") {
		err = reviewer.ErrClosed
	}
	if err != nil {
		return reviewer.Opening{}, fmt.Errorf("open attempt: %w", err)
	}
	return out, nil
}

func insertArgs(a reviewer.Attempt, lease time.Duration) pgx.NamedArgs {
	return pgx.NamedArgs{
		"id": a.ID, "tenant": a.Tenant, "target": a.Target, "lifecycle": a.Lifecycle, "run": a.Run, "ordinal": a.Ordinal,
		"claim": a.Claim, "generation": a.Generation, "base": a.BaseSHA, "head": a.HeadSHA, "merge_base": a.MergeBase,
		"fork": a.Fork, "diff_bytes": a.DiffBytes, "engine": a.Engine, "state": a.State, "reserved": a.Reserved,
		"trace": a.Trace, "lease": lease,
	}
}

// Start begins an attempt: it takes its number, at most limit of the run, and closes the orphans of
// earlier claims on the target. lease is the most that can be left of the claim's, which was proved alive
// since the attempt was opened. Repeated by the same claim it answers as before. It refuses with
// ErrExhausted, ErrEngineRunning, ErrNotOwner or ErrClosed.
func (s *Store) Start(ctx context.Context, a reviewer.Attempt, limit int, lease time.Duration) (reviewer.Attempt, error) {
	var started reviewer.Attempt
	err := s.db.Tenant(ctx, uuid.UUID(a.Tenant), func(tx *pg.Tx) error {
		mine, others, now, err := loadForStart(ctx, tx, a)
		if err != nil {
			return err
		}
		var closed []reviewer.Change
		if started, closed, err = mine.Start(a.Claim, others, limit, lease, now); err != nil || started == mine {
			return err
		}
		b := &pgx.Batch{}
		effects := make([]reviewer.Effects, 0, len(closed))
		for _, c := range closed { // before the start: one engine per target
			queueSave(b, stateOf(others, c.Attempt.ID), c.Attempt)
			effects = append(effects, c.Effects)
		}
		queueSave(b, mine.State, started)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		return s.enqueue(ctx, tx, a.Tenant, effects...)
	})
	if pg.IsUnique(err, "attempts_one_engine") || pg.IsUnique(err, "attempts_number") {
		err = reviewer.ErrEngineRunning // a start that was not there to be locked
	}
	if err != nil {
		return reviewer.Attempt{}, fmt.Errorf("start attempt: %w", err)
	}
	return started, nil
}

func loadForStart(ctx context.Context, tx *pg.Tx, a reviewer.Attempt) (mine reviewer.Attempt, others []reviewer.Attempt, now time.Time, err error) {
	rows, err := tx.Query(ctx, lockForStart, pgx.NamedArgs{"tenant": a.Tenant, "run": a.Run, "target": a.Target})
	if err != nil {
		return mine, nil, now, err
	}
	all, err := pgx.CollectRows(rows, scanAttempt(&now))
	if err != nil {
		return mine, nil, now, err
	}
	i := slices.IndexFunc(all, func(o reviewer.Attempt) bool { return o.ID == a.ID })
	if i < 0 {
		return mine, nil, now, reviewer.ErrNotFound
	}
	return all[i], slices.Delete(slices.Clone(all), i, i+1), now, nil
}

func stateOf(attempts []reviewer.Attempt, id reviewer.AttemptID) reviewer.State {
	for _, a := range attempts {
		if a.ID == id {
			return a.State
		}
	}
	return ""
}

// Keep notes that an open attempt's claim was renewed for lease from now: until then it is no orphan.
// An attempt that has ended meanwhile is ErrClosed: its worker must stop.
func (s *Store) Keep(ctx context.Context, a reviewer.Attempt, lease time.Duration) error {
	kept := int64(0)
	b := &pg.Batch{}
	b.Queue(keepAttempt, pgx.NamedArgs{"tenant": a.Tenant, "id": a.ID, "claim": a.Claim, "lease": lease}).Exec(countInto(&kept))
	if err := s.db.TenantBatch(ctx, uuid.UUID(a.Tenant), b); err != nil {
		return fmt.Errorf("keep attempt: %w", err)
	}
	if kept == 0 {
		return fmt.Errorf("keep attempt: %w", reviewer.ErrClosed)
	}
	return nil
}
