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
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// Config is everything that can be set of the scheduler.
type Config struct {
	DB     pg.Config        `envPrefix:"SCHEDULER_"`
	RPC    rpc.ServerConfig `envPrefix:"SCHEDULER_"`
	Debug  boot.DebugConfig `envPrefix:"SCHEDULER_"`
	Bell   doorbell.Config  `envPrefix:"SCHEDULER_"`
	Outbox outbox.Settings  `envPrefix:"SCHEDULER_"`
	Obs    obs.Config

	Ledger    string `env:"SCHEDULER_LEDGER_ADDR,required" doc:"host:port of the ledger"`
	Publisher string `env:"SCHEDULER_PUBLISHER_ADDR,required" doc:"host:port of the publisher"`
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
	if c.Stream == "" {
		errs = append(errs, errors.New("SCHEDULER_DOORBELL_STREAM is empty"))
	}
	if len(errs) == 0 {
		return c.rules().Validate()
	}
	return errors.Join(errs...)
}

func (c Config) rules() scheduler.Rules {
	r := scheduler.Defaults()
	r.Quiet, r.MaxWait, r.Lease, r.MaxClaim = c.Quiet, c.MaxWait, c.Lease, c.MaxClaim
	r.HintTrust, r.ReadLag, r.LapseBase, r.LapseMax = c.HintTrust, c.ReadLag, c.LapseBase, c.LapseMax
	r.ReleaseWait, r.RetryMax = c.Release, c.RetryMax
	return r
}
