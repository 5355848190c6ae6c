package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/boot"
	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/doorbell"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/store"
)

// Config is everything that can be set of the scheduler.
type Config struct {
	DB     pg.Config        `envPrefix:"SCHEDULER_"`
	RPC    rpc.ServerConfig `envPrefix:"SCHEDULER_"`
	Debug  boot.DebugConfig `envPrefix:"SCHEDULER_"`
	Bell   doorbell.Config  `envPrefix:"SCHEDULER_"`
	Outbox outbox.Settings  `envPrefix:"SCHEDULER_"`
	Purge  purge.Settings   `envPrefix:"SCHEDULER_"`
	Obs    obs.Config

	Ledger    string `env:"SCHEDULER_LEDGER_ADDR,required" doc:"host:port of the ledger"`
	Publisher string `env:"SCHEDULER_PUBLISHER_ADDR,required" doc:"host:port of the publisher"`
	Reviewer  string `env:"SCHEDULER_REVIEWER_ADDR,required" doc:"host:port of the reviewer, which is told when a lifecycle ends"`
	Stream    string `env:"SCHEDULER_DOORBELL_STREAM" envDefault:"reviews" doc:"Redis stream that wakes the reviewers"`

	Quiet     time.Duration `env:"SCHEDULER_QUIET" envDefault:"30s" doc:"how long a pull request must be quiet before it is reviewed"`
	MaxWait   time.Duration `env:"SCHEDULER_MAX_WAIT" envDefault:"5m" doc:"longest that activity may push a review back"`
	Lease     time.Duration `env:"SCHEDULER_LEASE" envDefault:"60s" doc:"what a claim and each renewal grant"`
	MaxClaim  time.Duration `env:"SCHEDULER_MAX_CLAIM" envDefault:"15m" doc:"all leases of one claim together, at most 1h"`
	HintTrust time.Duration `env:"SCHEDULER_HINT_TRUST" envDefault:"2m" doc:"how long a payload is believed over an older read"`
	ReadLag   time.Duration `env:"SCHEDULER_READ_LAG" envDefault:"5s" doc:"pause before a lagging read is tried again"`
	LapseBase time.Duration `env:"SCHEDULER_LAPSE_PAUSE" envDefault:"1m" doc:"pause after a lapsed claim; four times that after each further one"`
	LapseMax  time.Duration `env:"SCHEDULER_LAPSE_PAUSE_MAX" envDefault:"1h" doc:"longest pause after a lapsed claim"`
	Release   time.Duration `env:"SCHEDULER_RELEASE_PAUSE" envDefault:"10s" doc:"pause after a release that names none"`
	RetryMax  time.Duration `env:"SCHEDULER_RETRY_MAX" envDefault:"1h" doc:"longest pause that a release or an empty budget may ask for"`

	Lifecycle  time.Duration `env:"SCHEDULER_RETENTION_LIFECYCLE" envDefault:"2160h" doc:"how long a pull request must be at rest before its lifecycle ends: runs, attempts, findings, epochs, intents and accounting go, and the same comparison may be reviewed again; 0: never"`
	Activities time.Duration `env:"SCHEDULER_RETENTION_ACTIVITIES" envDefault:"2160h" doc:"how long activities are known, so that one that comes again is recorded once, at least 1h; 0: for ever"`
	Decisions  time.Duration `env:"SCHEDULER_RETENTION_DECISIONS" envDefault:"2160h" doc:"how long decisions are kept, which explain what happened, at least 1h; 0: for ever"`
	Pauses     time.Duration `env:"SCHEDULER_RETENTION_PAUSES" envDefault:"24h" doc:"how long pauses are kept once they have ended, at least 1h; 0: for ever"`
}

// Load reads and validates the configuration; every problem is reported at once.
func Load(env map[string]string) (Config, error) { return config.Load[Config](env) }

// longestClaim is what the database's own constraint allows.
const longestClaim = time.Hour

// Validate reports every value out of its bounds, by its variable's name.
func (c Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"QUIET", c.Quiet},
		{"MAX_WAIT", c.MaxWait},
		{"LEASE", c.Lease},
		{"MAX_CLAIM", c.MaxClaim},
		{"HINT_TRUST", c.HintTrust},
		{"READ_LAG", c.ReadLag},
		{"LAPSE_PAUSE", c.LapseBase},
		{"LAPSE_PAUSE_MAX", c.LapseMax},
		{"RELEASE_PAUSE", c.Release},
		{"RETRY_MAX", c.RetryMax},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("SCHEDULER_%s is %s: it must be above zero", d.name, d.value))
		}
	}
	for _, p := range []struct {
		long, short string
		is, least   time.Duration
	}{
		{"MAX_WAIT", "QUIET", c.MaxWait, c.Quiet},
		{"MAX_CLAIM", "LEASE", c.MaxClaim, c.Lease},
		{"LAPSE_PAUSE_MAX", "LAPSE_PAUSE", c.LapseMax, c.LapseBase},
	} {
		if p.is > 0 && p.is < p.least {
			errs = append(errs, fmt.Errorf("SCHEDULER_%s is %s: it can't be shorter than SCHEDULER_%s, %s", p.long, p.is, p.short, p.least))
		}
	}
	if c.MaxClaim > longestClaim {
		errs = append(errs, fmt.Errorf("SCHEDULER_MAX_CLAIM is %s: it must be at most %s", c.MaxClaim, longestClaim))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"ACTIVITIES", c.Activities}, {"DECISIONS", c.Decisions}, {"PAUSES", c.Pauses}} {
		if d.value != 0 && d.value < time.Hour {
			errs = append(errs, fmt.Errorf("SCHEDULER_RETENTION_%s is %s: it must be 0, for ever, or at least 1h", d.name, d.value))
		}
	}
	if c.Lifecycle < 0 {
		errs = append(errs, fmt.Errorf("SCHEDULER_RETENTION_LIFECYCLE is %s: it can't be negative", c.Lifecycle))
	}
	if c.Stream == "" {
		errs = append(errs, errors.New("SCHEDULER_DOORBELL_STREAM is empty"))
	}
	if len(errs) == 0 {
		return c.rules().Validate()
	}
	return errors.Join(errs...)
}

func (c Config) retention() store.Retention {
	return store.Retention{Activities: c.Activities, Decisions: c.Decisions, Pauses: c.Pauses}
}

func (c Config) rules() scheduler.Rules {
	r := scheduler.Defaults()
	r.Quiet, r.MaxWait, r.Lease, r.MaxClaim = c.Quiet, c.MaxWait, c.Lease, c.MaxClaim
	r.HintTrust, r.ReadLag, r.LapseBase, r.LapseMax = c.HintTrust, c.ReadLag, c.LapseBase, c.LapseMax
	r.ReleaseWait, r.RetryMax = c.Release, c.RetryMax
	return r
}
