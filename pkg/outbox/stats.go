package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fenceline-dev/fenceline/pkg/pg"
)

// count is what waits at one destination: open rows, or with a reason the rows parked for it.
type count struct {
	destination string
	reason      string // of parked rows; empty for open ones
	messages    int64
	due         int64
	stale       int64
	oldest      time.Duration
	newestStale time.Time
}

// readStats counts what is open or parked. Its cost is that of the backlog, not of the table.
func readStats(ctx context.Context, db *pg.DB, o *Outbox, staleAfter time.Duration) ([]count, error) {
	var b pg.Batch
	var counts []count
	b.Queue(o.sql.stats, staleAfter.Seconds()).Query(func(rows pgx.Rows) error {
		var err error
		counts, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (count, error) {
			var c count
			var oldest float64
			var newest pgtype.Timestamptz
			err := r.Scan(&c.destination, &c.reason, &c.messages, &c.due, &c.stale, &oldest, &newest)
			c.oldest, c.newestStale = seconds(oldest), newest.Time
			return c, err
		})
		return err
	})
	if err := db.SystemBatch(ctx, &b); err != nil {
		return nil, fmt.Errorf("count the outbox: %w", err)
	}
	return counts, nil
}

// watch counts the outbox for the metrics and raises the stale alert.
func (d *Dispatcher) watch(ctx context.Context) error {
	alerts := staleAlerts{}
	for {
		if err := d.look(ctx, alerts); err != nil && ctx.Err() == nil {
			d.log.DebugContext(ctx, "outbox not counted", "err", err)
		}
		if !sleep(ctx, d.settings.Watch, d.jitter()) {
			return ctx.Err()
		}
	}
}

func (d *Dispatcher) look(ctx context.Context, alerts staleAlerts) error {
	ctx, cancel := context.WithTimeout(ctx, tripTimeout)
	defer cancel()
	counts, err := readStats(ctx, d.db, d.outbox, d.settings.StaleAfter)
	if err != nil {
		return err
	}
	d.metrics.set(counts)
	for _, c := range alerts.fresh(counts) {
		d.log.WarnContext(ctx, "messages are stale", "destination", c.destination, "messages", c.stale,
			"oldest_age", c.oldest.Round(time.Second).String())
	}
	return nil
}

// staleAlerts remembers, by destination, up to which NotBefore stale rows were reported, so that each set
// of rows makes one line.
type staleAlerts map[string]time.Time

// fresh returns the destinations that hold stale rows which no line has named yet.
func (a staleAlerts) fresh(counts []count) []count {
	var out []count
	stale := map[string]bool{}
	for _, c := range counts {
		if c.stale == 0 {
			continue
		}
		stale[c.destination] = true
		if c.newestStale.After(a[c.destination]) {
			a[c.destination] = c.newestStale
			out = append(out, c)
		}
	}
	for destination := range a {
		if !stale[destination] {
			delete(a, destination)
		}
	}
	return out
}
