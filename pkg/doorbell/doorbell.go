// Package doorbell rings workers awake through a Redis stream, one waker per ring.
//
// The stream carries identifiers, never work: what is due is a row in Postgres, and every worker also
// scans. So a ring may be lost, doubled or late, and nothing changes but the latency. A Redis that is
// away, flushed, restarted or hanging is never an error of the work.
package doorbell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Limit is the longest that anything waits on Redis.
const Limit = 100 * time.Millisecond

// Config says where Redis is.
type Config struct {
	Addr string `env:"REDIS_ADDR" envDefault:"127.0.0.1:6379" doc:"host:port of the Redis that carries the doorbell"`
}

// Validate refuses an address without host or port.
func (c Config) Validate() error {
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil || host == "" || port == "" {
		return fmt.Errorf("REDIS_ADDR: %q is not host:port", c.Addr)
	}
	return nil
}

// Ring is one call at the door.
type Ring struct {
	Stream string
	ID     string // the job id that the ringer gave
}

// field of a stream entry that holds the job id.
const field = "id"

// newClient builds a client that obeys its context, tries each thing once and says hello in one round
// trip: retrying is the scan's business.
func newClient(addr string, conns int) *redis.Client {
	quietLibrary()
	return redis.NewClient(&redis.Options{
		Addr:                  addr,
		Protocol:              2,
		PoolSize:              conns,
		ContextTimeoutEnabled: true,
		MaxRetries:            -1,
		DialerRetries:         1,
		DialTimeout:           Limit,
		PoolTimeout:           Limit,
		DisableIdentity:       true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	})
}

// quietLibrary stops the client library from printing plain text to stderr. Every failure that it prints
// also comes back as an error, which is counted or logged here.
var quietLibrary = sync.OnceFunc(func() { redis.SetLogger(discard{}) })

type discard struct{}

func (discard) Printf(context.Context, string, ...any) {}

// pause waits between half of d and d, so that workers do not come back in step, or until done is closed.
func pause(done <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d/2 + rand.N(d/2+1))
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.NewJSONHandler(io.Discard, nil))
	}
	return log
}

// missing tells that stream or group are gone: flushed, restarted without its data, or never made.
func missing(err error) bool {
	return redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED")
}

// empty tells that a read ended without a ring.
func empty(err error) bool { return errors.Is(err, redis.Nil) }
