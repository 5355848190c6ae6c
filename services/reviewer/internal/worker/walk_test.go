package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

const minute = time.Minute

func TestAWalkEndsWithOneAcceptedResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, found)
		b.work(t)
		a := b.memory.one(t)
		want := reviewer.Accepted{
			Attempt: a.ID, Engine: "fake/1", Cost: 20,
			Result: reviewer.Result{Verdict: reviewer.VerdictFindings, Counts: reviewer.Counts{Errors: 1}},
		}
		if diff := cmp.Diff(want, b.scheduler.accepted(t)); diff != "" {
			t.Errorf("accepted (-want +got)\n%s", diff)
		}
		if a.State != reviewer.StateFinished || a.Number != 1 || len(b.ledger.held) != 1 || b.ledger.held[0].Reserved != 10 {
			t.Errorf("attempt %+v, held %+v", a, b.ledger.held)
		}
		if diff := cmp.Diff([]string{"settle:" + a.ID.String() + ":measured"}, b.memory.messages); diff != "" {
			t.Errorf("messages (-want +got)\n%s", diff)
		}
	})
}

func TestWhatIsNotToBeReviewedCostsNothing(t *testing.T) {
	t.Parallel()
	for _, answer := range []reviewer.Answer{reviewer.AnswerReused, reviewer.AnswerSkipped, reviewer.AnswerReadLags} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, minute, found)
			b.scheduler.answer = answer
			b.work(t)
			if len(b.memory.attempts)+len(b.ledger.held)+b.engine.calls+len(b.scheduler.committed)+len(b.scheduler.released) != 0 {
				t.Errorf("%s: %+v", answer, b.scheduler)
			}
		})
	}
}

func TestAPullRequestThatIsGoneIsAReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, found)
		b.github.snap.Reading = reviewer.Reading{State: reviewer.PullGone}
		b.scheduler.answer = reviewer.AnswerSkipped
		b.work(t)
		if len(b.scheduler.read) != 1 || b.scheduler.read[0].State != reviewer.PullGone {
			t.Errorf("read %+v", b.scheduler.read)
		}
	})
}

func TestReleases(t *testing.T) {
	t.Parallel()
	src := func(kind reviewer.SourceKind, after time.Duration) func(*bench) {
		return func(b *bench) {
			b.github.err = &reviewer.SourceError{Kind: kind, Reason: "WORD", RetryAfter: after}
		}
	}
	for name, c := range map[string]struct {
		arrange func(*bench)
		want    reviewer.Release
	}{
		"github away":      {src(reviewer.SourceAway, 0), reviewer.Release{Reason: reviewer.ReleaseDependencyAway, RetryAfter: awayPause, Detail: "github away: WORD"}},
		"github refuses":   {src(reviewer.SourceDenied, time.Hour), reviewer.Release{Reason: reviewer.ReleaseDependencyAway, RetryAfter: time.Hour, Detail: "github denied: WORD"}},
		"github throttles": {src(reviewer.SourceThrottled, minute), reviewer.Release{Reason: reviewer.ReleaseThrottled, RetryAfter: minute, Detail: "github throttled: WORD", Pause: &reviewer.Pause{Reason: "throttled", For: minute}}},
		"suspended":        {src(reviewer.SourceSuspended, 10*minute), reviewer.Release{Reason: reviewer.ReleaseThrottled, Detail: "github suspended: WORD", Pause: &reviewer.Pause{Reason: "suspended", For: 10 * minute}}},
		"ledger away":      {func(b *bench) { b.ledger.err = reviewer.ErrAway }, reviewer.Release{Reason: reviewer.ReleaseDependencyAway, RetryAfter: awayPause, Detail: "reserve did not succeed"}},
		"scheduler away":   {func(b *bench) { b.scheduler.refuse["resolve"] = reviewer.ErrAway }, reviewer.Release{Reason: reviewer.ReleaseDependencyAway, RetryAfter: awayPause, Detail: "a service did not answer"}},
		"engine fails": {func(b *bench) {
			b.engine.review = func(context.Context) (engine.Output, error) { return engine.Output{}, errors.New("secret words") }
		}, reviewer.Release{Reason: reviewer.ReleaseAttemptFailed, RetryAfter: failedPause, Detail: "attempt 1 failed: engine_error"}},
		"engine panics": {func(b *bench) {
			b.engine.review = func(context.Context) (engine.Output, error) { panic("secret words") }
		}, reviewer.Release{Reason: reviewer.ReleaseAttemptFailed, RetryAfter: failedPause, Detail: "attempt 1 failed: engine_panic"}},
		"engine takes too long": {func(b *bench) { b.engine.review = untilStopped }, reviewer.Release{Reason: reviewer.ReleaseAttemptFailed, RetryAfter: failedPause, Detail: "attempt 1 failed: engine_timeout"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, minute, found)
			c.arrange(b)
			b.work(t)
			if diff := cmp.Diff(c.want, b.scheduler.release(t)); diff != "" {
				t.Errorf("%s: release (-want +got)\n%s", name, diff)
			}
			for _, a := range b.memory.attempts {
				if a.Open() {
					t.Errorf("%s: an attempt is left open: %+v", name, a)
				}
			}
		})
	}
}

func TestNothingIsHeldWhereTheLedgerIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, found)
		b.ledger.err = reviewer.ErrAway
		b.work(t)
		a := b.memory.one(t)
		if a.State != reviewer.StateVoided || a.Number != 0 || b.engine.calls != 0 {
			t.Errorf("%+v, %d engine calls", a, b.engine.calls)
		}
		// The money may be held all the same: a tombstone sees to it.
		if diff := cmp.Diff([]string{"void:" + a.ID.String()}, b.memory.messages); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOverBudgetIsADecision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, found)
		b.ledger.err = &reviewer.OverBudgetError{RetryAfter: time.Hour}
		b.work(t)
		want := []reviewer.Outcome{{OverBudget: &reviewer.OverBudget{Reason: "over_budget", RetryAfter: time.Hour, Needed: 10}}}
		if diff := cmp.Diff(want, b.scheduler.committed); diff != "" {
			t.Errorf("committed (-want +got)\n%s", diff)
		}
		if a := b.memory.one(t); a.State != reviewer.StateVoided || a.Reason != "over_budget" || b.engine.calls != 0 || len(b.memory.messages) != 0 {
			t.Errorf("%+v, %d engine calls, %v", a, b.engine.calls, b.memory.messages)
		}
	})
}

func TestARunThatFailsThreeTimesIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, func(context.Context) (engine.Output, error) { return engine.Output{}, errors.New("no") })
		for range 4 {
			b.work(t)
		}
		if len(b.scheduler.released) != 3 || b.scheduler.released[2].RetryAfter != 8*time.Minute || b.engine.calls != 3 {
			t.Errorf("released %+v after %d engine calls", b.scheduler.released, b.engine.calls)
		}
		if len(b.scheduler.committed) != 1 || b.scheduler.committed[0].Refused == nil || b.scheduler.committed[0].Refused.Reason != "attempts_exhausted" {
			t.Errorf("committed %+v", b.scheduler.committed)
		}
	})
}

func TestLostAnswersAreAskedForAgain(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"resolve", "commit"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, minute, found)
			b.scheduler.lost[call] = 3
			b.work(t)
			b.scheduler.accepted(t)
			if b.engine.calls != 1 || len(b.scheduler.released) != 0 {
				t.Errorf("%s: %d engine calls, released %+v", call, b.engine.calls, b.scheduler.released)
			}
		})
	}
}

// TestACommitThatNeverAnswersIsGivenUp leaves the result to the next claim.
func TestACommitThatNeverAnswersIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, found)
		b.scheduler.refuse["commit"] = reviewer.ErrAway
		b.work(t)
		if r := b.scheduler.release(t); r.Reason != reviewer.ReleaseDependencyAway {
			t.Errorf("released %+v", r)
		}
		delete(b.scheduler.refuse, "commit")
		b.work(t)
		if got := b.scheduler.accepted(t); !got.Adopted || got.Attempt != b.memory.one(t).ID || b.engine.calls != 1 {
			t.Errorf("accepted %+v after %d engine calls", got, b.engine.calls)
		}
	})
}

