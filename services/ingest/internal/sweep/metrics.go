package sweep

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

// Metrics count what sweeps found and did.
type Metrics struct {
	sweeps     metric.Int64Counter
	deliveries metric.Int64Counter
	activities metric.Int64Counter
	moves      metric.Int64Counter
}

// Depth counts a queue and tells the age of its oldest.
type Depth func(context.Context) (int64, time.Duration, error)

// NewMetrics registers the instruments; the queues are asked at each scrape.
func NewMetrics(m metric.Meter, missed, due Depth) (*Metrics, error) {
	var errs [8]error
	out := &Metrics{}
	out.sweeps, errs[0] = m.Int64Counter("fenceline.ingest.sweeps", metric.WithDescription("Passes of a sweep, by sweep and outcome"))
	out.deliveries, errs[1] = m.Int64Counter("fenceline.ingest.missed", metric.WithDescription("Missed deliveries, by what was found out or done"))
	out.activities, errs[2] = m.Int64Counter("fenceline.ingest.sweep.activities", metric.WithDescription("Pull requests that a sweep found to differ from what was read"))
	out.moves, errs[3] = m.Int64Counter("fenceline.ingest.sweep.moves", metric.WithDescription("Repositories that were found elsewhere, by where"))
	waiting, err := m.Int64ObservableGauge("fenceline.ingest.missed.waiting", metric.WithDescription("Missed deliveries that are waited for"))
	errs[4] = err
	longest, err := m.Float64ObservableGauge("fenceline.ingest.missed.oldest", metric.WithUnit("s"), metric.WithDescription("Age of the oldest of them"))
	errs[5] = err
	listed, err := m.Int64ObservableGauge("fenceline.ingest.sweep.due", metric.WithDescription("Projects whose listing is due"))
	errs[6] = err
	oldest, err := m.Float64ObservableGauge("fenceline.ingest.sweep.oldest", metric.WithUnit("s"), metric.WithDescription("For how long the oldest of them is"))
	errs[7] = err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return out, errors.Join(watch(m, missed, waiting, longest), watch(m, due, listed, oldest))
}

// watch asks a queue at each scrape.
func watch(m metric.Meter, depth Depth, n metric.Int64ObservableGauge, age metric.Float64ObservableGauge) error {
	_, err := m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		count, oldest, err := depth(obs.Quiet(ctx))
		if err != nil {
			return err
		}
		o.ObserveInt64(n, count)
		o.ObserveFloat64(age, oldest.Seconds())
		return nil
	}, n, age)
	return err
}

func (m *Metrics) swept(ctx context.Context, sweep string, err error) {
	outcome := "done"
	if err != nil {
		outcome = "broken_off"
	}
	m.sweeps.Add(ctx, 1, metric.WithAttributes(attribute.String("sweep", sweep), attribute.String("outcome", outcome)))
}

func (m *Metrics) missed(ctx context.Context, outcome string, n int) {
	if n > 0 {
		m.deliveries.Add(ctx, int64(n), metric.WithAttributes(attribute.String("outcome", outcome)))
	}
}

func (m *Metrics) found(ctx context.Context, n int) { m.activities.Add(ctx, int64(n)) }

func (m *Metrics) moved(ctx context.Context, where string) {
	m.moves.Add(ctx, 1, metric.WithAttributes(attribute.String("where", where)))
}
