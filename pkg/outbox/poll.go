package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/pg"
)

// poll looks for what no local commit announced: messages of a process that died, of a transaction that
// committed late, of a lease that lapsed, of before the start. It is one statement for all destinations,
// from the beginning of time, and brings every loop's low-water mark back to the oldest row that waits.
func (d *Dispatcher) poll(ctx context.Context, loops map[string]*loop) error {
	failures := 0
	for {
		err := d.peek(ctx, loops)
		switch {
		case err == nil && failures > 0:
			d.log.InfoContext(ctx, "outbox poll works again", "failures", failures)
			failures = 0
		case err != nil && ctx.Err() == nil:
			if failures++; failures == 1 {
				d.log.WarnContext(ctx, "outbox poll failed", "err", err)
			}
		}
		if !sleep(ctx, d.settings.Poll, d.jitter()) {
			return ctx.Err()
		}
	}
}

func (d *Dispatcher) peek(ctx context.Context, loops map[string]*loop) error {
	ctx, cancel := context.WithTimeout(ctx, tripTimeout)
	defer cancel()
	var b pg.Batch
	var oldest []entry
	b.Queue(d.outbox.sql.peek, d.destinations).Query(func(rows pgx.Rows) error {
		var err error
		oldest, err = collectEntries(rows)
		return err
	})
	if err := d.db.SystemBatch(ctx, &b); err != nil {
		return fmt.Errorf("peek at the outbox: %w", err)
	}
	for _, e := range oldest {
		loops[e.destination].nudge.found(e.at, e.delay)
	}
	return nil
}

// sleep waits for d, a fifth more or less, so that processes do not poll in step; false when ctx ended.
func sleep(ctx context.Context, d time.Duration, jitter float64) bool {
	t := time.NewTimer(time.Duration(float64(d) * (0.8 + 0.4*jitter)))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
