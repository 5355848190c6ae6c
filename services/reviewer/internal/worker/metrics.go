package worker

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// Metrics count what became of claims and attempts.
type Metrics struct {
	claims      metric.Int64Counter
	attempts    metric.Int64Counter
	rejections  metric.Int64Counter
	unannounced metric.Int64Counter
	spend       metric.Int64Counter
	calls       metric.Float64Histogram
}

// NewMetrics registers the instruments; depth, which may be nil, is asked at each scrape for the number
// of open attempts and the age of the oldest.
func NewMetrics(m metric.Meter, depth func(context.Context) (int64, time.Duration, error)) (*Metrics, error) {
	var errs [8]error
	out := &Metrics{}
	out.claims, errs[0] = m.Int64Counter("fenceline.reviewer.claims", metric.WithDescription("Claims that ended, by outcome"))
	out.attempts, errs[1] = m.Int64Counter("fenceline.reviewer.attempts", metric.WithDescription("Attempts that ended or were taken over, by outcome"))
	out.rejections, errs[2] = m.Int64Counter("fenceline.reviewer.fence.rejections", metric.WithDescription("Claims lost to a fence, by its reason"))
	out.unannounced, errs[3] = m.Int64Counter("fenceline.reviewer.unannounced", metric.WithDescription("Due targets that the scan found and no ring announced"))
	out.spend, errs[4] = m.Int64Counter("fenceline.reviewer.spend", metric.WithUnit("{micro}"), metric.WithDescription("Cost of ended attempts in micro-units of the currency, as first settled"))
	out.calls, errs[5] = m.Float64Histogram("fenceline.reviewer.engine.duration", metric.WithUnit("s"), metric.WithDescription("Engine calls, by outcome"))
	open, err := m.Int64ObservableGauge("fenceline.reviewer.attempts.open", metric.WithDescription("Attempts that have not ended"))
	errs[6] = err
	oldest, err := m.Float64ObservableGauge("fenceline.reviewer.attempts.oldest", metric.WithUnit("s"), metric.WithDescription("Age of the oldest attempt that has not ended"))
	errs[7] = err
	if err := errors.Join(errs[:]...); err != nil || depth == nil {
		return out, err
	}
	_, err = m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		n, age, err := depth(obs.Quiet(ctx))
		if err != nil {
			return err
		}
		o.ObserveInt64(open, n)
		o.ObserveFloat64(oldest, age.Seconds())
		return nil
	}, open, oldest)
	return out, err
}

func (m *Metrics) claimEnded(ctx context.Context, outcome string) {
	m.claims.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}

func (m *Metrics) attempt(ctx context.Context, outcome, engine string) {
	m.attempts.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome), attribute.String("engine", engine)))
}

func (m *Metrics) fenced(ctx context.Context, reason string) {
	m.rejections.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", reason)))
}

// Found counts due targets that the scan found and no ring announced.
func (m *Metrics) Found(ctx context.Context, n int) { m.unannounced.Add(ctx, int64(n)) }

func (m *Metrics) spent(ctx context.Context, engine string, cost reviewer.Micros) {
	if cost > 0 {
		m.spend.Add(ctx, int64(cost), metric.WithAttributes(attribute.String("engine", engine)))
	}
}

func (m *Metrics) engineCall(ctx context.Context, engine string, took time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = failure(err)
	}
	m.calls.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("outcome", outcome), attribute.String("engine", engine)))
}
