package command

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Metrics count what became of commands.
type Metrics struct{ count metric.Int64Counter }

// NewMetrics registers the instruments; pending is asked at each scrape.
func NewMetrics(m metric.Meter, pending func(context.Context) (int64, time.Duration, error)) (*Metrics, error) {
	count, err1 := m.Int64Counter("fenceline.ingest.commands.ended", metric.WithDescription("Commands that ended, by source, verb and reason"))
	open, err2 := m.Int64ObservableGauge("fenceline.ingest.commands.pending", metric.WithDescription("Commands that wait"))
	oldest, err3 := m.Float64ObservableGauge("fenceline.ingest.commands.oldest", metric.WithUnit("s"), metric.WithDescription("Age of the oldest command that waits"))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	_, err := m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		n, age, err := pending(ctx)
		if err != nil {
			return err
		}
		o.ObserveInt64(open, n)
		o.ObserveFloat64(oldest, age.Seconds())
		return nil
	}, open, oldest)
	return &Metrics{count: count}, err
}

func (m *Metrics) ended(ctx context.Context, c ingest.Command, o ingest.Outcome) {
	m.count.Add(ctx, 1, metric.WithAttributes(attribute.String("source", string(c.Source)),
		attribute.String("verb", string(c.Verb)), attribute.String("outcome", string(o.Result)), attribute.String("reason", o.Reason)))
}
