package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/pkg/doorbell"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// bell rings when told to.
type bell chan struct{}

func (b bell) Next(ctx context.Context) (doorbell.Ring, error) {
	select {
	case <-b:
		return doorbell.Ring{}, nil
	case <-ctx.Done():
		return doorbell.Ring{}, ctx.Err()
	}
}

// queue is what is due.
type queue struct {
	Claims
	mu    sync.Mutex
	due   int
	asked []int
	err   error
}

func (q *queue) Claim(_ context.Context, limit int) ([]reviewer.Claim, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked = append(q.asked, limit)
	if q.err != nil {
		return nil, q.err
	}
	n := min(limit, q.due)
	q.due -= n
	return make([]reviewer.Claim, n), nil
}

func (q *queue) add(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due += n
}

func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
}

// pool is a pool under test: each review takes a second.
type pool struct {
	*Pool
	queue      *queue
	bell       bell
	mu         sync.Mutex
	busy, most int
	done       int
	missed     int
}

func newPool() *pool {
	p := &pool{queue: &queue{}, bell: make(bell, 100)}
	p.Pool = &Pool{
		Claims: p.queue, Bell: p.bell, Slots: 2, Scan: 30 * time.Second, Grace: 10 * time.Second, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Found: func(_ context.Context, n int) { p.find(n) },
		Review: func(context.Context, context.Context, reviewer.Claim, time.Time) {
			p.count(1)
			<-time.After(time.Second)
			p.count(-1)
		},
	}
	return p
}

func (p *pool) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy += n
	p.most = max(p.most, p.busy)
	if n < 0 {
		p.done++
	}
}

func (p *pool) find(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missed += n
}

func (p *pool) unannounced() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missed
}

func (p *pool) reviewed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// run runs the pool around body, in a bubble, and waits for its end.
func (p *pool) run(t *testing.T, body func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	synctest.Wait()
	body()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestARingIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		p.run(t, func() {
			p.queue.add(1)
			p.bell <- struct{}{}
			<-time.After(1100 * time.Millisecond)
			if p.reviewed() != 1 || p.unannounced() != 0 {
				t.Errorf("%d reviewed, %d unannounced", p.reviewed(), p.unannounced())
			}
		})
	})
}

func TestTheScanFindsWhatNoRingAnnounced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		p.run(t, func() {
			p.queue.add(1)
			<-time.After(40 * time.Second)
			if p.reviewed() != 1 || p.unannounced() != 1 {
				t.Errorf("%d reviewed, %d unannounced", p.reviewed(), p.unannounced())
			}
		})
	})
}

func TestAnIdlePoolAsksSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		p.run(t, func() { <-time.After(10 * time.Minute) })
		if n := len(p.queue.asked); n < 16 || n > 26 {
			t.Errorf("asked %d times in 10 minutes", n)
		}
	})
}

func TestABacklogIsWorkedOffWithoutFurtherRings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		p.run(t, func() {
			p.queue.add(9)
			p.bell <- struct{}{}
			<-time.After(5500 * time.Millisecond)
		})
		if p.reviewed() != 9 || p.most != 2 || p.unannounced() != 0 {
			t.Errorf("%d reviewed, %d at once, %d unannounced", p.reviewed(), p.most, p.unannounced())
		}
	})
}

// TestAFullPoolDoesNotListen leaves the ring to a worker that has a free slot.
func TestAFullPoolDoesNotListen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		p.run(t, func() {
			p.queue.add(2)
			p.bell <- struct{}{}
			synctest.Wait()
			p.bell <- struct{}{}
			<-time.After(500 * time.Millisecond)
			if len(p.bell) != 1 {
				t.Error("a full pool took a ring")
			}
		})
	})
}

func TestASchedulerAwayIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		p.run(t, func() {
			p.queue.fail(errors.New("away"))
			p.queue.add(1)
			p.bell <- struct{}{}
			<-time.After(10 * time.Minute)
			p.queue.mu.Lock()
			n := len(p.queue.asked)
			p.queue.mu.Unlock()
			if n < 100 || n > 160 {
				t.Errorf("asked %d times in 10 minutes", n)
			}
			p.queue.fail(nil)
			<-time.After(10 * time.Second)
			if p.reviewed() != 1 || p.unannounced() != 0 {
				t.Errorf("%d reviewed, %d unannounced", p.reviewed(), p.unannounced())
			}
		})
	})
}

func TestAPanicCostsOneClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		review := p.Review
		first := true
		p.Review = func(ctx, stopping context.Context, c reviewer.Claim, asked time.Time) {
			if first {
				first = false
				panic("secret words")
			}
			review(ctx, stopping, c, asked)
		}
		p.Slots = 1
		p.run(t, func() {
			p.queue.add(2)
			p.bell <- struct{}{}
			<-time.After(2 * time.Second)
		})
		if p.reviewed() != 1 {
			t.Errorf("%d reviewed", p.reviewed())
		}
	})
}

func TestAStopWaitsAndThenCutsOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ takes, stops time.Duration }{
		"ends by itself": {5 * time.Second, 5 * time.Second},
		"is cut off":     {time.Hour, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPool()
			var stops []time.Duration
			var asked time.Time
			p.Review = func(ctx, stopping context.Context, _ reviewer.Claim, _ time.Time) {
				<-stopping.Done()
				asked = time.Now()
				select {
				case <-ctx.Done():
				case <-time.After(c.takes):
				}
				stops = append(stops, time.Since(asked))
			}
			p.run(t, func() {
				p.queue.add(1)
				p.bell <- struct{}{}
				synctest.Wait()
			})
			if diff := cmp.Diff([]time.Duration{c.stops}, stops); diff != "" {
				t.Errorf("%s (-want +got)\n%s", name, diff)
			}
		})
	}
}
