package doorbell

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/pkg/redistest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, redistest.Goroutines()...)
}

func open(t *testing.T, addr string) (*Bell, *Listener) {
	t.Helper()
	bell := NewBell(Config{Addr: addr})
	l := NewListener(Config{Addr: addr}, ListenerOptions{Stream: "targets", Group: "reviewers", Consumer: t.Name()})
	t.Cleanup(func() {
		_ = bell.Close()
		_ = l.Close()
	})
	return bell, l
}

func ring(t *testing.T, b *Bell, id string) {
	t.Helper()
	if err := b.Ring(t.Context(), "targets", id); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, l *Listener) Ring {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := l.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A ring from before the group existed is heard too: nobody else heard it.
func TestRingWakesListener(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *server) {
		bell, l := open(t, s.addr())
		for i := range 3 {
			id := fmt.Sprintf("job-%d", i)
			ring(t, bell, id)
			if got := hear(t, l); got != (Ring{Stream: "targets", ID: id}) {
				t.Errorf("heard %+v", got)
			}
		}
		if n := s.client(t).XPending(t.Context(), "targets", "reviewers").Val().Count; n != 0 {
			t.Errorf("%d rings are pending, want no pending list", n)
		}
	})
}

func TestOneWakerPerRing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *server) {
		const rings = 20
		bell, _ := open(t, s.addr())
		ctx, cancel := context.WithCancel(t.Context())
		heard := make(chan Ring)
		var wg sync.WaitGroup
		for range 3 {
			_, l := open(t, s.addr())
			for range 2 { // two slots each
				wg.Go(func() {
					for {
						r, err := l.Next(ctx)
						if err != nil {
							return
						}
						heard <- r
					}
				})
			}
		}
		seen := map[string]int{}
		for i := range rings {
			ring(t, bell, fmt.Sprint(i))
			seen[(<-heard).ID]++
		}
		cancel()
		wg.Wait()
		if len(seen) != rings {
			t.Errorf("%d of %d rings heard", len(seen), rings)
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("ring %s heard %d times", id, n)
			}
		}
	})
}

// A flush takes stream and group away, before a read and under it.
func TestFlush(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *server) {
		bell, l := open(t, s.addr())
		ring(t, bell, "before")
		hear(t, l)
		flush := func() {
			if err := s.client(t).FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		flush()
		ring(t, bell, "after")
		if got := hear(t, l); got.ID != "after" {
			t.Errorf("heard %+v", got)
		}
		heard := make(chan Ring, 1)
		go func() {
			r, _ := l.Next(t.Context())
			heard <- r
		}()
		if s.real != nil {
			rdb := s.client(t)
			waitFor(t, "the read to block", func(ctx context.Context) bool {
				return rdb.InfoMap(ctx, "clients").Item("Clients", "blocked_clients") == "1"
			})
		}
		flush()
		ring(t, bell, "under it")
		if r := <-heard; r.ID != "under it" {
			t.Errorf("heard %+v", r)
		}
	})
}

func TestRestart(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *server) {
		bell, l := open(t, s.addr())
		ring(t, bell, "before")
		hear(t, l)
		heard := make(chan Ring, 1)
		go func() {
			r, _ := l.Next(t.Context())
			heard <- r
		}()
		s.restart()
		// The bell's idle connections died with the server; a ring may be lost on each.
		waitFor(t, "the bell to ring", func(ctx context.Context) bool { return bell.Ring(ctx, "targets", "after") == nil })
		if r := <-heard; r.ID != "after" {
			t.Errorf("heard %+v", r)
		}
	})
}

// Nothing waits on a Redis that hangs: not a ring on an old connection, not one on a new connection, and
// not the end of a listener's context.
func TestHang(t *testing.T) {
	t.Parallel()
	r := startReal(t)
	bell, l := open(t, r.addr())
	ring(t, bell, "before")
	hear(t, l)
	r.hang(t)
	defer r.resume(t)
	for range 3 {
		within(t, Limit, func() {
			if err := bell.Ring(t.Context(), "targets", "lost"); err == nil {
				t.Error("a ring that nobody took is no success")
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := l.Next(ctx)
		ended <- err
	}()
	cancel()
	within(t, Limit, func() {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Next = %v", err)
		}
	})
	r.resume(t)
	waitFor(t, "the bell to ring", func(ctx context.Context) bool { return bell.Ring(ctx, "targets", "after") == nil })
	// What the stopped server had taken in before it is heard first.
	for hear(t, l).ID != "after" {
	}
}

// A port that takes connections and never answers is a partition; a port that refuses them is no server.
func TestNoRedis(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = refused.Close()
	for name, addr := range map[string]string{"silent": silent.Addr().String(), "refused": refused.Addr().String()} {
		bell, l := open(t, addr)
		within(t, Limit, func() {
			if err := bell.Ring(t.Context(), "targets", "lost"); err == nil {
				t.Errorf("%s: a ring that nobody took is no success", name)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), Limit)
		within(t, 2*Limit, func() {
			if _, err := l.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: Next = %v", name, err)
			}
		})
		cancel()
	}
}

// A read outlives the Next that began it; what it brings belongs to the next Next.
func TestRingAfterContextEndIsKept(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *server) {
		bell, l := open(t, s.addr())
		ring(t, bell, "first")
		hear(t, l)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := l.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Next = %v", err)
		}
		ring(t, bell, "second")
		if got := hear(t, l); got.ID != "second" {
			t.Errorf("heard %+v", got)
		}
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	s := startMini(t)
	_, l := open(t, s.addr())
	ended := make(chan error)
	go func() {
		_, err := l.Next(context.Background())
		ended <- err
	}()
	_ = l.Close()
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("Next = %v", err)
	}
}

func TestStreamIsBounded(t *testing.T) {
	t.Parallel()
	s := startReal(t)
	bell, _ := open(t, s.addr())
	rdb := s.client(t)
	pipe := rdb.Pipeline()
	for range maxRings + 1000 {
		pipe.Do(t.Context(), "XADD", "targets", "*", field, "old")
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	ring(t, bell, "new")
	if n := rdb.XLen(t.Context(), "targets").Val(); n > maxRings+200 {
		t.Errorf("stream holds %d rings, want about %d", n, maxRings)
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	for addr, ok := range map[string]bool{"127.0.0.1:6379": true, "redis:1": true, "": false, "redis": false, ":6379": false, "redis:": false} {
		if err := (Config{Addr: addr}).Validate(); (err == nil) != ok {
			t.Errorf("Validate(%q) = %v", addr, err)
		}
	}
}

// within fails when fn takes longer than limit, give or take what a busy machine takes to schedule it.
func within(t *testing.T, limit time.Duration, fn func()) {
	t.Helper()
	slack := 150 * time.Millisecond
	if os.Getenv("CI") != "" {
		slack *= 4
	}
	start := time.Now()
	fn()
	if took := time.Since(start); took > limit+slack {
		t.Errorf("took %s, want at most %s", took, limit)
	}
}
