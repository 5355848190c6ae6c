package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/purge"
)

// minRetention is the least that dispatched messages are kept: a dispatcher that lost its marks sends
// again, and a receiver that lost its answer is asked again, well within it.
const minRetention = time.Hour

// Retention is the purge of what was dispatched. Keys go with their rows, so that a cause that comes again
// after the retention is a new message: receivers know their own keys for longer. What is parked or
// pending stays.
func (o *Outbox) Retention(db *pg.DB, s Settings) purge.Kind {
	return purge.Kind{Name: "outbox", Retention: s.Retention, Remove: func(ctx context.Context, age time.Duration, limit int) (int, error) {
		n := 0
		b := &pg.Batch{}
		b.Queue(o.sql.purge, pgx.NamedArgs{"age": age, "limit": limit}).Exec(func(tag pgconn.CommandTag) error {
			n = int(tag.RowsAffected())
			return nil
		})
		if err := db.SystemBatch(ctx, b); err != nil {
			return 0, fmt.Errorf("purge outbox: %w", err)
		}
		return n, nil
	}}
}

// Erase removes a tenant's messages: those dispatched, parked, or only ringing a doorbell. Others are
// still on their way, and an error says so: what they would settle elsewhere must not be lost.
func (o *Outbox) Erase(db *pg.DB, tenant uuid.UUID) purge.Step {
	return func(ctx context.Context, limit int) (int, bool, error) {
		n, waiting := 0, false
		from, to := keysOf(tenant)
		args := pgx.NamedArgs{"tenant": tenant, "from": from, "to": to, "limit": limit}
		b := &pg.Batch{}
		b.Queue(o.sql.erase, args).Exec(func(tag pgconn.CommandTag) error {
			n = int(tag.RowsAffected())
			return nil
		})
		b.Queue(o.sql.waiting, args).QueryRow(func(row pgx.Row) error { return row.Scan(&waiting) })
		if err := db.SystemBatch(ctx, b); err != nil {
			return 0, false, fmt.Errorf("erase outbox: %w", err)
		}
		if n < limit && waiting {
			return n, true, &purge.Unfinished{After: time.Minute, Why: "messages of the tenant are still on their way"}
		}
		return n, n == limit, nil
	}
}

// keysOf bounds the stored keys of a tenant by two that are compared digit by digit, whatever the
// database's collation makes of the colon after them.
func keysOf(tenant uuid.UUID) (from, to string) {
	next := tenant
	for i := len(next) - 1; i >= 0; i-- {
		next[i]++
		if next[i] != 0 {
			return tenant.String(), next.String()
		}
	}
	return tenant.String(), "g" // after every hexadecimal digit
}

func (s Settings) validRetention() error {
	if s.Retention != 0 && s.Retention < minRetention {
		return fmt.Errorf("OUTBOX_RETENTION: %s is neither 0, for ever, nor at least %s", s.Retention, minRetention)
	}
	return nil
}
