package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// SetPause sets a pause and enqueues the ring for its end. The last call for a scope and cause stands.
// tenant is nil for a pause of a host, or of an installation that an operator names without one.
func (s *Store) SetPause(ctx context.Context, tenant *scheduler.TenantID, p scheduler.Pause) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if tenant == nil && (p.Scope == scheduler.ScopeProject || p.Scope == scheduler.ScopeTarget) {
		return fmt.Errorf("%w: a pause of one %s needs its tenant", scheduler.ErrInvalidPause, p.Scope)
	}
	err := s.db.System(ctx, func(tx *pg.Tx) error { return s.setPause(ctx, tx, tenant, p) })
	if err != nil {
		return fmt.Errorf("set pause: %w", err)
	}
	return nil
}

// ClearPause ends a pause before its time, and rings: what it held up may be due.
func (s *Store) ClearPause(ctx context.Context, p scheduler.Pause) error {
	err := s.db.System(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, clearPause, pauseArgs(nil, p)); err != nil {
			return err
		}
		return s.outbox.Enqueue(ctx, tx, outbox.Message{Destination: s.bell, Key: "unpause:" + newID().String()})
	})
	if err != nil {
		return fmt.Errorf("clear pause: %w", err)
	}
	return nil
}

// pauseTarget sets a pause that a worker or the publisher found necessary for a target's host,
// installation or project.
func (s *Store) pauseTarget(ctx context.Context, tenant scheduler.TenantID, target scheduler.TargetID, p scheduler.Pause) error {
	return s.db.System(ctx, func(tx *pg.Tx) error {
		l, err := lockOne(ctx, tx, getTarget, pgx.NamedArgs{"tenant": tenant, "target": target})
		if err != nil {
			return err
		}
		return s.setPause(ctx, tx, &tenant, p.For(l.Target))
	})
}

// Pauses lists the pauses that hold now, by ascending id, after the given one.
func (s *Store) Pauses(ctx context.Context, f scheduler.PauseFilter, limit int) ([]scheduler.PauseRow, error) {
	var found []scheduler.PauseRow
	named := pgx.NamedArgs{"tenant": f.Tenant, "host": f.Host, "installation_id": f.Installation, "after": f.After, "limit": limit}
	err := s.as(ctx, f.Tenant, func(tx *pg.Tx) error {
		rows, err := tx.Query(ctx, listPauses, named)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scanPauseRow)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list pauses: %w", err)
	}
	return found, nil
}

// Held reads the pause that holds a target up now, nil where none does.
func (s *Store) Held(ctx context.Context, tenant scheduler.TenantID, target scheduler.TargetID) (*scheduler.PauseRow, error) {
	var held *scheduler.PauseRow
	err := s.tenant(ctx, tenant, func(tx *pg.Tx) error {
		rows, err := tx.Query(ctx, holdingPause, pgx.NamedArgs{"tenant": tenant, "target": target})
		if err != nil {
			return err
		}
		p, err := pgx.CollectExactlyOneRow(rows, scanPauseRow)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		held = &p
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read pause: %w", err)
	}
	return held, nil
}

func scanPauseRow(row pgx.CollectableRow) (scheduler.PauseRow, error) {
	var p scheduler.PauseRow
	err := row.Scan(&p.ID, &p.Scope, &p.Host, &p.Installation, optionalID(&p.Project), optionalID(&p.Target),
		&p.Cause, &p.Reason, moment{&p.Until}, optionalID(&p.Tenant), &p.SetAt)
	return p, err
}

func (s *Store) setPause(ctx context.Context, tx *pg.Tx, tenant *scheduler.TenantID, p scheduler.Pause) error {
	return s.setPauseHeard(ctx, tx, tenant, p, time.Time{})
}

// setPauseHeard sets a pause that was recorded at a time, unless a later word stands.
func (s *Store) setPauseHeard(ctx context.Context, tx *pg.Tx, tenant *scheduler.TenantID, p scheduler.Pause, heard time.Time) error {
	p.ID = scheduler.PauseID(newID())
	tag, err := tx.Exec(ctx, setPause, heardArgs(tenant, p, heard))
	if err != nil || tag.RowsAffected() == 0 || p.Until.IsZero() {
		return err
	}
	return s.outbox.Enqueue(ctx, tx, outbox.Message{Destination: s.bell, Key: "pause:" + p.ID.String(), NotBefore: p.Until})
}

func pauseArgs(tenant *scheduler.TenantID, p scheduler.Pause) pgx.NamedArgs {
	var owner *uuid.UUID
	if tenant != nil && p.Scope != scheduler.ScopeHost {
		owner = pointer(*tenant)
	}
	return pgx.NamedArgs{
		"id": p.ID, "tenant": owner, "scope": p.Scope, "host": p.Host, "installation_id": p.Installation,
		"project_id": optionalID(&p.Project), "target_id": optionalID(&p.Target), "cause": p.Cause,
		"reason": p.Reason, "until": moment{&p.Until},
	}
}

func heardArgs(tenant *scheduler.TenantID, p scheduler.Pause, heard time.Time) pgx.NamedArgs {
	args := pauseArgs(tenant, p)
	args["heard"] = moment{&heard}
	return args
}

// endPause ends a pause by a word that was recorded at a time, unless a later one stands.
func (s *Store) endPause(ctx context.Context, tx *pg.Tx, tenant *scheduler.TenantID, p scheduler.Pause, heard time.Time) error {
	if heard.IsZero() {
		_, err := tx.Exec(ctx, clearPause, pauseArgs(tenant, p))
		return err
	}
	p.ID = scheduler.PauseID(newID())
	_, err := tx.Exec(ctx, endPause, heardArgs(tenant, p, heard))
	return err
}

// RecordIntegration applies a change of an installation: messages come in any order, so each is
// idempotent, of two about one pause the later one stands, and a suspension's pause ends by itself unless refused
// tokens renew it.
func (s *Store) RecordIntegration(ctx context.Context, tenant scheduler.TenantID, c scheduler.IntegrationChange) error {
	err := s.db.System(ctx, func(tx *pg.Tx) error {
		now, err := clock(ctx, tx)
		if err != nil {
			return err
		}
		set, clear := c.Pauses(now)
		for _, p := range set {
			if err := s.setPauseHeard(ctx, tx, &tenant, p, c.Recorded); err != nil {
				return err
			}
		}
		for _, p := range clear {
			if err := s.endPause(ctx, tx, &tenant, p, c.Recorded); err != nil {
				return err
			}
		}
		if c.Kind == scheduler.ChangeRenamed {
			_, err := tx.Exec(ctx, renameTargets, pgx.NamedArgs{"tenant": tenant, "projects": c.Projects, "repository": c.FullName})
			return err
		}
		if len(clear) == 0 {
			return nil
		}
		return s.outbox.Enqueue(ctx, tx, outbox.Message{Destination: s.bell, Key: "unpause:" + string(c.Event)})
	})
	if err == nil && c.Kind == scheduler.ChangeGone {
		err = s.depart(ctx, tenant, c)
	}
	if err != nil {
		return fmt.Errorf("record integration: %w", err)
	}
	return nil
}
