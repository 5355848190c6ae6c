package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/boot"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/github"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/peer"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/store"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/sweep"
)

// SweepConfig is how what was missed is found.
type SweepConfig struct {
	Sweeps        bool          `env:"SWEEPS" envDefault:"true" doc:"look for what no delivery told; false: believe that every delivery comes"`
	Deliveries    time.Duration `env:"SWEEP_DELIVERIES" envDefault:"1m" doc:"between looks at the App's delivery log for failed deliveries; jittered"`
	Projects      time.Duration `env:"SWEEP_PROJECTS" envDefault:"1h" doc:"between listings of the open pull requests of one project; jittered"`
	Installations time.Duration `env:"SWEEP_INSTALLATIONS" envDefault:"24h" doc:"between looks at one installation: whether it is there and suspended, and which repositories it reaches; jittered"`
	Poll          time.Duration `env:"SWEEP_POLL" envDefault:"5s" doc:"between looks for a project or an installation whose look is due"`
	Retry         time.Duration `env:"SWEEP_RETRY" envDefault:"1m" doc:"before a listing that GitHub did not answer is tried again"`
	Spacing       time.Duration `env:"SWEEP_SPACING" envDefault:"250ms" doc:"least time between two calls of GitHub by one sweep of one replica"`

	RedeliverySpacing time.Duration `env:"REDELIVERY_SPACING" envDefault:"1s" doc:"least time between two redeliveries that are asked for; one replica asks at a time"`
	RedeliveryAfter   time.Duration `env:"REDELIVERY_AFTER" envDefault:"1m" doc:"before a failed delivery is asked for again; four times as long after each further try, at most 1h"`
	RedeliveryTries   int           `env:"REDELIVERY_TRIES" envDefault:"5" doc:"how often one failed delivery is asked for again, 1 to 20"`
	RedeliveryWindow  time.Duration `env:"REDELIVERY_WINDOW" envDefault:"72h" doc:"how far back GitHub can deliver again: 3 days, 7 on a GitHub Enterprise Server"`
}

// Validate reports every value out of its bounds, by its variable's name.
func (c SweepConfig) Validate() error {
	var errs []error
	for name, d := range map[string]time.Duration{
		"SWEEP_DELIVERIES": c.Deliveries, "SWEEP_PROJECTS": c.Projects, "SWEEP_INSTALLATIONS": c.Installations, "SWEEP_POLL": c.Poll,
		"SWEEP_RETRY": c.Retry, "REDELIVERY_AFTER": c.RedeliveryAfter, "REDELIVERY_WINDOW": c.RedeliveryWindow,
	} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("%s is %s: it must be above zero", name, d))
		}
	}
	for name, d := range map[string]time.Duration{"SWEEP_SPACING": c.Spacing, "REDELIVERY_SPACING": c.RedeliverySpacing} {
		if d < 0 || d > 10*time.Second {
			errs = append(errs, fmt.Errorf("%s is %s: it must be from 0s to 10s", name, d))
		}
	}
	if c.RedeliveryTries < 1 || c.RedeliveryTries > 20 {
		errs = append(errs, fmt.Errorf("REDELIVERY_TRIES is %d: it must be from 1 to 20", c.RedeliveryTries))
	}
	return errors.Join(errs...)
}

const (
	// logLease is how long a sweep is held without a step: longer than a call of GitHub and the pause before it.
	logLease = 30 * time.Second
	// logOverlap is how far a pass goes back behind the last: an attempt is listed once it has ended, after
	// 10 s, or 30 s on a GitHub Enterprise Server, at the latest.
	logOverlap = 2 * time.Minute
)

// sweeps starts what looks for what was missed.
func sweeps(cfg Config, p *boot.Process, s *store.Store, hub *github.GitHub, targets *peer.Scheduler) error {
	metrics, err := sweep.NewMetrics(p.Meter.Meter(service), s.MissedDepth, s.SweepDepth)
	if err != nil || !cfg.Sweep.Sweeps {
		return err
	}
	c, host, tracer := cfg.Sweep, cfg.hosts()[0], p.Tracer.Tracer(service)
	log := s.LogSweep(host, logLease)
	deliveries := &sweep.Deliveries{
		Log: hub, Holder: log, Passes: log, Missed: log, Slog: p.Log, Tracer: tracer, Metrics: metrics,
		Set: sweep.LogSettings{
			Every: c.Deliveries, Spacing: c.RedeliverySpacing, First: c.RedeliveryAfter, Tries: c.RedeliveryTries,
			Window: c.RedeliveryWindow, Overlap: logOverlap,
		},
	}
	set := sweep.ProjectSettings{Host: host, Every: c.Projects, Spacing: c.Spacing, Poll: c.Poll, Retry: c.Retry}
	projects := &sweep.Projects{
		GitHub: hub, Locator: hub, Targets: targets, Queue: s, Findings: s, Set: set, Slog: p.Log, Tracer: tracer, Metrics: metrics,
	}
	set.Every = c.Installations
	installations := &sweep.Installations{GitHub: hub, Store: s, Standing: s, Set: set, Slog: p.Log, Metrics: metrics}
	p.Go("sweep of deliveries", deliveries.Run)
	p.Go("sweep of projects", projects.Run)
	p.Go("sweep of installations", installations.Run)
	return nil
}
