package benchtest

import (
	"math"
	"testing"
	"time"
)

func result(rates ...int) Result {
	var r Result
	for _, n := range rates {
		r.slices = append(r.slices, Slice{Ops: n, Elapsed: time.Second, Latencies: []time.Duration{time.Second / time.Duration(n)}})
	}
	return r
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

func TestRatios(t *testing.T) {
	t.Parallel()
	fast, base := result(200, 400, 100), result(100, 100, 100)
	if got := fast.Over(base); !near(got.Pooled, 700.0/300) || !near(got.Median, 2) {
		t.Errorf("Over = %v", got)
	}
	if got := fast.OverSeries(base, base); !near(got.Pooled, 2*700.0/300) || !near(got.Median, 4) {
		t.Errorf("OverSeries = %v", got)
	}
	if got := fast.LatencyOver(base, 0.5); !near(got.Pooled, 0.5) || !near(got.Median, 0.5) {
		t.Errorf("LatencyOver = %v", got)
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	var d []time.Duration
	for n := range 100 {
		d = append(d, time.Duration(100-n))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 51, 0.99: 100, 1: 100} {
		if got := quantile(d, q); got != want {
			t.Errorf("quantile %v = %d, want %d", q, got, want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing = %v", got)
	}
}

// A figure misses its aim only where the pooled ratio and the median of the rounds both do.
func TestVerdict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f            Figure
		aim, verdict string
	}{
		{Figure{Ratio: Ratio{1.1, 0.9}, AtLeast: 1}, ">= 1.00", "reached"},
		{Figure{Ratio: Ratio{0.9, 1.1}, AtLeast: 1}, ">= 1.00", "reached"},
		{Figure{Ratio: Ratio{0.9, 0.8}, AtLeast: 1}, ">= 1.00", "missed"},
		{Figure{Ratio: Ratio{1.4, 1.2}, AtMost: 1.3}, "<= 1.30", "reached"},
		{Figure{Ratio: Ratio{1.4, 1.5}, AtMost: 1.3}, "<= 1.30", "missed"},
		{Figure{Ratio: Ratio{1, 1}}, "-", "-"},
	} {
		if aim, verdict := c.f.verdict(); aim != c.aim || verdict != c.verdict {
			t.Errorf("%+v: %s %s, want %s %s", c.f, aim, verdict, c.aim, c.verdict)
		}
	}
}
