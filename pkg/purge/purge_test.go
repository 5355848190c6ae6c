package purge_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fenceline-dev/fenceline/pkg/purge"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
)

var quiet = slog.New(slog.NewJSONHandler(io.Discard, nil))

// store is so many rows past their retention.
type store struct {
	mu sync.Mutex
	seen
	fails bool
}

type seen struct {
	left, calls, most int
	age               time.Duration
	at                []time.Time
}

// now is what was seen up to now.
func (s *store) now() seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func (s *store) remove(_ context.Context, age time.Duration, limit int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.age, s.most = age, max(s.most, limit)
	s.at = append(s.at, time.Now())
	if s.fails {
		return 0, errors.New("away")
	}
	n := min(limit, s.left)
	s.left -= n
	return n, nil
}

func TestPurgerWalksEveryKindInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		many, few, kept, broken := &store{seen: seen{left: 1700}}, &store{seen: seen{left: 3}}, &store{seen: seen{left: 5}}, &store{fails: true}
		settings := purge.Settings{Every: 10 * time.Minute, Batch: 500, Pause: time.Second}
		p, err := purge.New(settings, quiet, noop.NewMeterProvider(),
			purge.Kind{Name: "broken", Retention: time.Hour, Remove: broken.remove},
			purge.Kind{Name: "many", Retention: time.Hour, Remove: many.remove},
			purge.Kind{Name: "heavy", Retention: 2 * time.Hour, Most: 20, Remove: few.remove},
			purge.Kind{Name: "kept", Remove: kept.remove})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(settings.Every + time.Minute) //nolint:forbidigo // the bubble's time
		synctest.Wait()
		got := many.now()
		if got.left != 0 || got.calls < 4 || got.most != 500 || got.at[1].Sub(got.at[0]) != settings.Pause {
			t.Errorf("many: %+v", got)
		}
		if got := few.now(); got.left != 0 || got.most != 20 || got.age != 2*time.Hour {
			t.Errorf("heavy: %+v", got)
		}
		if got := kept.now(); got.calls != 0 {
			t.Errorf("what is kept for ever was looked for %d times", got.calls)
		}
		time.Sleep(10 * settings.Every) //nolint:forbidigo // the bubble's time
		synctest.Wait()
		if idle := many.now().calls - got.calls; idle < 9 || idle > 15 {
			t.Errorf("%d statements in ten idle intervals", idle)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestDrainTakesStepsInOrderUntilTheTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := 1200, 3
		step := func(left *int, takes time.Duration) purge.Step {
			return func(_ context.Context, limit int) (int, bool, error) {
				time.Sleep(takes) //nolint:forbidigo // the bubble's time
				n := min(limit, *left)
				*left -= n
				return n, *left > 0, nil
			}
		}
		if n, err := purge.Drain(t.Context(), step(&first, 0), step(&second, 0)); n != 1203 || err != nil {
			t.Fatalf("Drain = %d, %v", n, err)
		}
		first, second = 100_000, 3
		n, err := purge.Drain(t.Context(), step(&first, time.Second), step(&second, 0))
		if n == 0 || n > 5000 || second != 3 {
			t.Errorf("removed %d, the next step has %d left", n, second)
		}
		after, asked := rpc.RetryAfter(err)
		if status.Code(err) != codes.Unavailable || rpc.Reason(err) != purge.ReasonUnfinished || !asked || after != purge.MoreAfter {
			t.Errorf("%v, again in %s", err, after)
		}
	})
}
