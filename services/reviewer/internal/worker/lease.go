package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// lease is what a worker can prove of its claim, by its own monotonic clock: it counts each answer from
// before the call, so that a slow one buys no time, and stops the work before the proof runs out.
type lease struct {
	claims   Claims
	attempts Attempts
	tenant   reviewer.TenantID
	every    time.Duration // between renewals
	call     time.Duration // bound of one call
	stop     context.CancelCauseFunc

	turn chan struct{} // one renewal, or one call that may end the claim, at a time

	mu      sync.Mutex
	fence   reviewer.Fence
	attempt *reviewer.Attempt // whose row says until when it is no orphan
	length  time.Duration     // the newest lease
	until   time.Time         // proved, less the margin
	expiry  *time.Timer
}

// hold keeps the claim's lease renewed until end is called. The context it returns ends before the lease
// that can be proved, or when the work is to stop; its cause says which.
func (j *job) hold(ctx context.Context, asked time.Time) (held context.Context, end func()) {
	ctx, stop := context.WithCancelCause(ctx)
	full := j.claim.Lease
	l := &lease{
		claims: j.Claims, attempts: j.Attempts, tenant: j.claim.Tenant, fence: j.fence, stop: stop,
		every: min(j.Settings.Renew, full/4), call: min(j.Settings.Call, full/4), turn: make(chan struct{}, 1),
	}
	j.lease = l
	l.arm(asked, full)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.keep(ctx)
	}()
	return ctx, func() {
		stop(context.Canceled)
		l.expiry.Stop()
		<-done
	}
}

// keep renews until ctx ends. A renewal that failed is tried again soon.
func (l *lease) keep(ctx context.Context) {
	wait := l.every
	for pause(ctx, wait) {
		wait = l.every
		if err := l.renew(ctx, renewal{keep: true}); err != nil {
			wait = l.every / 4
		}
	}
}

// prove renews the claim alone right before the engine is called: the start that follows notes it on the attempt.
func (l *lease) prove(ctx context.Context) error { return l.renew(ctx, renewal{starting: true}) }

type renewal struct {
	keep     bool // the attempt, too
	starting bool // the scheduler may tell that the engine is called
}

// renew extends claim and, where there is one to be kept, attempt. Only both together count: an attempt
// that may be taken for an orphan is no safe place to spend money from. A refusal stops the work.
func (l *lease) renew(ctx context.Context, n renewal) error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	fence, attempt := l.current()
	ctx, cancel := context.WithTimeout(ctx, l.call)
	defer cancel()
	asked := time.Now()
	r, err := l.claims.Renew(ctx, l.tenant, fence, n.starting)
	if err == nil && n.keep && attempt != nil {
		err = l.attempts.Keep(ctx, *attempt, r.Lease)
	}
	if _, fenced := errors.AsType[*reviewer.FencedError](err); fenced || errors.Is(err, reviewer.ErrClosed) {
		l.stop(err)
	}
	if err != nil {
		return err
	}
	l.extend(asked, r.Lease)
	if r.CancelRequested {
		l.stop(errCancelRequested)
		return errCancelRequested
	}
	return nil
}

// alone runs a call while no renewal does.
func (l *lease) alone(call func() error) error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return call()
}

// arm trusts the claim's own lease.
func (l *lease) arm(asked time.Time, length time.Duration) {
	l.mu.Lock()
	l.expiry = time.AfterFunc(length, l.expire)
	l.mu.Unlock()
	l.extend(asked, length)
}

// extend trusts a lease from the moment it was asked for, less a margin for what the worker still has to
// do when it stops.
func (l *lease) extend(asked time.Time, length time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.length = length
	if until := asked.Add(length - length/12); until.After(l.until) {
		l.until = until
	}
	l.expiry.Reset(time.Until(l.until))
}

// expire stops the work when nothing has extended the lease meanwhile.
func (l *lease) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := time.Until(l.until); left > 0 {
		l.expiry.Reset(left)
		return
	}
	l.stop(errLeaseUnproved)
}

// resolved takes the fence of all later calls.
func (l *lease) resolved(f reviewer.Fence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fence = f
}

// watch has renewals keep the attempt too.
func (l *lease) watch(a reviewer.Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempt = &a
}

// unwatch ends watch, and waits for a renewal under way: one that found the attempt closed would stop
// the work.
func (l *lease) unwatch() {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempt = nil
}

func (l *lease) current() (reviewer.Fence, *reviewer.Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fence, l.attempt
}

// longest is the most that can be left of the lease.
func (l *lease) longest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.length
}
