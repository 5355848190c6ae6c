package sweep

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Reach says how an installation stands, and lists what it reaches.
type Reach interface {
	Installation(ctx context.Context, installation int64) (ingest.InstallationNow, error)
	Repositories(ctx context.Context, installation int64, page int) (list []ingest.Repository, next int, err error)
}

// Standing keeps how installations stand. FollowInstallation says whether one is to be listed.
type Standing interface {
	FollowInstallation(ctx context.Context, in ingest.SweptInstallation, now ingest.InstallationNow) (lists bool, err error)
	MissInstallation(ctx context.Context, in ingest.SweptInstallation) (lost, fresh bool, err error)
}

// Installing gives out the installations whose look is due, and enrols what is missing of them.
type Installing interface {
	TakeInstallation(ctx context.Context, host string) (in ingest.SweptInstallation, found bool, err error)
	Reconcile(ctx context.Context, in ingest.SweptInstallation, page []ingest.Repository) (enrolled int, err error)
	LeaveInstallation(ctx context.Context, in ingest.SweptInstallation, end ingest.SweepEnd) error
}

// suspendedEvery is how often a suspended installation is looked at: its projects are not listed meanwhile.
const suspendedEvery = time.Hour

// Installations finds what no event told of: that an installation was suspended, that this has ended, that it is there
// no more; and enrols what it reaches. How it stands is asked as the App itself: one that was uninstalled or suspended is
// asked for no token.
type Installations struct {
	GitHub   Reach
	Store    Installing
	Standing Standing
	Set      ProjectSettings
	Slog     *slog.Logger
	Metrics  *Metrics

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
	next, err := s.look(ctx, in)
	end := ingest.SweepEnd{Next: next}
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

// look takes over how an installation stands, and lists it where there is something to list.
func (s *Installations) look(ctx context.Context, in ingest.SweptInstallation) (next time.Duration, err error) {
	if err := s.pace.wait(ctx); err != nil {
		return 0, err
	}
	now, err := s.GitHub.Installation(ctx, in.ID)
	if err != nil && ghapp.Classify(err).Class == ghapp.Gone {
		return s.miss(ctx, in)
	}
	if err != nil {
		return 0, err
	}
	lists, err := s.Standing.FollowInstallation(ctx, in, now)
	switch {
	case err != nil:
		return 0, err
	case now.Suspended:
		return jitter(min(s.Set.Every, suspendedEvery)), nil
	case !lists:
		return jitter(s.Set.Every), nil
	}
	return jitter(s.Set.Every), s.list(ctx, in)
}

func (s *Installations) miss(ctx context.Context, in ingest.SweptInstallation) (next time.Duration, err error) {
	lost, fresh, err := s.Standing.MissInstallation(ctx, in)
	if fresh {
		s.Slog.WarnContext(ctx, "an installation is there no more, and no event told so", "alert", "installation_lost", "installation", in.ID, "tenant", in.Tenant.String())
	}
	if !lost {
		return jitter(s.Set.Retry), err
	}
	return jitter(s.Set.Every), err
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
