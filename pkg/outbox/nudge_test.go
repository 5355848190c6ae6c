package outbox

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestNudgeCoalescesAndKeepsTheLeast(t *testing.T) {
	t.Parallel()
	n, base := newNudge(), time.Now()
	for _, s := range []time.Duration{3, 1, 2} {
		n.add(base.Add(s*time.Second), 0)
	}
	if len(n.wake) != 1 {
		t.Errorf("%d wakes, want 1", len(n.wake))
	}
	low, due, next := n.take(base)
	if !due || !low.Equal(base.Add(time.Second)) || !next.IsZero() {
		t.Errorf("take = %v, %v, %v", low, due, next)
	}
	if _, due, _ := n.take(base); due {
		t.Error("due twice")
	}
}

func TestNudgeTimersFireInOrderAndNeverEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, base := newNudge(), time.Now()
		n.add(base.Add(2*time.Second), 2*time.Second)
		<-n.wake
		n.add(base.Add(3*time.Second), 3*time.Second)
		if len(n.wake) != 0 {
			t.Error("a later timer wakes nobody")
		}
		n.add(base.Add(time.Second), time.Second)
		<-n.wake // the earliest changed
		for want := 1; want <= 3; want++ {
			_, due, next := n.take(time.Now())
			if due {
				t.Fatalf("due before %d s", want)
			}
			<-time.After(time.Until(next))
			low, due, _ := n.take(time.Now())
			at := base.Add(time.Duration(want) * time.Second)
			if !due || !low.Equal(at) || time.Now().Before(at) {
				t.Errorf("at %v: take = %v, %v", time.Since(base), low, due)
			}
		}
	})
}

// The poll sees a row of the far future each time; it is remembered once.
func TestNudgePollArmsOnce(t *testing.T) {
	t.Parallel()
	n, at := newNudge(), time.Now().Add(time.Hour)
	for range 3 {
		n.found(at, time.Hour)
	}
	if len(n.timers) != 1 || n.polled() {
		t.Errorf("%d timers, polled %v", len(n.timers), n.polled())
	}
	n.found(time.Now(), 0)
	if !n.polled() || n.polled() {
		t.Error("a due row that the poll saw is told once")
	}
}

func TestNudgeIsBounded(t *testing.T) {
	t.Parallel()
	n, at := newNudge(), time.Now().Add(time.Hour)
	for range maxTimers + 10 {
		n.add(at, time.Hour)
	}
	if len(n.timers) != maxTimers {
		t.Errorf("%d timers", len(n.timers))
	}
}
