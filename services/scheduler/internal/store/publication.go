package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// CheckCurrent says whether an epoch, or a run's progress, may be sent now; with Wait, when a pause ends. One
// round trip.
func (s *Store) CheckCurrent(ctx context.Context, tenant scheduler.TenantID, target scheduler.TargetID, c scheduler.Check) (scheduler.Currency, time.Time, string, error) {
	var read loaded
	var pauses []scheduler.Pause
	named := pgx.NamedArgs{"tenant": tenant, "target": target}
	b := &pg.Batch{}
	b.Queue(getTarget, named).Query(func(rows pgx.Rows) (err error) {
		read, err = pgx.CollectExactlyOneRow(rows, scanLoaded)
		return err
	})
	b.Queue(targetPauses, named).Query(func(rows pgx.Rows) (err error) {
		pauses, err = pgx.CollectRows(rows, scanPause)
		return err
	})
	err := s.db.TenantBatch(ctx, uuid.UUID(tenant), b)
	if errors.Is(err, pgx.ErrNoRows) {
		err = scheduler.ErrNotFound
	}
	if err != nil {
		return "", time.Time{}, "", fmt.Errorf("check current: %w", err)
	}
	currency, until := read.CheckCurrent(c, pauses, read.now)
	reason := ""
	if p, held := scheduler.Paused(pauses, read.Target, read.now); held && currency == scheduler.Wait {
		reason = p.Reason
	}
	return currency, until, reason, nil
}

// RecordPublication stores how an epoch's delivery ended, and a pause that the publisher asks for.
// Idempotent: an older epoch changes nothing.
func (s *Store) RecordPublication(ctx context.Context, tenant scheduler.TenantID, target scheduler.TargetID, p scheduler.Publication, pause *scheduler.Pause) error {
	if pause != nil {
		if err := s.pauseTarget(ctx, tenant, target, *pause); err != nil {
			return fmt.Errorf("record publication: %w", err)
		}
	}
	err := s.tenant(ctx, tenant, func(tx *pg.Tx) error {
		l, runs, err := load(ctx, tx, tenant, target, "")
		if err != nil {
			return err
		}
		t, e := l.RecordPublication(p, runIn(runs, l.Page.Run), l.now)
		if unchanged(l.Target, t, e) {
			return nil
		}
		return s.save(ctx, tx, t, e, write{sql: saveTarget})
	})
	if errors.Is(err, scheduler.ErrNotFound) {
		return nil // its target is gone: there is nothing left to tell
	}
	if err != nil {
		return fmt.Errorf("record publication: %w", err)
	}
	return nil
}

func scanPause(row pgx.CollectableRow) (scheduler.Pause, error) {
	var p scheduler.Pause
	err := row.Scan(optionalID(&p.ID), &p.Scope, &p.Host, &p.Installation, optionalID(&p.Project), optionalID(&p.Target),
		&p.Cause, &p.Reason, moment{&p.Until})
	return p, err
}
