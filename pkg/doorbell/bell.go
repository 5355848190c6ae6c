package doorbell

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// maxRings bounds a stream, roughly. Rings beyond it are lost, which the scan makes good.
const maxRings = 10_000

// ringers bounds the connections of one Bell.
const ringers = 16

// Bell rings. Its zero value is not usable.
type Bell struct{ rdb *redis.Client }

// NewBell returns a bell that connects at its first ring.
func NewBell(cfg Config) *Bell { return &Bell{rdb: newClient(cfg.Addr, ringers)} }

// Ring puts id on the stream. It returns within Limit whatever Redis does, and tries once: a caller that
// gets an error has nothing to repeat, since the scan finds the work.
func (b *Bell) Ring(ctx context.Context, stream, id string) error {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	err := b.rdb.XAdd(ctx, &redis.XAddArgs{
		Stream: stream, MaxLen: maxRings, Approx: true, Values: []string{field, id},
	}).Err()
	if err != nil {
		return fmt.Errorf("ring %s: %w", stream, err)
	}
	return nil
}

// Close ends the bell's connections.
func (b *Bell) Close() error { return b.rdb.Close() }
