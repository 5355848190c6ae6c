package outbox

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

// tripTimeout bounds one round trip to the database.
const tripTimeout = 5 * time.Second

// loop dispatches one destination. Its fields belong to its goroutine, but for the nudge.
type loop struct {
	d           *Dispatcher
	destination string
	peer        grpc.ClientConnInterface
	rings       bool // the destination is a doorbell
	nudge       *nudge

	low     time.Time // low-water mark: nothing unclaimed is known before it
	hungry  bool      // a claim may find something
	early   []claimed // rings of local commits, not yet rung
	marks   []mark    // of the last batch, not yet written
	outages int       // answers in a row that speak of the destination
	until   time.Time // pause of the destination
	dbFails int       // round trips in a row that failed
	blind   int       // polls in a row that saw a due row which the claim did not get
	silent  bool      // the last batch of rings failed
}

func (d *Dispatcher) newLoop(destination string) *loop {
	return &loop{
		d: d, destination: destination, peer: d.peers[peerOf(destination)], nudge: newNudge(),
		rings: strings.HasPrefix(destination, doorbell),
	}
}

// run claims, sends and marks until ctx ends; sends outlives ctx for a while.
func (l *loop) run(ctx, sends context.Context) error {
	for l.wait(ctx) {
		if len(l.early) > 0 {
			l.ringAtOnce(ctx, sends)
			continue
		}
		rows, lease, err := l.exchange(obs.Quiet(ctx))
		if err != nil {
			l.failed(ctx, err)
			continue
		}
		l.marks = l.deliverAll(ctx, sends, rows, lease)
		l.judge(ctx)
		if l.rings {
			l.rung(ctx)
		}
	}
	l.flush(ctx)
	return ctx.Err()
}

// wait returns when there is something to claim or to mark, and false when ctx has ended.
func (l *loop) wait(ctx context.Context) bool {
	for ctx.Err() == nil {
		now := time.Now()
		low, due, next := l.nudge.take(now)
		if due {
			l.hungry = true
			l.lower(low)
		}
		if l.early = l.nudge.takeRings(); len(l.early) > 0 || len(l.marks) > 0 {
			return true
		}
		if paused := l.until.After(now); paused {
			next = l.until
		} else if l.hungry {
			return true
		}
		l.sleep(ctx, next)
	}
	return false
}

// sleep waits for a nudge or, unless it is zero, for the time. In a pause nudges only gather.
func (l *loop) sleep(ctx context.Context, until time.Time) {
	var timer <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
	case <-l.nudge.wake:
	case <-timer:
	}
}

// lower moves the low-water mark back to a row that became due behind it.
func (l *loop) lower(at time.Time) {
	if at.Before(l.low) {
		l.low = at
	}
}

// exchange is one round trip: writes the marks and, unless the destination pauses, claims. It returns
// the rows and until when, by this process's clock, they are surely held.
func (l *loop) exchange(ctx context.Context) ([]claimed, time.Time, error) {
	// Told to stop half-way, it could not know what it had claimed, and those rows would wait out a lease.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tripTimeout)
	defer cancel()
	now := time.Now()
	t := trip{rings: l.rings, marks: l.marks, claim: l.hungry && !l.until.After(now), low: l.low, limit: l.d.settings.Batch}
	if l.outages > 0 {
		t.limit = 1 // a probe
	}
	if err := l.d.send(ctx, l.destination, &t); err != nil {
		return nil, time.Time{}, err
	}
	l.settled(ctx, &t)
	if t.claim {
		l.hungry = len(t.rows) == t.limit // what comes later is announced
		l.sawNothing(ctx, len(t.rows) == 0)
	}
	if n := len(t.rows); n > 0 {
		l.low = t.rows[n-1].availableAt
	}
	return t.rows, now.Add(l.d.settings.Lease), nil
}

// deliverAll sends the rows, some at once, and returns how each ended. It starts no send once the
// dispatcher stops, the destination is away, or the lease might end before the send does: those rows are
// released. A ring is marked already, so it is tried all the same.
func (l *loop) deliverAll(ctx, sends context.Context, rows []claimed, lease time.Time) []mark {
	if len(rows) == 0 {
		return nil
	}
	marks := make([]mark, len(rows))
	latest := lease.Add(-l.d.settings.SendTimeout - sendMargin)
	var next atomic.Int64
	var away atomic.Bool
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(rows); i = int(next.Add(1)) - 1 {
			if !l.rings && (ctx.Err() != nil || away.Load() || time.Now().After(latest)) {
				marks[i] = mark{row: rows[i], verdict: Verdict{Outcome: Released}}
				continue
			}
			marks[i] = l.deliver(sends, rows[i])
			if marks[i].verdict.Outcome == Away {
				away.Store(true)
			}
		}
	}
	workers := min(l.d.settings.Concurrency, len(rows))
	var wg sync.WaitGroup
	for range workers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return marks
}

// judge draws what a batch says of the destination: one answer that it is away pauses it, and any other
// answer ends an outage.
func (l *loop) judge(ctx context.Context) {
	var pause time.Duration
	var why string
	answered, rang, failed := false, false, false
	for _, m := range l.marks {
		switch m.verdict.Outcome {
		case Away:
			pause, why = max(pause, m.verdict.Delay), m.err
		case Released:
			l.lower(m.row.availableAt)
			l.hungry = true
		case Rung:
			rang = true
		case RingFailed:
			failed, why = true, m.err
		default:
			answered = true
		}
	}
	switch {
	case pause > 0:
		l.outages++
		l.until, l.hungry = time.Now().Add(pause), true
		if l.outages == 1 {
			l.d.log.WarnContext(ctx, "destination is away, messages wait", "destination", l.destination, "err", why)
		}
	case answered && l.outages > 0:
		l.d.log.InfoContext(ctx, "destination answers again", "destination", l.destination, "outages", l.outages)
		l.outages, l.until = 0, time.Time{}
	case failed && !l.silent:
		l.silent = true
		l.d.log.WarnContext(ctx, "doorbell is away, the scan finds the work", "destination", l.destination, "err", why)
	case rang && !failed && l.silent:
		l.silent = false
		l.d.log.InfoContext(ctx, "doorbell rings again", "destination", l.destination)
	}
}
