package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// GitHub reads repositories and their pull requests.
type GitHub interface {
	Repository(ctx context.Context, installation, repository int64) (ingest.Standing, error)
	OpenPulls(ctx context.Context, installation, repository int64, page int) (list []ingest.PullRequest, next int, err error)
	Pull(ctx context.Context, installation, repository, number int64) (ingest.PullRequest, error)
}

// Locator says where a repository is, whoever's it is now.
type Locator interface {
	InstallationOf(ctx context.Context, repository int64) (ingest.Installed, error)
}

// Targets knows what was last read.
type Targets interface {
	Live(ctx context.Context, tenant ingest.TenantID, project ingest.ProjectID) ([]ingest.Target, error)
}

// Queue gives out the projects whose listing is due; each is held by its claim.
type Queue interface {
	TakeProject(ctx context.Context, host string) (p ingest.SweptProject, found bool, err error)
	LeaveProject(ctx context.Context, p ingest.SweptProject, end ingest.SweepEnd) error
	News() <-chan struct{}
}

// Findings keep and pass on what a listing found. ErrSweepLost where there was news of the project meanwhile.
type Findings interface {
	Seen(ctx context.Context, p ingest.SweptProject, news []ingest.Seen) error
	Refresh(ctx context.Context, p ingest.SweptProject, now ingest.Standing) error
	Resettle(ctx context.Context, p ingest.SweptProject, where ingest.Where, at ingest.Installed) error
}

// ProjectSettings are the times of the sweep over projects.
type ProjectSettings struct {
	Host    string        // whose API is asked
	Every   time.Duration // between listings of one project, jittered
	Spacing time.Duration // between calls of GitHub
	Poll    time.Duration // between looks for a project that is due
	Retry   time.Duration // before a listing that broke off is tried again
}

// errTargets: the scheduler could not say what it read, which is no fault of the project.
var errTargets = errors.New("the scheduler does not answer")

// archivedEvery is how often an archived repository is looked at: its pause lasts for a day.
const archivedEvery = 8 * time.Hour

// Projects sweeps over enrolled projects.
type Projects struct {
	GitHub   GitHub
	Locator  Locator
	Targets  Targets
	Queue    Queue
	Findings Findings
	Set      ProjectSettings
	Slog     *slog.Logger
	Tracer   trace.Tracer
	Metrics  *Metrics

	pace pace
}

// Run sweeps until ctx ends. Any number of replicas may run: a project has one at a time.
func (s *Projects) Run(ctx context.Context) error {
	s.pace.spacing = s.Set.Spacing
	failing := false
	for {
		worked, err := s.turn(obs.Quiet(ctx))
		if err != nil && !failing && ctx.Err() == nil {
			s.Slog.ErrorContext(ctx, "sweep open pull requests; trying again", "err", err)
		}
		failing = err != nil
		if worked && err == nil {
			if ctx.Err() != nil {
				return nil
			}
			continue
		}
		if !pause(ctx, s.Set.Poll, s.Queue.News()) {
			return nil
		}
	}
}

