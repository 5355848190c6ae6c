package outbox

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

// Stale messages raise one line per set and a gauge, whatever keeps them.
func TestStaleAlert(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	reader := metric.NewManualReader()
	j := &journal{}
	d := e.dispatcher(newReceiver(nil), rare(), func(c *DispatcherConfig) {
		c.Destinations, c.Log = []string{void}, j.logger() // nobody serves settle
		c.Meter = metric.NewMeterProvider(metric.WithReader(reader))
	})
	mustRegister(t, d)
	alerts := staleAlerts{}
	look := func() {
		t.Helper()
		if err := d.look(t.Context(), alerts); err != nil {
			t.Fatal(err)
		}
	}
	e.enqueue(t, many(settle, 2)...)
	look()
	if j.count("messages are stale") != 0 {
		t.Error("fresh messages are no alert")
	}
	e.admin(t, "UPDATE scheduler.outbox SET not_before = not_before - interval '61 seconds'")
	look()
	look()
	if j.count("messages are stale") != 1 {
		t.Errorf("%d lines", j.count("messages are stale"))
	}
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"fenceline.outbox.stale": 2, "fenceline.outbox.depth": 2, "fenceline.outbox.parked": 0} {
		if got := counted(rm, name, attribute.NewSet(obs.Destination(settle))); got != want {
			t.Errorf("%s = %d, want %d", name, got, want)
		}
	}
}

// counted returns the sum of a counter with exactly these attributes, or a gauge's value.
func counted(rm metricdata.ResourceMetrics, name string, attrs attribute.Set) int64 {
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			var points []metricdata.DataPoint[int64]
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				points = data.DataPoints
			case metricdata.Gauge[int64]:
				points = data.DataPoints
			}
			for _, p := range points {
				if m.Name == name && p.Attributes.Equals(&attrs) {
					return p.Value
				}
			}
		}
	}
	return -1
}
