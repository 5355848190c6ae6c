package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/boot"
	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
)

// Config is everything that can be set of the ledger.
type Config struct {
	DB    pg.Config        `envPrefix:"LEDGER_"`
	RPC   rpc.ServerConfig `envPrefix:"LEDGER_"`
	Debug boot.DebugConfig `envPrefix:"LEDGER_"`
	Purge purge.Settings   `envPrefix:"LEDGER_"`
	Obs   obs.Config

	OpeningGrant int64         `env:"LEDGER_OPENING_GRANT_MICROS" envDefault:"100000000" doc:"micro-units that a new account opens with; 0: nothing"`
	SweepAfter   time.Duration `env:"LEDGER_SWEEP_AFTER" envDefault:"2h" doc:"age at which an open reservation is settled as an estimate; longer than any attempt and its reaper take"`
	Tombstones   time.Duration `env:"LEDGER_RETENTION_TOMBSTONES" envDefault:"2160h" doc:"how long it is kept that an attempt was closed before it was held, longer than its Reserve can be late; 0: for ever"`
	SweepEvery   time.Duration `env:"LEDGER_SWEEP_EVERY" envDefault:"1m" doc:"how often forgotten reservations are looked for"`
}

// Load reads and validates the configuration; every problem is reported at once.
func Load(env map[string]string) (Config, error) { return config.Load[Config](env) }

// Validate reports every value out of its bounds, by its variable's name.
func (c Config) Validate() error {
	var errs []error
	if c.OpeningGrant < 0 {
		errs = append(errs, fmt.Errorf("LEDGER_OPENING_GRANT_MICROS is %d: it can't be negative", c.OpeningGrant))
	}
	if c.SweepAfter <= 0 {
		errs = append(errs, fmt.Errorf("LEDGER_SWEEP_AFTER is %s: it must be above zero", c.SweepAfter))
	}
	if c.Tombstones != 0 && c.Tombstones < time.Hour {
		errs = append(errs, fmt.Errorf("LEDGER_RETENTION_TOMBSTONES is %s: it must be 0, for ever, or at least 1h", c.Tombstones))
	}
	if c.SweepEvery <= 0 {
		errs = append(errs, fmt.Errorf("LEDGER_SWEEP_EVERY is %s: it must be above zero", c.SweepEvery))
	}
	return errors.Join(errs...)
}
