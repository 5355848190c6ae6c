package worker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// absent is a store whose database is away until it is told to be back.
type absent struct {
	Store
	back  atomic.Bool
	asked atomic.Int64
}

func (a *absent) Claim(context.Context, time.Duration) (publisher.Claim, bool, error) {
	a.asked.Add(1)
	if a.back.Load() {
		return publisher.Claim{}, false, nil
	}
	return publisher.Claim{}, false, errors.New("database unavailable")
}

// TestADatabaseThatIsAwayIsSaidOnce polls through an outage of an hour.
func TestADatabaseThatIsAwayIsSaidOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		store := &absent{}
		s := &Sender{
			Settings: Settings{Lease: time.Minute, Poll: 5 * time.Second, Senders: 2}, Store: store, Wakeup: NewWakeup(),
			Log: slog.New(slog.NewTextHandler(&out, nil)),
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		<-time.After(time.Hour)
		store.back.Store(true)
		<-time.After(time.Minute)
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(out.Bytes(), []byte("\n")); n != 2 || store.asked.Load() < 600 {
			t.Errorf("asked %d times and said %d lines, want one of the outage and one of its end:\n%.600s", store.asked.Load(), n, out.Bytes())
		}
	})
}
