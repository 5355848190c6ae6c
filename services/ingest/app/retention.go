package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/boot"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/store"
)

// RetentionConfig is how long ingest keeps what, and a tenant that has uninstalled.
type RetentionConfig struct {
	Purge      purge.Settings
	Deliveries time.Duration `env:"RETENTION_DELIVERIES" envDefault:"2160h" doc:"how long receipts are known, at least as long as a webhook secret is valid and 168h, as long as GitHub redelivers; 0: for ever"`
	Replays    time.Duration `env:"RETENTION_REPLAYS" envDefault:"2160h" doc:"how long replays and their keys are known, at least as long as receipts; 0: for ever"`
	Requests   time.Duration `env:"RETENTION_REQUESTS" envDefault:"2160h" doc:"how long review requests and their keys are known, at least as long as receipts; 0: for ever"`
	Commands   time.Duration `env:"RETENTION_COMMANDS" envDefault:"2160h" doc:"how long slash commands and re-runs are known once they were carried out, at least as long as receipts; 0: for ever"`
	Missed     time.Duration `env:"RETENTION_MISSED" envDefault:"336h" doc:"how long it is kept what became of a delivery that was missed, at least 168h, as long as GitHub's log may show it; 0: for ever"`
	Erasures   time.Duration `env:"RETENTION_ERASURES" envDefault:"8760h" doc:"how long it is kept that a tenant was erased; 0: for ever"`
	Grace      time.Duration `env:"ERASURE_GRACE" envDefault:"720h" doc:"how long after its last installation was deleted a tenant is erased in all services; 0: never"`

	Ledger   string `env:"LEDGER_ADDR,required" doc:"host:port of the ledger, which is told of tenants to erase"`
	Reviewer string `env:"REVIEWER_ADDR,required" doc:"host:port of the reviewer, which is told of tenants to erase"`
}

// redelivery is how long the slower of GitHub's products redelivers.
const redelivery = 7 * 24 * time.Hour

// Validate reports every value out of its bounds, by its variable's name.
func (c RetentionConfig) Validate() error {
	var errs []error
	if c.Deliveries != 0 && c.Deliveries < redelivery {
		errs = append(errs, fmt.Errorf("RETENTION_DELIVERIES is %s: it must be 0, for ever, or at least %s", c.Deliveries, redelivery))
	}
	if c.Missed != 0 && c.Missed < redelivery {
		errs = append(errs, fmt.Errorf("RETENTION_MISSED is %s: it must be 0, for ever, or at least %s", c.Missed, redelivery))
	}
	for _, k := range []struct {
		name string
		kept time.Duration
	}{{"REPLAYS", c.Replays}, {"REQUESTS", c.Requests}, {"COMMANDS", c.Commands}} {
		if k.kept != 0 && (c.Deliveries == 0 || k.kept < c.Deliveries) {
			errs = append(errs, fmt.Errorf("RETENTION_%s is %s: it must be 0, for ever, or at least RETENTION_DELIVERIES, whose repetition it has to know", k.name, k.kept))
		}
	}
	if c.Erasures < 0 {
		errs = append(errs, fmt.Errorf("RETENTION_ERASURES is %s: it can't be negative", c.Erasures))
	}
	if c.Grace < 0 {
		errs = append(errs, fmt.Errorf("ERASURE_GRACE is %s: it can't be negative", c.Grace))
	}
	return errors.Join(errs...)
}

// purger removes what is past its retention, and erases tenants that have uninstalled.
func purger(cfg Config, p *boot.Process, s *store.Store, box *outbox.Outbox, db *pg.DB) (*purge.Purger, error) {
	r := cfg.Retention
	kinds := s.Kinds(store.Retention{
		Deliveries: r.Deliveries, Replays: r.Replays, Requests: r.Requests, Commands: r.Commands,
		Missed: r.Missed, Erasures: r.Erasures,
	})
	return purge.New(r.Purge, p.Log, p.Meter, append(kinds, s.Erasures(r.Grace), box.Retention(db, cfg.Outbox))...)
}
