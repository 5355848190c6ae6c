package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/boot"
	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// minKey is the shortest key of markers, in bytes.
const minKey = 16

// Config is everything that can be set of the publisher.
type Config struct {
	DB     pg.Config        `envPrefix:"PUBLISHER_"`
	RPC    rpc.ServerConfig `envPrefix:"PUBLISHER_"`
	Debug  boot.DebugConfig `envPrefix:"PUBLISHER_"`
	GitHub ghapp.Config     `envPrefix:"PUBLISHER_GITHUB_"`
	Outbox outbox.Settings  `envPrefix:"PUBLISHER_"`
	Purge  purge.Settings   `envPrefix:"PUBLISHER_"`
	Obs    obs.Config

	SchedulerAddr string `env:"PUBLISHER_SCHEDULER_ADDR,required" doc:"host:port of the scheduler"`
	ReviewerAddr  string `env:"PUBLISHER_REVIEWER_ADDR,required" doc:"host:port of the reviewer"`

	MarkerKey    config.Secret `env:"PUBLISHER_MARKER_KEY,required" doc:"key of the markers in posted bodies, at least 16 bytes"`
	MarkerKeyOld config.Secret `env:"PUBLISHER_MARKER_KEY_PREVIOUS" doc:"the key before this one: its markers are still found"`
	CheckName    string        `env:"PUBLISHER_CHECK_NAME" envDefault:"Fenceline" doc:"name of the check runs; another name makes other check runs"`
	Lease        time.Duration `env:"PUBLISHER_LEASE" envDefault:"60s" doc:"how long one replica sends for an installation before it claims again"`
	Grace        time.Duration `env:"PUBLISHER_GRACE" envDefault:"15s" doc:"how long an unanswered write may still take effect; longer than GITHUB_TIMEOUT and WRITE_SPACING together"`
	WriteSpacing time.Duration `env:"PUBLISHER_WRITE_SPACING" envDefault:"1s" doc:"between two writes of one installation, as GitHub advises"`
	HoldMax      time.Duration `env:"PUBLISHER_HOLD_MAX" envDefault:"30s" doc:"longest pause before the scheduler is asked again whether an epoch is current"`
	RetryMax     time.Duration `env:"PUBLISHER_RETRY_MAX" envDefault:"5m" doc:"longest pause between tries while GitHub or a service does not answer"`
	Poll         time.Duration `env:"PUBLISHER_POLL" envDefault:"5s" doc:"how often due intents are looked for without a wakeup"`
	Outdated     time.Duration `env:"PUBLISHER_RETENTION_EPOCHS" envDefault:"2160h" doc:"how long what a page said is kept once it says something else, at least 1h; what it says last goes with its lifecycle: SCHEDULER_RETENTION_LIFECYCLE; 0: all until then"`
	Senders      int           `env:"PUBLISHER_SENDERS" envDefault:"4" doc:"installations that one replica sends for at a time"`
}

// Load reads and validates the configuration; every problem is reported at once.
func Load(env map[string]string) (Config, error) { return config.Load[Config](env) }

// Validate reports every value out of its bounds, by its variable's name.
func (c Config) Validate() error {
	errs := parts(map[string]error{
		"PUBLISHER_": errors.Join(c.DB.Validate(), c.RPC.Validate(), c.Outbox.Validate(), c.Purge.Validate()), "PUBLISHER_GITHUB_": c.GitHub.Validate(),
	})
	if len(c.MarkerKey.Reveal()) < minKey {
		errs = append(errs, fmt.Errorf("PUBLISHER_MARKER_KEY is shorter than %d bytes", minKey))
	}
	if !c.MarkerKeyOld.Empty() && len(c.MarkerKeyOld.Reveal()) < minKey {
		errs = append(errs, fmt.Errorf("PUBLISHER_MARKER_KEY_PREVIOUS is shorter than %d bytes", minKey))
	}
	if c.CheckName == "" || len(c.CheckName) > 100 {
		errs = append(errs, errors.New("PUBLISHER_CHECK_NAME must have between 1 and 100 bytes"))
	}
	for name, d := range map[string]time.Duration{"LEASE": c.Lease, "GRACE": c.Grace, "HOLD_MAX": c.HoldMax, "RETRY_MAX": c.RetryMax, "POLL": c.Poll} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("PUBLISHER_%s is %s: it must be above zero", name, d))
		}
	}
	if c.Outdated != 0 && c.Outdated < time.Hour {
		errs = append(errs, fmt.Errorf("PUBLISHER_RETENTION_EPOCHS is %s: it must be 0 or at least 1h", c.Outdated))
	}
	if c.WriteSpacing < 0 {
		errs = append(errs, fmt.Errorf("PUBLISHER_WRITE_SPACING is %s: it can't be negative", c.WriteSpacing))
	}
	if c.Grace <= c.GitHub.Timeout+c.WriteSpacing {
		errs = append(errs, fmt.Errorf("PUBLISHER_GRACE is %s: it must be longer than PUBLISHER_GITHUB_TIMEOUT and PUBLISHER_WRITE_SPACING together", c.Grace))
	}
	if c.Lease <= c.GitHub.Timeout+c.Grace {
		errs = append(errs, fmt.Errorf("PUBLISHER_LEASE is %s: it must be longer than PUBLISHER_GITHUB_TIMEOUT and PUBLISHER_GRACE together", c.Lease))
	}
	if c.Senders < 1 || c.Senders > 100 {
		errs = append(errs, fmt.Errorf("PUBLISHER_SENDERS is %d: it must be between 1 and 100", c.Senders))
	}
	return errors.Join(errs...)
}

// parts names the variables of nested settings, which know them without their prefix.
func parts(nested map[string]error) (named []error) {
	for prefix, err := range nested {
		if many, ok := err.(interface{ Unwrap() []error }); ok { // what Join returns
			for _, one := range many.Unwrap() {
				named = append(named, parts(map[string]error{prefix: one})...)
			}
		} else if err != nil {
			named = append(named, fmt.Errorf("%s%w", prefix, err))
		}
	}
	return named
}

func (c Config) rules() publisher.Rules {
	return publisher.Rules{Grace: c.Grace, HoldMax: c.HoldMax, RetryMax: c.RetryMax}
}

func (c Config) keys() publisher.Keyring {
	keys := publisher.Keyring{[]byte(c.MarkerKey.Reveal())}
	if !c.MarkerKeyOld.Empty() {
		keys = append(keys, []byte(c.MarkerKeyOld.Reveal()))
	}
	return keys
}
