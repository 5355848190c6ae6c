package worker

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// Metrics count what became of intents and writes.
type Metrics struct {
	ended    metric.Int64Counter
	writes   metric.Float64Histogram
	pauses   metric.Int64Counter
	extras   metric.Int64Counter
	healed   metric.Int64Counter
	bisected metric.Int64Counter
	resolved metric.Int64Counter
}

// NewMetrics registers the instruments; depth is asked at each scrape.
func NewMetrics(m metric.Meter, depth func(context.Context) (int64, time.Duration, error)) (*Metrics, error) {
	var errs [9]error
	out := &Metrics{}
	out.ended, errs[0] = m.Int64Counter("fenceline.publisher.intents.ended", metric.WithDescription("Intents that ended, by surface, kind and outcome"))
	out.writes, errs[1] = m.Float64Histogram("fenceline.publisher.write.duration", metric.WithUnit("s"), metric.WithDescription("Writes to GitHub, by surface, operation and outcome"))
	out.pauses, errs[2] = m.Int64Counter("fenceline.publisher.pauses", metric.WithDescription("Installations paused, by reason"))
	out.extras, errs[3] = m.Int64Counter("fenceline.publisher.duplicates", metric.WithDescription("Outputs found beside the one of their surface"))
	out.healed, errs[6] = m.Int64Counter("fenceline.publisher.healed", metric.WithDescription("Outputs that were set right after the fact, by surface and what was wrong: duplicate, outdated"))
	out.bisected, errs[7] = m.Int64Counter("fenceline.publisher.reviews.bisected", metric.WithDescription("Reviews that GitHub refused for one of their comments, tried again by halves"))
	out.resolved, errs[8] = m.Int64Counter("fenceline.publisher.remarks.resolved", metric.WithDescription("Inline comments marked as fixed"))
	open, err := m.Int64ObservableGauge("fenceline.publisher.intents.open", metric.WithDescription("Intents that have not ended"))
	errs[4] = err
	oldest, err := m.Float64ObservableGauge("fenceline.publisher.intents.oldest", metric.WithUnit("s"), metric.WithDescription("Age of the oldest intent that has not ended"))
	errs[5] = err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	_, err = m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		n, age, err := depth(ctx)
		if err != nil {
			return err
		}
		o.ObserveInt64(open, n)
		o.ObserveFloat64(oldest, age.Seconds())
		return nil
	}, open, oldest)
	return out, err
}

func (m *Metrics) intentEnded(ctx context.Context, i publisher.Intent) {
	outcome := i.Reason
	if i.State == publisher.StateConfirmed {
		outcome = "confirmed"
	}
	m.ended.Add(ctx, 1, metric.WithAttributes(attribute.String("surface", string(i.Ref.Kind)),
		attribute.String("kind", string(i.Kind)), attribute.String("outcome", outcome)))
}

func (m *Metrics) write(ctx context.Context, i publisher.Intent, op publisher.Op, took time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = publisher.FailureOf(err).Word()
	}
	m.writes.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("surface", string(i.Ref.Kind)),
		attribute.String("op", string(op)), attribute.String("outcome", outcome)))
}

func (m *Metrics) pause(ctx context.Context, f publisher.Failure) {
	m.pauses.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", f.Word())))
}

func (m *Metrics) duplicates(ctx context.Context, n int) { m.extras.Add(ctx, int64(n)) }

func (m *Metrics) heal(ctx context.Context, kind publisher.SurfaceKind, wrong string) {
	m.healed.Add(ctx, 1, metric.WithAttributes(attribute.String("surface", string(kind)), attribute.String("wrong", wrong)))
}

func (m *Metrics) bisect(ctx context.Context) { m.bisected.Add(ctx, 1) }

func (m *Metrics) resolve(ctx context.Context) { m.resolved.Add(ctx, 1) }
