package outbox

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

// metrics of one dispatcher. The gauges report the last count of watch, so that a scrape asks no database.
type metrics struct {
	dispatched metric.Int64Counter

	mu     sync.Mutex
	counts []count
}

// registerMetrics announces the dispatcher's instruments; stop takes the gauges back.
func (d *Dispatcher) registerMetrics() (stop func(), err error) {
	m := &d.metrics
	m.dispatched, err = d.meter.Int64Counter("fenceline.outbox.dispatched",
		metric.WithDescription("messages by destination and outcome of a send"), metric.WithUnit("{message}"))
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	depth, err1 := d.meter.Int64ObservableGauge("fenceline.outbox.depth",
		metric.WithDescription("messages neither dispatched nor parked"), metric.WithUnit("{message}"))
	age, err2 := d.meter.Float64ObservableGauge("fenceline.outbox.oldest_age",
		metric.WithDescription("time since the oldest pending message was due"), metric.WithUnit("s"))
	stale, err3 := d.meter.Int64ObservableGauge("fenceline.outbox.stale",
		metric.WithDescription("pending messages that are due for longer than the alert allows"), metric.WithUnit("{message}"))
	parked, err4 := d.meter.Int64ObservableGauge("fenceline.outbox.parked",
		metric.WithDescription("messages that wait for an operator"), metric.WithUnit("{message}"))
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	reg, err := d.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, g := range m.gauges(d.destinations) {
			attrs := metric.WithAttributes(obs.Destination(g.destination))
			o.ObserveInt64(depth, g.messages, attrs)
			o.ObserveFloat64(age, g.oldest.Seconds(), attrs)
			o.ObserveInt64(stale, g.stale, attrs)
			o.ObserveInt64(parked, g.parked, attrs)
		}
		return nil
	}, depth, age, stale, parked)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return func() { _ = reg.Unregister() }, nil // it only fails where nothing is registered
}

func (m *metrics) count(ctx context.Context, destination string, outcome Outcome) {
	m.dispatched.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(
		obs.Destination(destination), obs.Outcome(string(outcome)))))
}

func (m *metrics) set(counts []count) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts = counts
}

// gauge is all of one destination.
type gauge struct {
	count
	parked int64
}

// gauges folds the last counts by destination; one that holds nothing reports zero.
func (m *metrics) gauges(destinations []string) []gauge {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fold(m.counts, destinations)
}

func fold(counts []count, destinations []string) []gauge {
	var out []gauge
	at := map[string]int{}
	place := func(destination string) *gauge {
		i, ok := at[destination]
		if !ok {
			i = len(out)
			at[destination] = i
			out = append(out, gauge{count: count{destination: destination}})
		}
		return &out[i]
	}
	for _, destination := range destinations {
		place(destination)
	}
	for _, c := range counts {
		g := place(c.destination)
		if c.reason != "" {
			g.parked += c.messages
			continue
		}
		g.count = c
	}
	return out
}
