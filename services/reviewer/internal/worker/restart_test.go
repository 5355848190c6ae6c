package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// restarting has a database that is away for a while from the first result on.
type restarting struct {
	Ends
	away  time.Duration
	began time.Time
}

func (r *restarting) Finish(ctx context.Context, a reviewer.Attempt, rep reviewer.Report) (reviewer.Attempt, error) {
	if r.began.IsZero() {
		r.began = time.Now()
	}
	if time.Since(r.began) < r.away {
		return reviewer.Attempt{}, errors.New("database unavailable")
	}
	return r.Ends.Finish(ctx, a, rep)
}

// TestAResultOutlastsARestartOfTheDatabase finishes while the database restarts, which takes it seconds:
// what was paid for is kept.
func TestAResultOutlastsARestartOfTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, found)
		b.Ends = &restarting{Ends: b.Ends, away: 8 * time.Second}
		b.work(t)
		b.scheduler.accepted(t)
		if b.engine.calls != 1 || len(b.scheduler.released) != 0 {
			t.Errorf("%d engine calls, released %+v", b.engine.calls, b.scheduler.released)
		}
	})
}
