package ghapp

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// observed are the points of all gauges: "remaining 7 core".
func observed(t *testing.T, reader metric.Reader) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	point := func(name string, set attribute.Set, v float64) {
		i, _ := set.Value("fenceline.github.installation")
		r, _ := set.Value("fenceline.github.resource")
		out[fmt.Sprint(name, " ", i.AsInt64(), " ", r.AsString())] = v
	}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					point(m.Name, p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					point(m.Name, p.Attributes, p.Value)
				}
			}
		}
	}
	return out
}

func TestQuotaIsMeasured(t *testing.T) {
	t.Parallel()
	reset := time.Now().Add(20 * time.Minute)
	h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-RateLimit-Limit", "5000")
		w.Header().Set("X-RateLimit-Remaining", "41")
		w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
		w.Header().Set("X-RateLimit-Resource", r.URL.Query().Get("resource"))
		ok(w, r)
	})
	reader := metric.NewManualReader()
	base, _ := parseBase(h.URL)
	tr, err := newTransport(Config{}, base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.CloseIdleConnections)
	a, err := NewApp(Config{AppID: 7, PrivateKey: testKey(), BaseURL: h.URL},
		Deps{Transport: tr, Meter: metric.NewMeterProvider(metric.WithReader(reader))})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"core", "made-up-1", "made-up-2"} {
		if _, err := a.Client(7).Get(t.Context(), "repositories/1?resource="+name, nil); err != nil {
			t.Fatal(err)
		}
	}
	got := observed(t, reader)
	for name, want := range map[string]float64{"remaining 7 core": 41, "limit 7 core": 5000, "remaining 7 other": 41} {
		if got["fenceline.github.quota."+name] != want {
			t.Errorf("%s is %v, want %v", name, got["fenceline.github.quota."+name], want)
		}
	}
	if left := got["fenceline.github.quota.reset 7 core"]; left < 19*60 || left > 21*60 {
		t.Errorf("%v s until the reset", left)
	}
	if len(got) != 6 {
		t.Errorf("series %v", got)
	}
}

func TestSeriesAreBoundedAndTheScarcestComeFirst(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := &limits{quotas: map[account]Quota{}, latest: map[int64]string{}}
	for i := range int64(1000) {
		l.heard(i, Quota{Limit: 5000, Remaining: int(5000 - i), Reset: now.Add(time.Duration(i%2) * time.Hour), Resource: "core"}, now)
	}
	got := l.series(now)
	if len(got) != quotaSeries || got[0].installation != 999 || got[0].Remaining != 4001 {
		t.Errorf("%d series, first %+v", len(got), got[0])
	}
	if len(l.quotas) != 500 {
		t.Errorf("%d quotas are remembered, want those that are not over", len(l.quotas))
	}
}
