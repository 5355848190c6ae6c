package worker

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// of makes the epoch an installation's; its repository bears the same number, by which the fault knows it.
func of(e publisher.Epoch, installation int64) publisher.Epoch {
	e.PR.Installation, e.PR.Repository = installation, installation
	return e
}

// limited has GitHub turn away everything of some installations.
func limited(is func(installation int64) bool) func(http.ResponseWriter, *http.Request, bool) bool {
	return func(w http.ResponseWriter, r *http.Request, done bool) bool {
		path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		if done || path[0] != "repositories" {
			return false
		}
		if n, err := strconv.ParseInt(path[1], 10, 64); err != nil || !is(n) {
			return false
		}
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
}

// await looks until it is so.
func (r *rig) await(is func() bool) {
	r.t.Helper()
	deadline := time.After(30 * time.Second)
	for tick := time.NewTicker(20 * time.Millisecond); !is(); {
		select {
		case <-tick.C:
		case <-deadline:
			r.t.Fatal("it did not come to be within 30 s")
		}
	}
}

// A pause is a row: no other replica calls GitHub for that installation until it ends, whatever comes meanwhile.
func TestPauseHoldsInEveryReplica(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.gh.set(limited(func(int64) bool { return true }))
	first := of(r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb"), 21)
	r.publish(first)
	one, other := r.sender(r.store), r.sender(r.store)
	r.settle(one)
	before := r.gh.calls("")
	if n := r.gh.calls("GET /repositories/21/") + r.gh.calls("POST /repositories/21/"); n != 1 {
		t.Fatalf("%d calls before the pause, want 1", n)
	}
	second := of(r.epoch(publisher.TargetID(mint()), 6, 1, "cccc"), 21)
	r.publish(second)
	r.settle(other)
	r.pass(9 * time.Minute)
	r.settle(other)
	if n := r.gh.calls("") - before; n != 0 {
		t.Errorf("another replica made %d calls within the pause", n)
	}
	if state, reason := r.summary(first); state != "pending" || reason != "" {
		t.Errorf("the intent is %s, %s", state, reason)
	}
	r.gh.set(nil)
	r.pass(2 * time.Minute)
	r.settle(other)
	r.page(first)
	r.page(second)
}

// A hundred installations that GitHub throttles at once cost one call each, and hold up no other one.
func TestThrottledInstallationsHoldUpNoOther(t *testing.T) {
	t.Parallel()
	const throttled = 100
	r := newRig(t)
	r.gh.set(limited(func(n int64) bool { return n <= throttled }))
	for n := range int64(throttled) {
		r.publish(of(r.epoch(publisher.TargetID(mint()), n+1, 1, "bbbb"), n+1))
	}
	free := of(r.epoch(publisher.TargetID(mint()), 500, 1, "bbbb"), 500)
	r.publish(free) // after all of them
	ctx, stop := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	for range 2 {
		s := r.sender(r.store)
		senders.Go(func() { _ = s.Run(ctx) })
	}
	defer senders.Wait()
	defer stop()
	paused := func() int {
		return pgtest.Query[int](t, r.db, `SELECT count(*) FROM publisher.senders WHERE paused_until > clock_timestamp() + interval '5 minutes'`)
	}
	r.await(func() bool { return r.told("publication:") == 1 && paused() == throttled })
	r.page(free)
	calls := 0
	for n := range throttled {
		calls += r.gh.calls("GET /repositories/"+strconv.Itoa(n+1)+"/") + r.gh.calls("POST /repositories/"+strconv.Itoa(n+1)+"/")
	}
	if calls != throttled {
		t.Errorf("%d calls for the throttled ones, want %d", calls, throttled)
	}

	// Now that they are paused, what comes for others goes out at once.
	later := of(r.epoch(publisher.TargetID(mint()), 501, 1, "bbbb"), 501)
	began := time.Now()
	r.publish(later)
	r.await(func() bool { return r.told("publication:") == 2 })
	r.page(later)
	t.Logf("with %d installations paused another one is served within %s", throttled, time.Since(began).Round(time.Millisecond))
}

// Where GitHub names no time, the pause grows from one replica to the next: the row counts.
func TestPauseWithoutATimeGrowsInItsRow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
		if done || !strings.HasPrefix(req.URL.Path, "/repositories/") {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"message":"You have exceeded a secondary rate limit"}`))
		return true
	})
	r.publish(r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb"))
	for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		r.settle(r.sender(r.store))
		left := pgtest.Query[float64](t, r.db, `SELECT extract(epoch FROM paused_until - clock_timestamp())::float8 FROM publisher.senders`)
		if got := time.Duration(left * float64(time.Second)); got > want || got < want-20*time.Second {
			t.Errorf("paused for %s, want %s", got, want)
		}
		r.pass(want)
	}
}

// Writes of one installation keep their distance, across its claims and replicas, too.
func TestWritesArePaced(t *testing.T) {
	t.Parallel()
	const spacing = 150 * time.Millisecond
	r := newRig(t)
	var mu sync.Mutex
	var at []time.Time
	r.gh.set(func(_ http.ResponseWriter, req *http.Request, done bool) bool {
		if !done && req.Method != http.MethodGet && strings.HasPrefix(req.URL.Path, "/repositories/") {
			mu.Lock()
			at = append(at, time.Now())
			mu.Unlock()
		}
		return false
	})
	r.publish(r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb"), r.epoch(publisher.TargetID(mint()), 6, 1, "cccc"))
	for range 2 {
		s := r.sender(r.store)
		s.Settings.Spacing = spacing
		r.settle(s)
		r.publish(r.epoch(publisher.TargetID(mint()), 7, 1, "dddd"))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(at) < 6 {
		t.Fatalf("%d writes", len(at))
	}
	for n := 1; n < len(at); n++ {
		if d := at[n].Sub(at[n-1]); d < spacing-10*time.Millisecond { // the two clocks are the database's and ours
			t.Errorf("write %d came %s after the one before", n, d)
		}
	}
}
