package store

import (
	"context"
	"fmt"
	"time"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// Resolve says what to do with a reading. A refusal of the fence is returned as its error, after the
// claim that was refused has been ended.
func (s *Store) Resolve(ctx context.Context, tenant scheduler.TenantID, f scheduler.Fence, in scheduler.Reading) (scheduler.Resolution, scheduler.Fence, error) {
	var res scheduler.Resolution
	next := f
	fresh := scheduler.RunID(newID())
	err := s.fenced(ctx, tenant, f, in.Head, func(l loaded, known []scheduler.Run) (scheduler.Target, scheduler.Effects, write, error) {
		t, r, e, err := s.rules.Resolve(l.Target, f, in, known, fresh, l.now)
		res, next = r, f
		next.Run = t.Claim.Run
		return t, e, via(l.Target, t, e, f, r.Refused), err
	})
	if err == nil {
		err = res.Refused
	}
	if err != nil {
		return scheduler.Resolution{}, scheduler.Fence{}, fmt.Errorf("resolve run: %w", err)
	}
	return res, next, nil
}

// Commit ends a claim by its run's outcome. A refusal of the fence is returned as its error, after the
// claim that was refused has been ended.
func (s *Store) Commit(ctx context.Context, tenant scheduler.TenantID, f scheduler.Fence, o scheduler.Outcome) (scheduler.Commitment, error) {
	var c scheduler.Commitment
	err := s.fenced(ctx, tenant, f, "", func(l loaded, known []scheduler.Run) (scheduler.Target, scheduler.Effects, write, error) {
		t, done, e, err := s.rules.Commit(l.Target, f, runIn(known, f.Run), o, l.now)
		c = done
		return t, e, via(l.Target, t, e, f, done.Refused), err
	})
	if err == nil {
		err = c.Refused
	}
	if err != nil {
		return scheduler.Commitment{}, fmt.Errorf("commit result: %w", err)
	}
	return c, nil
}

// Release gives a claim back. A pause that the worker found necessary is set first, in a transaction of
// its own: it holds whatever the fence says.
func (s *Store) Release(ctx context.Context, tenant scheduler.TenantID, f scheduler.Fence, why scheduler.ReleaseReason, detail string, retryAfter time.Duration, pause *scheduler.Pause) error {
	if pause != nil {
		if err := s.pauseTarget(ctx, tenant, f.Target, *pause); err != nil {
			return fmt.Errorf("release target: %w", err)
		}
	}
	var refused error
	err := s.fenced(ctx, tenant, f, "", func(l loaded, _ []scheduler.Run) (scheduler.Target, scheduler.Effects, write, error) {
		t, e, verdict := s.rules.Release(l.Target, f, why, detail, retryAfter, l.now)
		refused = verdict
		return t, e, via(l.Target, t, e, f, verdict), nil
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return fmt.Errorf("release target: %w", err)
	}
	return nil
}

func runIn(known []scheduler.Run, id scheduler.RunID) scheduler.Run {
	for _, r := range known {
		if r.ID == id {
			return r
		}
	}
	return scheduler.Run{}
}
