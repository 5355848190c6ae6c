package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

func TestALongReviewIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, func(ctx context.Context) (engine.Output, error) {
			select {
			case <-ctx.Done():
				return engine.Output{}, ctx.Err()
			case <-time.After(4 * time.Minute):
				return output, nil
			}
		})
		b.work(t)
		b.scheduler.accepted(t)
		if n := b.scheduler.renewals; n < 13 || n > 21 {
			t.Errorf("%d renewals in 4 minutes", n)
		}
	})
}

// TestTheRenewalBeforeTheEngineSaysSo: the one that proves the claim right before the engine is called, and none
// of those that keep it.
func TestTheRenewalBeforeTheEngineSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		said := -1
		b = newBench(t, minute, func(context.Context) (engine.Output, error) {
			b.scheduler.mu.Lock()
			said = len(b.scheduler.starts)
			b.scheduler.mu.Unlock()
			<-time.After(4 * time.Minute)
			return output, nil
		})
		b.work(t)
		run := b.scheduler.accepted(t).Attempt
		if said != 1 || len(b.scheduler.starts) != 1 || b.scheduler.starts[0] != b.memory.one(t).Run || b.memory.one(t).ID != run {
			t.Errorf("said %d times before the engine was called, and %v in all", said, b.scheduler.starts)
		}
	})
}

// TestWithoutMoneyNothingStarts: the engine is not called, and nobody is told that it is.
func TestWithoutMoneyNothingStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, untilStopped)
		b.ledger.err = &reviewer.OverBudgetError{}
		b.work(t)
		if len(b.scheduler.starts) != 0 {
			t.Errorf("said %v", b.scheduler.starts)
		}
	})
}

// TestAWorkerStopsBeforeTheLeaseItCanProve has renewals fail for good.
func TestAWorkerStopsBeforeTheLeaseItCanProve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var stopped time.Duration
		var b *bench
		b = newBench(t, minute, func(ctx context.Context) (engine.Output, error) {
			b.scheduler.mu.Lock()
			b.scheduler.refuse["renew"] = reviewer.ErrAway
			b.scheduler.mu.Unlock()
			<-ctx.Done()
			stopped = time.Since(began)
			return engine.Output{}, ctx.Err()
		})
		b.work(t)
		if stopped < 50*time.Second || stopped >= minute {
			t.Errorf("stopped after %s of a lease of a minute", stopped)
		}
		if a := b.memory.one(t); a.State != reviewer.StateFailed || a.Reason != "lease_lost" {
			t.Errorf("%+v", a)
		}
		if r := b.scheduler.release(t); r.Reason != reviewer.ReleaseDependencyAway || r.Detail != errLeaseUnproved.Error() {
			t.Errorf("released %+v", r)
		}
	})
}

// TestASlowRenewalBuysNoTime counts a lease from before the call.
func TestASlowRenewalBuysNoTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var stopped time.Duration
		var b *bench
		b = newBench(t, minute, func(ctx context.Context) (engine.Output, error) {
			b.scheduler.mu.Lock()
			b.scheduler.slow = 10 * time.Second
			b.scheduler.mu.Unlock()
			<-ctx.Done()
			stopped = time.Since(began)
			return engine.Output{}, ctx.Err()
		})
		b.Settings.Call = time.Hour
		b.work(t)
		// Asked for after 12 to 18 s and answered 10 s later: proved for a minute less a margin from the asking.
		if stopped < 67*time.Second || stopped > 73*time.Second {
			t.Errorf("stopped after %s", stopped)
		}
	})
}

func TestALostClaimStopsTheEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, untilStopped)
		began := time.Now()
		go func() {
			<-time.After(time.Second)
			b.scheduler.claim() // an operator, or a scheduler that thinks us dead
		}()
		b.work(t)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("stopped after %s", took)
		}
		if a := b.memory.one(t); a.State != reviewer.StateFailed || a.Reason != "lease_lost" || a.Number != 1 {
			t.Errorf("%+v", a)
		}
		if len(b.scheduler.committed)+len(b.scheduler.released) != 0 {
			t.Errorf("a lost claim was written to: %+v", b.scheduler)
		}
	})
}

// TestAReapedAttemptStopsTheEngine is a worker whose attempt was taken for an orphan: what is spent from
// now on could not be published.
func TestAReapedAttemptStopsTheEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		b = newBench(t, minute, func(ctx context.Context) (engine.Output, error) {
			b.memory.mu.Lock()
			a, e, _ := b.memory.attempts[0].Reap(0, time.Now().Add(time.Hour))
			b.memory.save(a, e)
			b.memory.mu.Unlock()
			return untilStopped(ctx)
		})
		b.work(t)
		if a := b.memory.one(t); a.State != reviewer.StateExpired || a.Estimate || a.Cost != 10 {
			t.Errorf("%+v: the measured cost corrects the estimate", a)
		}
		if r := b.scheduler.release(t); r.Reason != reviewer.ReleaseDependencyAway {
			t.Errorf("released %+v", r)
		}
	})
}