// turn lists one project. What GitHub or the scheduler could not answer puts it off, and is no failure of
// the sweep.
func (s *Projects) turn(ctx context.Context) (worked bool, err error) {
	p, found, err := s.Queue.TakeProject(ctx, s.Set.Host)
	if err != nil || !found {
		return false, err
	}
	end, err := s.list(ctx, p)
	s.Metrics.swept(ctx, "projects", err)
	if errors.Is(err, ingest.ErrSweepLost) {
		return true, nil // it is due again already, or with its lease
	}
	if err != nil {
		end = s.putOff(ctx, p, err)
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	left := s.Queue.LeaveProject(within, p, end)
	if errors.Is(err, errTargets) {
		return true, errors.Join(err, left)
	}
	return true, left
}

// putOff says when a listing that broke off is tried again.
func (s *Projects) putOff(ctx context.Context, p ingest.SweptProject, err error) ingest.SweepEnd {
	f := ghapp.Classify(err)
	if f.Class == ghapp.Throttled || f.Class == ghapp.Auth {
		end := waits(max(f.RetryAfter, s.Set.Retry))
		s.Slog.WarnContext(ctx, "installation paused", "installation", p.InstallationID, "reason", f.Reason, "for", end.Pause.String())
		return end
	}
	switch {
	case ctx.Err() != nil:
		return ingest.SweepEnd{}
	case errors.Is(err, errTargets):
		return ingest.SweepEnd{Next: s.Set.Poll}
	}
	s.Slog.WarnContext(ctx, "list open pull requests", "err", err, "repository_id", p.RepositoryID, "installation", p.InstallationID)
	return ingest.SweepEnd{Next: jitter(s.Set.Retry)}
}

// list compares one project with its targets.
func (s *Projects) list(ctx context.Context, p ingest.SweptProject) (ingest.SweepEnd, error) {
	if p.Contested { // no token is asked for
		return s.locate(ctx, p)
	}
	if err := s.pace.wait(ctx); err != nil {
		return ingest.SweepEnd{}, err
	}
	now, err := s.GitHub.Repository(ctx, p.InstallationID, p.RepositoryID)
	f := ghapp.Classify(err)
	switch {
	case err != nil && f.Class == ghapp.Gone, err == nil && now.Owner.ID != p.Account:
		return s.locate(ctx, p)
	case err != nil:
		return ingest.SweepEnd{}, err
	}
	if err := s.Findings.Refresh(ctx, p, now); err != nil {
		return ingest.SweepEnd{}, err
	}
	p.Repository = now.Name
	if now.Archived {
		return ingest.SweepEnd{Next: jitter(max(s.Set.Every, archivedEvery)), Done: true}, nil
	}
	if err := s.compare(ctx, p); err != nil {
		return ingest.SweepEnd{}, err
	}
	return ingest.SweepEnd{Next: jitter(s.Set.Every), Done: true}, nil
}

// locate asks GitHub where a repository is that its installation does not show.
func (s *Projects) locate(ctx context.Context, p ingest.SweptProject) (ingest.SweepEnd, error) {
	if err := s.pace.wait(ctx); err != nil {
		return ingest.SweepEnd{}, err
	}
	at, err := s.Locator.InstallationOf(ctx, p.RepositoryID)
	found := &at
	if err != nil {
		if ghapp.Classify(err).Class != ghapp.Gone {
			return ingest.SweepEnd{}, err
		}
		found = nil
	}
	where := p.Locate(found)
	if where == ingest.WhereHere && p.Contested {
		return ingest.SweepEnd{Next: s.Set.Every, Done: true}, nil
	}
	if where == ingest.WhereHere {
		return ingest.SweepEnd{Next: jitter(s.Set.Retry), Missed: found == nil}, nil
	}
	ctx, span := s.span(ctx, p)
	err = s.Findings.Resettle(ctx, p, where, at)
	span.SetAttributes(obs.Outcome(string(where)))
	obs.End(span, err)
	s.Metrics.moved(ctx, string(where))
	s.Slog.InfoContext(ctx, "a repository is elsewhere", "where", where, "repository_id", p.RepositoryID, "tenant", p.Tenant.String())
	return ingest.SweepEnd{Next: s.Set.Every, Done: true}, err
}

// compare tells the scheduler what differs from what it last read.
func (s *Projects) compare(ctx context.Context, p ingest.SweptProject) error {
	targets, err := s.Targets.Live(ctx, p.Tenant, p.ID)
	if err != nil {
		return fmt.Errorf("%w: %w", errTargets, err)
	}
	for i := range targets {
		targets[i].Elsewhere = targets[i].Installation != p.InstallationID
	}
	c := ingest.Compare(targets)
	for page := 1; page > 0; {
		if err := s.pace.wait(ctx); err != nil {
			return err
		}
		list, next, err := s.GitHub.OpenPulls(ctx, p.InstallationID, p.RepositoryID, page)
		if err != nil {
			return err
		}
		if err := s.tell(ctx, p, c.Page(list)); err != nil {
			return err
		}
		page = next
	}
	for _, t := range c.Left() {
		if err := s.pace.wait(ctx); err != nil {
			return err
		}
		pr, err := s.GitHub.Pull(ctx, p.InstallationID, p.RepositoryID, t.Number)
		found := err == nil
		if err != nil && ghapp.Classify(err).Class != ghapp.Gone {
			return err
		}
		var news []ingest.Seen
		if seen, is := t.News(pr, found); is {
			news = append(news, seen)
		}
		if err := s.tell(ctx, p, news); err != nil {
			return err
		}
	}
	return nil
}

// tell records what is news, in a trace of its own; without any it renews the claim.
func (s *Projects) tell(ctx context.Context, p ingest.SweptProject, news []ingest.Seen) error {
	if len(news) == 0 {
		return s.Findings.Seen(ctx, p, nil)
	}
	ctx, span := s.span(ctx, p)
	err := s.Findings.Seen(ctx, p, news)
	obs.End(span, err)
	if err == nil {
		s.Metrics.found(ctx, len(news))
	}
	return err
}

func (s *Projects) span(ctx context.Context, p ingest.SweptProject) (context.Context, trace.Span) {
	return s.Tracer.Start(ctx, obs.SpanSweepProject, trace.WithNewRoot(), //nolint:spancheck // the caller ends it
		trace.WithAttributes(obs.Tenant(p.Tenant.String()), obs.ProjectID(p.RepositoryID), obs.InstallationID(p.InstallationID)))
}
