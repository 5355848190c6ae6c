// Package store keeps the reviewer's attempts in Postgres: every exported method is one transaction.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// Store is the reviewer's door to Postgres.
type Store struct {
	db  *pg.DB
	out *outbox.Outbox
}

// New returns a store that sends through the outbox.
func New(db *pg.DB, out *outbox.Outbox) *Store { return &Store{db: db, out: out} }

// transition is a pure rule applied to the attempt that was locked. It may run again after a
// serialization failure, so it keeps no state.
type transition func(a reviewer.Attempt, now time.Time) (reviewer.Attempt, reviewer.Effects, error)

// change locks an attempt, decides and saves. extra are statements that belong to the change, queued
// only where there is one.
func (s *Store) change(ctx context.Context, tenant reviewer.TenantID, id reviewer.AttemptID, decide transition, extra func(*pgx.Batch)) (reviewer.Attempt, error) {
	var after reviewer.Attempt
	err := s.db.Tenant(ctx, uuid.UUID(tenant), func(tx *pg.Tx) error {
		before, now, err := lock(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		var e reviewer.Effects
		if after, e, err = decide(before, now); err != nil || after == before {
			return err
		}
		b := &pgx.Batch{}
		queueSave(b, before.State, after)
		if extra != nil {
			extra(b)
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return fmt.Errorf("save attempt: %w", err)
		}
		return s.enqueue(ctx, tx, tenant, e)
	})
	return after, err
}

func lock(ctx context.Context, tx *pg.Tx, tenant reviewer.TenantID, id reviewer.AttemptID) (reviewer.Attempt, time.Time, error) {
	rows, err := tx.Query(ctx, lockAttempt, pgx.NamedArgs{"tenant": tenant, "id": id})
	if err != nil {
		return reviewer.Attempt{}, time.Time{}, err
	}
	var now time.Time
	a, err := pgx.CollectExactlyOneRow(rows, scanAttempt(&now))
	if errors.Is(err, pgx.ErrNoRows) {
		return reviewer.Attempt{}, time.Time{}, reviewer.ErrNotFound
	}
	return a, now, err
}

// queueSave writes the attempt over the state that it was decided on. That state's row is locked, so
// that no row here means a fault of this package.
func queueSave(b *pgx.Batch, was reviewer.State, a reviewer.Attempt) {
	b.Queue(saveAttempt, pgx.NamedArgs{
		"tenant": a.Tenant, "id": a.ID, "claim": a.Claim, "was": was, "number": a.Number, "state": a.State,
		"cost": a.Cost, "estimate": a.Estimate, "verdict": a.Result.Verdict, "errors": a.Result.Counts.Errors,
		"warnings": a.Result.Counts.Warnings, "infos": a.Result.Counts.Infos,
		"seen_files": a.Seen.Files, "seen_bytes": a.Seen.DiffBytes, "reason": a.Reason,
		"lease_until": a.LeaseUntil, "started_at": timeOrNull(a.StartedAt), "ended_at": timeOrNull(a.EndedAt),
	}).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != 1 {
			return fmt.Errorf("compare-and-swap of attempt %s from %s found %d rows", a.ID, was, tag.RowsAffected())
		}
		return nil
	})
}

// scanAttempt reads a row of columns and, where now is not nil, the clock after them.
func scanAttempt(now *time.Time) pgx.RowToFunc[reviewer.Attempt] {
	return func(row pgx.CollectableRow) (reviewer.Attempt, error) {
		var a reviewer.Attempt
		var started, ended *time.Time
		into := []any{
			&a.ID, &a.Tenant, &a.Target, &a.Lifecycle, &a.Run, &a.Ordinal, &a.Claim, &a.Generation,
			&a.BaseSHA, &a.HeadSHA, &a.MergeBase, &a.Fork, &a.DiffBytes, &a.Engine,
			&a.Number, &a.State, &a.Reserved, &a.Cost, &a.Estimate, &a.Result.Verdict,
			&a.Result.Counts.Errors, &a.Result.Counts.Warnings, &a.Result.Counts.Infos,
			&a.Seen.Files, &a.Seen.DiffBytes, &a.Reason, &a.Trace, &a.LeaseUntil, &a.CreatedAt, &started, &ended,
		}
		if now != nil {
			into = append(into, now)
		}
		err := row.Scan(into...)
		if started != nil {
			a.StartedAt = *started
		}
		if ended != nil {
			a.EndedAt = *ended
		}
		return a, err
	}
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
