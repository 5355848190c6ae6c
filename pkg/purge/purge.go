// Package purge removes what is past its retention: in batches small enough that nothing waits for them,
// each a transaction of its own, so that any number of replicas may do it and be killed in it.
package purge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

// Settings are what an operator may turn, the same for every kind of row.
type Settings struct {
	Every time.Duration `env:"PURGE_EVERY" envDefault:"10m" doc:"how often rows past their retention are looked for; jittered"`
	Batch int           `env:"PURGE_BATCH" envDefault:"500" doc:"most rows that one transaction of the purge removes, 1 to 10000"`
	Pause time.Duration `env:"PURGE_PAUSE" envDefault:"100ms" doc:"between two batches of the purge, which leaves the database to others"`
}

// Validate names every value that cannot work.
func (s Settings) Validate() error {
	var errs []error
	if s.Every <= 0 {
		errs = append(errs, fmt.Errorf("PURGE_EVERY is %s: it must be above zero", s.Every))
	}
	if s.Batch < 1 || s.Batch > 10_000 {
		errs = append(errs, fmt.Errorf("PURGE_BATCH is %d: it must be between 1 and 10000", s.Batch))
	}
	if s.Pause < 0 {
		errs = append(errs, fmt.Errorf("PURGE_PAUSE is %s: it can't be negative", s.Pause))
	}
	return errors.Join(errs...)
}

// Kind is one kind of row with its retention.
type Kind struct {
	Name      string        // as the metric tells it: "deliveries"
	Retention time.Duration // how long the rows are kept; 0: for ever
	Most      int           // of one batch, where rows are heavier than others; 0: the setting's
	// Remove removes up to limit rows older than age in one transaction, by the database's clock, and
	// leaves out what somebody else holds. Fewer than limit: there are no more.
	Remove func(ctx context.Context, age time.Duration, limit int) (int, error)
}

// Purger walks the kinds of one service.
type Purger struct {
	settings Settings
	kinds    []Kind
	log      *slog.Logger
	removed  metric.Int64Counter
	failing  map[string]bool
}

const scope = "github.com/fenceline-dev/fenceline/pkg/purge"

// New returns a purger that does nothing until Run. Kinds that are kept for ever are never looked for.
func New(s Settings, log *slog.Logger, meter metric.MeterProvider, kinds ...Kind) (*Purger, error) {
	removed, err := meter.Meter(scope).Int64Counter("fenceline.purge.removed",
		metric.WithDescription("rows removed past their retention, by kind"), metric.WithUnit("{row}"))
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	p := &Purger{settings: s, log: log, removed: removed, failing: map[string]bool{}}
	for _, k := range kinds {
		if k.Retention > 0 {
			p.kinds = append(p.kinds, k)
		}
	}
	return p, nil
}

// Run purges until ctx ends. The first pass comes after a part of the interval, so that replicas that
// start together don't purge in step. A kind that fails is told once, and tried again with the next pass.
func (p *Purger) Run(ctx context.Context) error {
	for wait := rand.N(p.settings.Every); ; wait = p.settings.Every - rand.N(p.settings.Every/4+1) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		for _, k := range p.kinds {
			p.purge(ctx, k)
		}
	}
}

func (p *Purger) purge(ctx context.Context, k Kind) {
	total, err := p.drain(obs.Quiet(ctx), k)
	if total > 0 {
		p.log.InfoContext(ctx, "removed rows past their retention", "kind", k.Name, "rows", total, "retention", k.Retention.String())
	}
	if err != nil && !p.failing[k.Name] && ctx.Err() == nil {
		p.log.WarnContext(ctx, "purge failed; trying again", "kind", k.Name, "err", err)
	}
	p.failing[k.Name] = err != nil
}

// drain removes batch after batch until one is not full.
func (p *Purger) drain(ctx context.Context, k Kind) (total int, err error) {
	limit := p.settings.Batch
	if k.Most > 0 {
		limit = min(limit, k.Most)
	}
	for ctx.Err() == nil {
		n, err := k.Remove(ctx, k.Retention, limit)
		if err != nil {
			return total, err
		}
		if n > 0 {
			total += n
			p.removed.Add(ctx, int64(n), metric.WithAttributes(attribute.String("kind", k.Name)))
		}
		if n < limit {
			return total, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(p.settings.Pause):
		}
	}
	return total, nil
}