func TestCancelStopsTheEngineAndGivesTheNumberBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, untilStopped)
		began := time.Now()
		go func() {
			<-time.After(20 * time.Second)
			b.scheduler.push()
		}()
		b.work(t)
		if took := time.Since(began); took > 45*time.Second {
			t.Errorf("stopped after %s", took)
		}
		a := b.memory.one(t)
		if a.State != reviewer.StateCancelled || a.Number != 0 || a.Cost != 10 || a.Estimate {
			t.Errorf("%+v", a)
		}
		if r := b.scheduler.release(t); r.Reason != reviewer.ReleaseCancelled {
			t.Errorf("released %+v", r)
		}
	})
}

// TestCancelBeforeTheStartCostsNothing is heard by the renewal that proves the claim.
func TestCancelBeforeTheStartCostsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, found)
		b.scheduler.cancel = true
		b.work(t)
		if a := b.memory.one(t); a.State != reviewer.StateVoided || a.Reason != "target_moved" || b.engine.calls != 0 {
			t.Errorf("%+v, %d engine calls", a, b.engine.calls)
		}
		if r := b.scheduler.release(t); r.Reason != reviewer.ReleaseCancelled {
			t.Errorf("released %+v", r)
		}
	})
}

// TestAResultIsKeptThoughTheTargetMoved so that it can be taken over when the diff comes back.
func TestAResultIsKeptThoughTheTargetMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		b = newBench(t, minute, func(context.Context) (engine.Output, error) {
			b.scheduler.push()
			return output, nil
		})
		b.work(t)
		if a := b.memory.one(t); a.State != reviewer.StateFinished || len(b.scheduler.committed)+len(b.scheduler.released) != 0 {
			t.Errorf("%+v, %+v", a, b.scheduler.committed)
		}
		b.scheduler.cancel = false
		b.work(t)
		if got := b.scheduler.accepted(t); !got.Adopted || b.engine.calls != 1 {
			t.Errorf("accepted %+v after %d engine calls", got, b.engine.calls)
		}
	})
}

func TestAnEngineThatDoesNotStopIsLeftBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := newBench(t, minute, func(context.Context) (engine.Output, error) {
			<-release
			return output, nil
		})
		b.work(t)
		if a := b.memory.one(t); a.State != reviewer.StateFailed || a.Reason != "engine_stuck" || !a.Estimate || a.Cost != a.Reserved {
			t.Errorf("%+v: nobody knows what it cost", a)
		}
		close(release)
	})
}

func TestAStopReleasesWhatIsNotPaidFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, found)
		stopping, stop := context.WithCancel(t.Context())
		b.Attempts = &stopsAt{Attempts: b.memory, stop: stop}
		b.Review(t.Context(), stopping, b.scheduler.claim(), time.Now())
		if a := b.memory.one(t); a.State != reviewer.StateVoided || b.engine.calls != 0 {
			t.Errorf("%+v, %d engine calls", a, b.engine.calls)
		}
		if r := b.scheduler.release(t); r.Reason != reviewer.ReleaseShuttingDown || r.RetryAfter != 0 {
			t.Errorf("released %+v", r)
		}
	})
}

// stopsAt stops the worker once an attempt is open.
type stopsAt struct {
	Attempts
	stop func()
}

func (s *stopsAt) Open(ctx context.Context, ask reviewer.Ask) (reviewer.Opening, error) {
	o, err := s.Attempts.Open(ctx, ask)
	s.stop()
	synctest.Wait()
	return o, err
}

func TestAStopWaitsForAnEngineAtWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopping, stop := context.WithCancel(t.Context())
		b := newBench(t, minute, func(context.Context) (engine.Output, error) {
			stop()
			<-time.After(minute)
			return output, nil
		})
		b.Review(t.Context(), stopping, b.scheduler.claim(), time.Now())
		b.scheduler.accepted(t)
	})
}

func TestACutOffEngineIsSettledAndReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, minute, untilStopped)
		work, cutOff := context.WithCancelCause(t.Context())
		go func() {
			<-time.After(10 * time.Second)
			cutOff(errShuttingDown)
		}()
		b.Review(work, t.Context(), b.scheduler.claim(), time.Now())
		if a := b.memory.one(t); a.State != reviewer.StateFailed || a.Reason != "shutting_down" || a.Cost != 10 {
			t.Errorf("%+v", a)
		}
		if r := b.scheduler.release(t); r.Reason != reviewer.ReleaseShuttingDown {
			t.Errorf("released %+v", r)
		}
	})
}
