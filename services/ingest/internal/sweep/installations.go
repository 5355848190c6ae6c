package sweep

import (
	"context"
	"errors"
	"log/slog"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Reach lists what an installation reaches.
type Reach interface {
	Repositories(ctx context.Context, installation int64, page int) (list []ingest.Repository, next int, err error)
}

// Installing gives out the installations whose listing is due, and enrols what is missing of them.
type Installing interface {
	TakeInstallation(ctx context.Context, host string) (in ingest.SweptInstallation, found bool, err error)
	Reconcile(ctx context.Context, in ingest.SweptInstallation, page []ingest.Repository) (enrolled int, err error)
	LeaveInstallation(ctx context.Context, in ingest.SweptInstallation, end ingest.SweepEnd) error
}

// Installations enrols what installations reach and no event told of.
type Installations struct {
	GitHub  Reach
	Store   Installing
	Set     ProjectSettings
	Slog    *slog.Logger
	Metrics *Metrics

	pace pace
}

// Run sweeps until ctx ends. Any number of replicas may run: an installation has one at a time.
func (s *Installations) Run(ctx context.Context) error {
	s.pace.spacing = s.Set.Spacing
	failing := false
	for {
		worked, err := s.turn(obs.Quiet(ctx))
		if err != nil && !failing && ctx.Err() == nil {
			s.Slog.ErrorContext(ctx, "list installations; trying again", "err", err)
		}
		failing = err != nil
		if worked && err == nil && ctx.Err() == nil {
			continue
		}
		if !pause(ctx, s.Set.Poll, nil) {
			return nil
		}
	}
}

func (s *Installations) turn(ctx context.Context) (worked bool, err error) {
	in, found, err := s.Store.TakeInstallation(ctx, s.Set.Host)
	if err != nil || !found {
		return false, err
	}
	end := ingest.SweepEnd{Next: jitter(s.Set.Every)}
	err = s.list(ctx, in)
	s.Metrics.swept(ctx, "installations", err)
	switch f := ghapp.Classify(err); {
	case err == nil:
	case errors.Is(err, ingest.ErrSweepLost):
		return true, nil // it is due again already, or with its lease
	case f.Class == ghapp.Throttled, f.Class == ghapp.Auth:
		end = waits(max(f.RetryAfter, s.Set.Retry))
		s.Slog.WarnContext(ctx, "installation paused", "installation", in.ID, "reason", f.Reason, "for", end.Pause.String())
	case ctx.Err() != nil:
		end.Next = 0
	default:
		end.Next = jitter(s.Set.Retry)
		s.Slog.WarnContext(ctx, "list repositories of an installation", "err", err, "installation", in.ID)
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	return true, s.Store.LeaveInstallation(within, in, end)
}

func (s *Installations) list(ctx context.Context, in ingest.SweptInstallation) error {
	for page := 1; page > 0; {
		if err := s.pace.wait(ctx); err != nil {
			return err
		}
		list, next, err := s.GitHub.Repositories(ctx, in.ID, page)
		if err != nil {
			return err
		}
		n, err := s.Store.Reconcile(ctx, in, list)
		if err != nil {
			return err
		}
		if n > 0 {
			s.Slog.InfoContext(ctx, "repositories enrolled that no event told of", "repositories", n, "installation", in.ID)
		}
		page = next
	}
	return nil
}
