package outbox

import (
	"container/heap"
	"sync"
	"time"
)

// maxTimers bounds what one loop remembers of the future; the poll knows the rest.
const maxTimers = 1 << 16

// nudge tells a dispatch loop that rows became due, or when they will. It coalesces: however many
// transactions commit while the loop is busy, it wakes once. What it carries is a hint: a lost one costs
// at most a poll interval.
type nudge struct {
	wake chan struct{}

	mu     sync.Mutex
	due    bool
	seen   bool      // the poll saw a due row since polled was last asked
	low    time.Time // least available_at of what became due
	timers timers
	rings  []claimed // committed and to be rung at once
}

func newNudge() *nudge { return &nudge{wake: make(chan struct{}, 1)} }

// add tells of a row that becomes due after delay. at is its available_at, by the database's clock: the
// loop's low-water mark may have passed it already, since a row is older than its commit.
func (n *nudge) add(at time.Time, delay time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if delay <= 0 {
		n.raise(at)
		n.signal()
		return
	}
	if len(n.timers) >= maxTimers {
		return
	}
	// A timer that fires early finds nothing; clocks differ in their rate, so fire a little late.
	when := time.Now().Add(delay + time.Millisecond + delay/5000)
	earliest := len(n.timers) == 0 || when.Before(n.timers[0].when)
	heap.Push(&n.timers, timer{when: when, at: at})
	if earliest {
		n.signal()
	}
}

// maxRings bounds the rings that wait for their loop; the table knows the rest.
const maxRings = 1000

// ring hands over a ring that is due, unless too many wait.
func (n *nudge) ring(c claimed) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.rings) >= maxRings {
		return false
	}
	n.rings = append(n.rings, c)
	n.signal()
	return true
}

func (n *nudge) takeRings() []claimed {
	n.mu.Lock()
	defer n.mu.Unlock()
	rings := n.rings
	n.rings = nil
	return rings
}

// found tells of the oldest row that the poll saw. The poll sees the same future row again and again:
// its timer is set once.
func (n *nudge) found(at time.Time, delay time.Duration) {
	n.mu.Lock()
	armed := delay > 0 && len(n.timers) > 0 && !n.timers[0].at.After(at)
	n.seen = n.seen || delay <= 0
	n.mu.Unlock()
	if !armed {
		n.add(at, delay)
	}
}

// polled tells, once, that the poll saw a due row.
func (n *nudge) polled() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := n.seen
	n.seen = false
	return seen
}

// take empties the nudge: whether something became due, from which available_at on, and when to look
// again, zero for never.
func (n *nudge) take(now time.Time) (low time.Time, due bool, next time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.timers) > 0 && !n.timers[0].when.After(now) {
		n.raise(heap.Pop(&n.timers).(timer).at)
	}
	low, due = n.low, n.due
	n.low, n.due = time.Time{}, false
	if len(n.timers) > 0 {
		next = n.timers[0].when
	}
	return low, due, next
}

func (n *nudge) raise(at time.Time) {
	if !n.due || at.Before(n.low) {
		n.low = at
	}
	n.due = true
}

func (n *nudge) signal() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// timer is a row of the future: when to look, by this process's clock, and its available_at.
type timer struct{ when, at time.Time }

type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].when.Before(t[j].when) }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	*t = old[:len(old)-1]
	return last
}
