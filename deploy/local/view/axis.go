package view

import (
	"slices"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/local/spans"
)

// axis maps time to columns. Long gaps take as much room as gapShare of the time in which something ran.
type axis struct {
	busy  []interval
	scale time.Duration // of everything, gaps shortened
	gap   time.Duration // what a shortened gap counts as
}

type interval struct{ from, to time.Time }

const gapShare = 20 // a twentieth

func newAxis(list []spans.Span) axis {
	busy := busyTimes(list)
	// What lies close together is one stretch.
	var stretches []interval
	for _, b := range busy {
		if n := len(stretches); n > 0 && b.from.Sub(stretches[n-1].to) < longGap {
			stretches[n-1].to = b.to
			continue
		}
		stretches = append(stretches, b)
	}
	a := axis{busy: stretches}
	for _, b := range stretches {
		a.scale += b.to.Sub(b.from)
	}
	a.gap = a.scale / gapShare
	a.scale += a.gap * time.Duration(len(stretches)-1)
	a.scale = max(a.scale, 1)
	return a
}

// busyTimes is the time in which at least one of the spans ran, as intervals in order.
func busyTimes(list []spans.Span) []interval {
	var all []interval
	for _, s := range list {
		all = append(all, interval{s.Start, s.End})
	}
	return union(all)
}

func union(all []interval) []interval {
	slices.SortFunc(all, func(a, b interval) int { return a.from.Compare(b.from) })
	var out []interval
	for _, i := range all {
		if n := len(out); n > 0 && !i.from.After(out[n-1].to) {
			if i.to.After(out[n-1].to) {
				out[n-1].to = i.to
			}
			continue
		}
		out = append(out, i)
	}
	return out
}

// gaps are the long times in which nothing ran.
func (a axis) gaps() []interval {
	var out []interval
	for i := 1; i < len(a.busy); i++ {
		out = append(out, interval{a.busy[i-1].to, a.busy[i].from})
	}
	return out
}

func (a axis) column(at time.Time, columns int) int {
	var passed time.Duration
	for i, b := range a.busy {
		if i > 0 {
			passed += a.gap
		}
		if at.Before(b.to) {
			passed += max(0, at.Sub(b.from))
			break
		}
		passed += b.to.Sub(b.from)
	}
	return min(int(int64(passed)*int64(columns)/int64(a.scale)), columns)
}

// Busy is how long at least one of the spans ran.
func Busy(list []spans.Span) time.Duration {
	var sum time.Duration
	for _, i := range busyTimes(list) {
		sum += i.to.Sub(i.from)
	}
	return sum
}
