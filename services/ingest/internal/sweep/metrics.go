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
	for i, q := range []struct {
		depth       Depth
		name, means string
	}{
		{missed, "fenceline.ingest.missed.waiting", "Missed deliveries that are waited for"},
		{due, "fenceline.ingest.sweep.due", "Projects whose listing is due"},
	} {
		errs[4+i] = queue(m, q.depth, q.name, q.means)
	}
	return out, errors.Join(errs[:]...)
}

func queue(m metric.Meter, depth Depth, name, means string) error {
	n, err1 := m.Int64ObservableGauge(name, metric.WithDescription(means))
	age, err2 := m.Float64ObservableGauge(name+".oldest", metric.WithUnit("s"), metric.WithDescription("Age of the oldest of them"))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
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
