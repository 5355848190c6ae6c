package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/pkg/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, redistest.Goroutines()...) }

func client(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestNewIsSharedAndAnswers(t *testing.T) {
	t.Parallel()
	a, b := redistest.New(t), redistest.New(t)
	if a != b {
		t.Errorf("two servers: %s and %s", a, b)
	}
	if err := client(t, a).Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestServerIsOnesOwn(t *testing.T) {
	t.Parallel()
	r := redistest.Server(t)
	if r.Addr() == redistest.New(t) {
		t.Fatal("it is the shared one")
	}
	if !r.Real() {
		t.Skip("redis-server is not installed")
	}
	c := client(t, r.Addr())
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("a paused server answered")
	}
	if err := r.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("a stopped server answered")
	}
}
