package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/boot"
	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/doorbell"
	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine/builtin"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/github"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/worker"
)

// Config is everything that can be set of the reviewer.
type Config struct {
	DB     pg.Config        `envPrefix:"REVIEWER_"`
	RPC    rpc.ServerConfig `envPrefix:"REVIEWER_"`
	Debug  boot.DebugConfig `envPrefix:"REVIEWER_"`
	Bell   doorbell.Config  `envPrefix:"REVIEWER_"`
	GitHub ghapp.Config     `envPrefix:"REVIEWER_GITHUB_"`
	Outbox outbox.Settings  `envPrefix:"REVIEWER_"`
	Purge  purge.Settings   `envPrefix:"REVIEWER_"`
	Obs    obs.Config

	Scheduler string `env:"REVIEWER_SCHEDULER_ADDR,required" doc:"host:port of the scheduler"`
	Ledger    string `env:"REVIEWER_LEDGER_ADDR,required" doc:"host:port of the ledger"`
	Stream    string `env:"REVIEWER_DOORBELL_STREAM" envDefault:"reviews" doc:"Redis stream that wakes this pool, as the scheduler names it"`

	Slots    int           `env:"REVIEWER_SLOTS" envDefault:"4" doc:"reviews under way at once, 1 to 100"`
	Scan     time.Duration `env:"REVIEWER_SCAN" envDefault:"30s" doc:"how often due targets are looked for without a ring; jittered"`
	Renew    time.Duration `env:"REVIEWER_RENEW" envDefault:"15s" doc:"between renewals of a claim's lease; a quarter of the lease if that is less"`
	Attempts int           `env:"REVIEWER_ATTEMPTS" envDefault:"3" doc:"engine calls of one run before it is refused, 1 to 100"`
	Grace    time.Duration `env:"REVIEWER_STOP_GRACE" envDefault:"10s" doc:"how long a stop waits for engine calls under way before it cuts them off"`

	EngineTimeout time.Duration `env:"REVIEWER_ENGINE_TIMEOUT" envDefault:"5m" doc:"longest engine call"`
	EngineBytes   int           `env:"REVIEWER_ENGINE_MAX_BYTES" envDefault:"4194304" doc:"bytes of diff that an engine looks at in one review, and that money is held for at most; the rest is left out, and said so"`
	MaxFindings   int           `env:"REVIEWER_MAX_FINDINGS" envDefault:"300" doc:"findings kept of one review, the gravest first; at most 1000"`
	PricePerKiB   int64         `env:"REVIEWER_BUILTIN_PRICE_MICROS" envDefault:"1000" doc:"price of the built-in engine in micro-units per started KiB of diff"`

	Uncounted time.Duration `env:"REVIEWER_RETENTION_ATTEMPTS" envDefault:"2160h" doc:"how long attempts are kept that were voided or cancelled, at least 1h; others, and what they found, go with their lifecycle: SCHEDULER_RETENTION_LIFECYCLE; 0: until then"`

	ReapEvery  time.Duration `env:"REVIEWER_REAP_EVERY" envDefault:"30s" doc:"how often attempts of dead workers are looked for; jittered"`
	ReapMargin time.Duration `env:"REVIEWER_REAP_MARGIN" envDefault:"15s" doc:"how long after its lease an open attempt counts as orphaned"`
}

// Load reads and validates the configuration; every problem is reported at once.
func Load(env map[string]string) (Config, error) { return config.Load[Config](env) }

// Validate reports every value out of its bounds, by its variable's name.
func (c Config) Validate() error {
	var errs []error
	for name, d := range map[string]time.Duration{
		"SCAN": c.Scan, "RENEW": c.Renew, "ENGINE_TIMEOUT": c.EngineTimeout, "REAP_EVERY": c.ReapEvery, "REAP_MARGIN": c.ReapMargin,
	} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("REVIEWER_%s is %s: it must be above zero", name, d))
		}
	}
	for name, n := range map[string][3]int{
		"SLOTS": {c.Slots, 1, 100}, "ATTEMPTS": {c.Attempts, 1, 100}, "MAX_FINDINGS": {c.MaxFindings, 1, 1000},
		"ENGINE_MAX_BYTES": {c.EngineBytes, 1 << 10, 64 << 20},
	} {
		if n[0] < n[1] || n[0] > n[2] {
			errs = append(errs, fmt.Errorf("REVIEWER_%s is %d: it must be between %d and %d", name, n[0], n[1], n[2]))
		}
	}
	if c.Uncounted != 0 && c.Uncounted < time.Hour {
		errs = append(errs, fmt.Errorf("REVIEWER_RETENTION_ATTEMPTS is %s: it must be 0 or at least 1h", c.Uncounted))
	}
	if c.Grace < 0 {
		errs = append(errs, fmt.Errorf("REVIEWER_STOP_GRACE is %s: it can't be negative", c.Grace))
	}
	if c.PricePerKiB <= 0 || c.PricePerKiB > 1e9 {
		errs = append(errs, fmt.Errorf("REVIEWER_BUILTIN_PRICE_MICROS is %d: it must be between 1 and 1000000000", c.PricePerKiB))
	}
	if c.Stream == "" {
		errs = append(errs, errors.New("REVIEWER_DOORBELL_STREAM is empty"))
	}
	return errors.Join(errs...)
}

func (c Config) engineLimits() builtin.Limits {
	l := builtin.DefaultLimits()
	l.DiffBytes, l.Findings = c.EngineBytes, c.MaxFindings
	return l
}

// reads keeps some more of a comparison than the engine looks at: it chooses, and leaves out whole files.
func (c Config) reads() github.Limits {
	l := github.DefaultLimits()
	l.PatchBytes = c.EngineBytes + patchSlack
	return l
}

const patchSlack = 8 << 20

func (c Config) worker() worker.Settings {
	return worker.Settings{
		MaxAttempts: c.Attempts, EngineTimeout: c.EngineTimeout, MaxFindings: c.MaxFindings, Renew: c.Renew, Call: callTimeout,
	}
}

// callTimeout bounds one call of another service under a claim: several fit into a lease.
const callTimeout = 5 * time.Second
