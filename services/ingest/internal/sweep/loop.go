// Package sweep finds what was missed: it reads the App's delivery log and asks for what failed to be delivered
// again, and it lists the open pull requests of enrolled projects and tells the scheduler what differs from
// what it read.
package sweep

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// pause waits for d, jittered by a fifth so that replicas spread; false once ctx has ended.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(jitter(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-wake:
	}
	return ctx.Err() == nil
}

func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d - d/10 + rand.N(d/5+1)
}

// waits ends a listing that GitHub makes wait. The pause is as long as it said, never shorter; the listing itself
// follows a little later, so that not all of an installation come at once.
func waits(d time.Duration) ingest.SweepEnd {
	return ingest.SweepEnd{Next: d + rand.N(d/10+1), Pause: d}
}

// pace keeps calls of GitHub apart.
type pace struct {
	spacing time.Duration
	next    time.Time
}

// wait returns once the next call may be made.
func (p *pace) wait(ctx context.Context) error {
	now := time.Now()
	if d := p.next.Sub(now); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now = <-t.C:
		}
	}
	p.next = now.Add(p.spacing)
	return nil
}
