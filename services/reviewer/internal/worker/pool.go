package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/doorbell"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// Pool keeps a number of slots busy with what is due: woken by the bell, and by a scan that finds what
// no ring announced.
type Pool struct {
	Claims Claims
	Review func(ctx, stopping context.Context, c reviewer.Claim, asked time.Time)
	Bell   Bell
	Slots  int
	Scan   time.Duration // between scans, jittered
	Grace  time.Duration // that a stop leaves to engine calls under way
	Log    *slog.Logger
	// Found is told how many due targets a scan found.
	Found func(ctx context.Context, n int)
}

// Pauses while the scheduler is away.
const (
	awayMin = 500 * time.Millisecond
	awayMax = 5 * time.Second
)

// why a pool asks for targets.
type why int

const (
	whyScan  why = iota // it is time to look
	whyRing             // somebody rang
	whyAgain            // the last answer was lost, or there may be more than it brought
)

// Run claims and reviews until ctx ends; then it takes no more, and returns when what is under way has
// ended: by itself within Grace, or cut off.
func (p *Pool) Run(ctx context.Context) error {
	work, cutOff := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cutOff(errShuttingDown)
	slots := make(chan struct{}, p.Slots)
	var jobs sync.WaitGroup
	scanAt, reason, away := time.Now(), whyScan, time.Duration(0)
	for again := false; p.take(ctx, slots); {
		if !again {
			reason = p.wait(ctx, scanAt)
		}
		if ctx.Err() != nil {
			break
		}
		if !time.Now().Before(scanAt) {
			scanAt = time.Now().Add(jittered(p.Scan))
		}
		free := 1 + takeFree(slots)
		asked := time.Now()
		claims, err := p.claim(ctx, free)
		for _, c := range claims {
			jobs.Go(func() {
				defer func() { <-slots }()
				p.review(work, ctx, c, asked)
			})
		}
		for range free - len(claims) {
			<-slots
		}
		if err != nil {
			away, again = p.backOff(ctx, away, err), true
			continue
		}
		if reason == whyScan && len(claims) > 0 {
			p.Found(ctx, len(claims))
		}
		away, again, reason = 0, len(claims) == free, whyAgain
	}
	p.drain(&jobs, cutOff)
	return nil
}

// take waits for a free slot.
func (p *Pool) take(ctx context.Context, slots chan struct{}) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case slots <- struct{}{}:
		return true
	}
}

// wait waits for a ring or for the time of the next scan. Only a pool with a free slot listens: a ring
// wakes one worker.
func (p *Pool) wait(ctx context.Context, scanAt time.Time) why {
	until, cancel := context.WithDeadline(ctx, scanAt)
	defer cancel()
	if until.Err() != nil {
		return whyScan
	}
	_, err := p.Bell.Next(until)
	if err == nil {
		return whyRing
	}
	if errors.Is(err, doorbell.ErrClosed) {
		<-until.Done() // the scan goes on
	}
	return whyScan
}

// takeFree takes what other slots are free.
func takeFree(slots chan struct{}) int {
	for n := 0; ; n++ {
		select {
		case slots <- struct{}{}:
		default:
			return n
		}
	}
}

// claim leases up to free targets. It makes no spans: mostly there is nothing.
func (p *Pool) claim(ctx context.Context, free int) ([]reviewer.Claim, error) {
	claims, err := p.Claims.Claim(obs.Quiet(ctx), free)
	if len(claims) > free {
		return claims[:free], fmt.Errorf("claimed %d targets for %d slots", len(claims), free)
	}
	return claims, err
}

// backOff waits while the scheduler is away. It says so once.
func (p *Pool) backOff(ctx context.Context, away time.Duration, err error) time.Duration {
	if away == 0 && ctx.Err() == nil {
		p.Log.WarnContext(ctx, "can't claim targets; trying again", "err", err)
	}
	away = min(max(2*away, awayMin), awayMax)
	pause(ctx, away)
	return away
}

// review runs one job. A fault in it costs its claim, not the process.
func (p *Pool) review(work, stopping context.Context, c reviewer.Claim, asked time.Time) {
	defer func() {
		if v := recover(); v != nil { // its value may hold what was reviewed
			p.Log.ErrorContext(work, "panic in a review; its lease will lapse", "target", c.Fence.Target.String(), "type", fmt.Sprintf("%T", v))
		}
	}()
	p.Review(work, stopping, c, asked)
}

// drain waits for what is under way, and cuts it off after the grace.
func (p *Pool) drain(jobs *sync.WaitGroup, cutOff context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() {
		jobs.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(p.Grace):
		cutOff(errShuttingDown)
		<-done
	}
}
