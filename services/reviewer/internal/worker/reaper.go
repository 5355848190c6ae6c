package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// reapBatch bounds one pass.
const reapBatch = 100

// Reaper closes attempts whose claims' leases have surely passed, where no next claim on the target did.
type Reaper struct {
	Orphans Orphans
	Margin  time.Duration // beyond the lease
	Every   time.Duration // between passes, jittered
	Log     *slog.Logger
	Tracer  trace.Tracer
	Metrics *Metrics
}

// Run reaps until ctx ends.
func (r *Reaper) Run(ctx context.Context) error {
	failing := false
	for {
		err := r.pass(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			r.Log.ErrorContext(ctx, "reap attempts; trying again", "err", err)
		}
		failing = err != nil
		if !pause(ctx, r.Every) {
			return nil
		}
	}
}

func (r *Reaper) pass(ctx context.Context) error {
	orphans, err := r.Orphans.Orphans(obs.Quiet(ctx), r.Margin, reapBatch)
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range orphans {
		errs = append(errs, r.reap(ctx, o))
	}
	return errors.Join(errs...)
}

func (r *Reaper) reap(ctx context.Context, o reviewer.Orphan) (err error) {
	ctx, span := r.Tracer.Start(obs.Extract(ctx, o.Trace), obs.SpanReap, trace.WithAttributes(
		obs.Tenant(o.Tenant.String()), obs.AttemptID(o.Attempt.String())))
	defer func() { obs.End(span, err) }()
	a, err := r.Orphans.Reap(ctx, o, r.Margin)
	if errors.Is(err, reviewer.ErrLeaseLives) {
		return nil // renewed while it was looked at
	}
	if err != nil {
		return err
	}
	span.SetAttributes(obs.RunID(a.Run.String()), obs.Outcome(string(a.State)))
	if a.State == reviewer.StateExpired || a.State == reviewer.StateVoided {
		r.Metrics.attempt(ctx, string(a.State), a.Engine)
		r.Metrics.spent(ctx, a.Engine, a.Cost)
		r.Log.WarnContext(ctx, "closed an orphaned attempt", "attempt", o.Attempt.String(), "state", string(a.State))
	}
	return nil
}
