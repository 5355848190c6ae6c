package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// Attempt reads one attempt with what it left out; ErrNotFound where the tenant has none such.
func (s *Store) Attempt(ctx context.Context, tenant reviewer.TenantID, id reviewer.AttemptID) (reviewer.Attempt, []reviewer.Omission, error) {
	var a reviewer.Attempt
	var left []reviewer.Omission
	b := &pg.Batch{}
	b.Queue(getAttempt, pgx.NamedArgs{"tenant": tenant, "id": id}).Query(func(rows pgx.Rows) (err error) {
		a, err = pgx.CollectExactlyOneRow(rows, scanAttempt(nil))
		return err
	})
	queueOmissions(b, tenant, id, &left)
	err := s.db.TenantBatch(ctx, uuid.UUID(tenant), b)
	if errors.Is(err, pgx.ErrNoRows) {
		err = reviewer.ErrNotFound
	}
	if err != nil {
		return reviewer.Attempt{}, nil, fmt.Errorf("read attempt: %w", err)
	}
	return a, left, nil
}

// Attempts reads up to limit attempts before the cursor, newest first; run and target narrow, nil is
// any.
func (s *Store) Attempts(ctx context.Context, tenant reviewer.TenantID, of reviewer.AttemptFilter, before reviewer.AttemptCursor, limit int) ([]reviewer.Attempt, error) {
	var attempts []reviewer.Attempt
	err := s.db.Tenant(ctx, uuid.UUID(tenant), func(tx *pg.Tx) error {
		rows, err := tx.Query(ctx, listAttempts, pgx.NamedArgs{
			"tenant": tenant, "run": of.Run, "target": of.Target, "before": before.CreatedAt, "before_id": before.ID, "limit": limit,
		})
		if err != nil {
			return err
		}
		attempts, err = pgx.CollectRows(rows, scanAttempt(nil))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list attempts: %w", err)
	}
	return attempts, nil
}

// Findings reads up to limit findings of an attempt above a sequence, in order; and, with the first
// page, what the attempt saw and what it left out. ErrNotFound where the tenant has no such attempt.
func (s *Store) Findings(ctx context.Context, tenant reviewer.TenantID, id reviewer.AttemptID, after, limit int) (reviewer.Listing, error) {
	var out reviewer.Listing
	b := &pg.Batch{}
	if after == 0 {
		b.Queue(getSeen, pgx.NamedArgs{"tenant": tenant, "attempt": id}).Query(func(rows pgx.Rows) (err error) {
			out.Seen, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[reviewer.Seen])
			return err
		})
		queueOmissions(b, tenant, id, &out.Omissions)
	}
	b.Queue(listFindings, pgx.NamedArgs{"tenant": tenant, "attempt": id, "after": after, "limit": limit}).Query(func(rows pgx.Rows) (err error) {
		out.Findings, err = pgx.CollectRows(rows, pgx.RowToStructByPos[reviewer.Finding])
		return err
	})
	err := s.db.TenantBatch(ctx, uuid.UUID(tenant), b)
	if errors.Is(err, pgx.ErrNoRows) {
		err = reviewer.ErrNotFound
	}
	if err != nil {
		return reviewer.Listing{}, fmt.Errorf("list findings: %w", err)
	}
	return out, nil
}

func queueOmissions(b *pg.Batch, tenant reviewer.TenantID, id reviewer.AttemptID, into *[]reviewer.Omission) {
	b.Queue(listOmissions, pgx.NamedArgs{"tenant": tenant, "attempt": id}).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[reviewer.Omission])
		return err
	})
}

// Depth returns how many attempts are open, and for how long the oldest has been. It serves the
// metrics, for all tenants.
func (s *Store) Depth(ctx context.Context) (int64, time.Duration, error) {
	var n int64
	var age time.Duration
	err := s.db.System(ctx, func(tx *pg.Tx) error {
		return tx.QueryRow(ctx, depth).Scan(&n, &age)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count open attempts: %w", err)
	}
	return n, age, nil
}
