package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/source"
)

// stingy shows the pull request and gives no files.
type stingy struct{ *github }

func (stingy) Input(context.Context, reviewer.PullRequest, source.Snapshot) (engine.Input, error) {
	return engine.Input{}, &reviewer.SourceError{Kind: reviewer.SourceThrottled, Reason: "SECONDARY_LIMIT", RetryAfter: 2 * minute}
}

// TestLimitAmidAnAttemptBurnsNone: GitHub's limit may come between the reading and the files. The claim goes back at
// once, with the pause of the whole installation; the attempt has no number, and nothing was spent.
func TestLimitAmidAnAttemptBurnsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, found)
		b.Source = stingy{b.github}
		began := time.Now()
		b.work(t)
		a := b.memory.one(t)
		if a.State != reviewer.StateVoided || a.Number != 0 || b.engine.calls != 0 || len(b.ledger.held) != 0 {
			t.Errorf("%+v, %d engine calls, %d holds", a, b.engine.calls, len(b.ledger.held))
		}
		want := reviewer.Release{
			Reason: reviewer.ReleaseThrottled, RetryAfter: 2 * minute, Detail: "github throttled: SECONDARY_LIMIT",
			Pause: &reviewer.Pause{Reason: "throttled", For: 2 * minute},
		}
		if diff := cmp.Diff(want, b.scheduler.release(t)); diff != "" {
			t.Errorf("release (-want +got)\n%s", diff)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the claim was held for %s", took)
		}
	})
}
