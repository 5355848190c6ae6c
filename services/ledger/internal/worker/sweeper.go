// Package worker closes reservations that everybody else has forgotten.
package worker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/ledger/internal/ledger"
)

// sweepBatch bounds one pass, so that a sweep never holds up reservations for long.
const sweepBatch = 100

type reservations interface {
	StaleReservations(ctx context.Context, age time.Duration, limit int) ([]ledger.Stale, error)
	Settle(ctx context.Context, tenant ledger.TenantID, ask ledger.SettleAsk) (ledger.Change, error)
}

// Sweeper settles, as an estimate, what has been held for longer than any attempt and its reaper take:
// the last resort, so that no money stays held for ever.
type Sweeper struct {
	Store  reservations
	Age    time.Duration
	Every  time.Duration
	Log    *slog.Logger
	Tracer trace.Tracer
}

// Run sweeps until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	for {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "sweep reservations", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.Every + rand.N(s.Every/4)): // jitter, so that replicas don't sweep in step
		}
	}
}

func (s *Sweeper) sweep(ctx context.Context) error {
	stale, err := s.Store.StaleReservations(obs.Quiet(ctx), s.Age, sweepBatch)
	if err != nil {
		return err
	}
	for _, r := range stale {
		if err := s.settle(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sweeper) settle(ctx context.Context, r ledger.Stale) (err error) {
	ctx, span := s.Tracer.Start(ctx, obs.SpanSweep, trace.WithNewRoot(), trace.WithAttributes(
		obs.Tenant(r.Tenant.String()), obs.RunID(r.Run.String()), obs.AttemptID(r.Attempt.String())))
	defer func() { obs.End(span, err) }()
	_, err = s.Store.Settle(ctx, r.Tenant, ledger.SettleAsk{Attempt: r.Attempt, Run: r.Run, Estimate: true, Outcome: "swept"})
	if err == nil {
		s.Log.WarnContext(ctx, "settled a forgotten reservation as an estimate", "tenant", r.Tenant.String(), "attempt", r.Attempt.String())
	}
	return err
}
