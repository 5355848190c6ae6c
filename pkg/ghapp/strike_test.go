package ghapp

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestUnnamedPauseGrowsUntilACallSucceeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttled := true
		g := &wired{life: 1000 * time.Hour, serve: func(int, string) (int, string) {
			if throttled {
				return 429, `{"message":"slow down"}`
			}
			return 200, `{}`
		}}
		c := g.client(t)
		for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 64} {
			f := g.call(t, c, "GET")
			if want = min(want*time.Minute, mostPause); f.RetryAfter != want || f.Advised {
				t.Fatalf("pause %s, want %s", f.RetryAfter, want)
			}
			<-time.After(f.RetryAfter)
		}
		throttled = false
		g.call(t, c, "GET")
		throttled = true
		if f := g.call(t, c, "GET"); f.RetryAfter != time.Minute {
			t.Errorf("after a success: %s", f.RetryAfter)
		}
	})
}

func TestCallsUnderWayTogetherAreOneStrike(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &limits{strikes: map[int64]strike{}}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if d := l.slowDown(1, time.Now()); d != time.Minute {
					t.Errorf("pause %s", d)
				}
			})
		}
		wg.Wait()
		l.calm(1, time.Now()) // one of them was answered well
		<-time.After(time.Minute)
		if d := l.slowDown(1, time.Now()); d != 2*time.Minute {
			t.Errorf("the next pause is %s", d)
		}
		if d := l.slowDown(2, time.Now()); d != time.Minute {
			t.Errorf("another installation pauses for %s", d)
		}
	})
}
