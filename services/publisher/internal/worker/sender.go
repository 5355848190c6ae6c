package worker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// Wakeup is a hint that something may be due. Losing one costs latency, never work.
type Wakeup chan struct{}

// NewWakeup returns a wakeup that holds one ring.
func NewWakeup() Wakeup { return make(Wakeup, 1) }

// Ring never blocks.
func (w Wakeup) Ring() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// Settings are the times and bounds of a sender.
type Settings struct {
	Lease   time.Duration // of an installation
	Timeout time.Duration // of a write to GitHub
	Spacing time.Duration // between two writes of one installation
	Poll    time.Duration // without a wakeup
	Senders int           // installations at a time
}

// Sender claims installations with due intents and sends them.
type Sender struct {
	Settings  Settings
	Rules     publisher.Rules
	Keys      publisher.Keyring
	Store     Store
	Scheduler Scheduler
	Reviewer  Reviewer
	Reader    Reader
	Remarker  Remarker
	Surfaces  map[publisher.SurfaceKind]Surface
	Healers   map[publisher.SurfaceKind]Healer // of surfaces that are looked at again
	Wakeup    Wakeup
	Log       *slog.Logger
	Tracer    trace.Tracer
	Metrics   *Metrics
}

// Run sends until ctx ends; a write that has begun is finished then.
func (s *Sender) Run(ctx context.Context) error {
	slots := make(chan struct{}, s.Settings.Senders)
	var busy sync.WaitGroup
	defer busy.Wait()
	failures := 0 // in a row
	for {
		select {
		case <-ctx.Done():
			return nil
		case slots <- struct{}{}:
		}
		began := time.Now()
		claim, found, err := s.Store.Claim(obs.Quiet(ctx), s.Settings.Lease)
		switch {
		case err == nil && failures > 0:
			s.Log.InfoContext(ctx, "senders are claimed again", "failures", failures)
			failures = 0
		case err != nil && ctx.Err() == nil:
			if failures++; failures == 1 {
				s.Log.WarnContext(ctx, "can't claim a sender; trying again", "err", err)
			}
		}
		if !found || err != nil {
			<-slots
			s.rest(ctx)
			continue
		}
		busy.Go(func() {
			defer func() { <-slots }()
			s.again(newSession(s, claim, began).run(ctx))
		})
	}
}

// rest waits for a wakeup or the next poll; jitter keeps replicas out of step.
func (s *Sender) rest(ctx context.Context) {
	poll := time.NewTimer(s.Settings.Poll - rand.N(s.Settings.Poll/4+1))
	defer poll.Stop()
	select {
	case <-ctx.Done():
	case <-s.Wakeup:
	case <-poll.C:
	}
}

// again rings when the installation is due next; it may be at once. What is long until then is found by a poll.
func (s *Sender) again(next time.Duration) {
	if next < 0 || next > time.Minute {
		return
	}
	time.AfterFunc(max(next, 10*time.Millisecond), s.Wakeup.Ring)
}
