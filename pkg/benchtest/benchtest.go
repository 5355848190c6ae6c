// Package benchtest compares ways of doing one thing within one run: in short slices that take turns, so
// that whatever else the machine does falls on all of them, and as ratios, which such noise moves least.
package benchtest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	// MinRounds is how often each variant runs at least; -benchtime=20x asks for more.
	MinRounds = 8
	// SliceTime is how long a slice of clients lasts.
	SliceTime = 400 * time.Millisecond
)

// Slice is what one turn of a variant brought.
type Slice struct {
	Ops       int
	Elapsed   time.Duration
	Latencies []time.Duration // of each operation, where they are measured
}

// Variant is one way of doing the thing. Run does one slice of it.
type Variant struct {
	Name string
	Run  func(b *testing.B) Slice
}

// Result is all slices of a variant.
type Result struct {
	Name   string
	slices []Slice
}

// Compare runs every variant once per round, in an order that is reversed every second round, and prints
// the pooled rate and latencies of each beside the load of the machine.
func Compare(b *testing.B, variants ...Variant) map[string]Result {
	b.Helper()
	before := Load()
	results := make([]Result, len(variants))
	round := 0
	run := func() {
		for i := range variants {
			if round%2 == 1 {
				i = len(variants) - 1 - i
			}
			results[i].Name = variants[i].Name
			results[i].slices = append(results[i].slices, variants[i].Run(b))
		}
		round++
	}
	for b.Loop() {
		run()
	}
	for round < MinRounds {
		run()
	}
	byName := make(map[string]Result, len(results))
	for _, r := range results {
		b.Logf("%-28s %9.0f/s   p50 %8.3f ms   p99 %8.3f ms", r.Name, r.Rate(), millis(r.Quantile(0.5)), millis(r.Quantile(0.99)))
		byName[r.Name] = r
	}
	b.Logf("%d rounds, load %s before and %s after", round, before, Load())
	b.ReportMetric(0, "ns/op") // of a round, which says nothing
	return byName
}

// Clients makes slices of n clients that each repeat op as long as the slice lasts. client counts from 0.
func Clients(n int, op func(client int) error) func(*testing.B) Slice {
	return func(b *testing.B) Slice {
		b.Helper()
		var (
			wg     sync.WaitGroup
			took   = make([][]time.Duration, n)
			failed = make([]error, n)
			start  = time.Now()
		)
		for client := range n {
			wg.Go(func() {
				for now := time.Now(); now.Sub(start) < SliceTime; {
					if failed[client] = op(client); failed[client] != nil {
						return
					}
					then := now
					now = time.Now()
					took[client] = append(took[client], now.Sub(then))
				}
			})
		}
		wg.Wait()
		s := Slice{Elapsed: time.Since(start)}
		for client, err := range failed {
			if err != nil {
				b.Fatalf("client %d: %v", client, err)
			}
			s.Latencies = append(s.Latencies, took[client]...)
		}
		s.Ops = len(s.Latencies)
		return s
	}
}

// Rate is the pooled number of operations per second.
func (r Result) Rate() float64 {
	var all Slice
	for _, s := range r.slices {
		all.Ops += s.Ops
		all.Elapsed += s.Elapsed
	}
	return all.rate()
}

func (s Slice) rate() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Ops) / s.Elapsed.Seconds()
}

// Quantile is of the pooled latencies: q=0.5 is the median. Zero where none were measured.
func (r Result) Quantile(q float64) time.Duration {
	var all []time.Duration
	for _, s := range r.slices {
		all = append(all, s.Latencies...)
	}
	return quantile(all, q)
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return d[min(int(q*float64(len(d))), len(d)-1)]
}

// Ratio is a figure in two forms: over all slices, and the median of the rounds. One bad round moves the
// first, a drift of the machine hardly the second.
type Ratio struct{ Pooled, Median float64 }

func (r Ratio) String() string {
	if r.Pooled == r.Median {
		return fmt.Sprintf("%.2f", r.Pooled)
	}
	return fmt.Sprintf("%.2f (%.2f)", r.Pooled, r.Median)
}

// Over is how much faster r is than base: the ratio of their rates.
func (r Result) Over(base Result) Ratio {
	rounds := make([]float64, len(r.slices))
	for i, s := range r.slices {
		rounds[i] = s.rate() / base.slices[i].rate()
	}
	return Ratio{Pooled: r.Rate() / base.Rate(), Median: median(rounds)}
}

// OverSeries is how much faster r is than a and b would be one after the other: 1/(1/a + 1/b).
func (r Result) OverSeries(a, b Result) Ratio {
	series := func(a, b float64) float64 { return 1 / (1/a + 1/b) }
	rounds := make([]float64, len(r.slices))
	for i, s := range r.slices {
		rounds[i] = s.rate() / series(a.slices[i].rate(), b.slices[i].rate())
	}
	return Ratio{Pooled: r.Rate() / series(a.Rate(), b.Rate()), Median: median(rounds)}
}

// LatencyOver compares a quantile of the latencies: below 1, r is quicker than base.
func (r Result) LatencyOver(base Result, q float64) Ratio {
	rounds := make([]float64, len(r.slices))
	for i, s := range r.slices {
		rounds[i] = float64(quantile(s.Latencies, q)) / float64(quantile(base.slices[i].Latencies, q))
	}
	return Ratio{Pooled: float64(r.Quantile(q)) / float64(base.Quantile(q)), Median: median(rounds)}
}

func median(f []float64) float64 {
	if len(f) == 0 {
		return 0
	}
	f = slices.Sorted(slices.Values(f))
	if n := len(f); n%2 == 0 {
		return (f[n/2-1] + f[n/2]) / 2
	}
	return f[len(f)/2]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Exactly is a figure that is counted once, not sampled.
func Exactly(f float64) Ratio { return Ratio{Pooled: f, Median: f} }
