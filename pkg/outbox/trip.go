package outbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fenceline-dev/fenceline/pkg/pg"
)

// claimed is a row under this dispatcher's lease.
type claimed struct {
	id          uuid.UUID
	claim       uuid.UUID
	tenant      pgtype.UUID
	key         string
	payload     []byte
	traceparent string
	attempts    int
	availableAt time.Time
	recordedAt  time.Time
	age         time.Duration // since NotBefore, when it was claimed
}

// mark is how a claimed row ends.
type mark struct {
	row     claimed
	verdict Verdict
	err     string // for the operator, bounded
}

// trip is one round trip to the database, one implicit transaction: the marks of one batch and the claim
// of the next. A message alone costs two of them; a ring one, since nothing depends on it: it is marked
// before it is tried.
type trip struct {
	rings bool
	marks []mark
	claim bool
	low   time.Time // zero: from the beginning
	limit int

	accepted map[uuid.UUID]bool
	delayed  []entry
	rows     []claimed // in claim order
}

func (d *Dispatcher) send(ctx context.Context, destination string, t *trip) error {
	var b pg.Batch
	// A crash of the server that forgets a claim or a mark has the message sent again, as it may be anyway.
	b.NoWait()
	if len(t.marks) > 0 {
		b.Queue(d.outbox.sql.mark, markArgs(t.marks)...).Query(func(rows pgx.Rows) error {
			return t.readMarks(destination, rows)
		})
	}
	if t.claim {
		id := uuid.New()
		low := pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
		if !t.low.IsZero() {
			low = pgtype.Timestamptz{Time: t.low, Valid: true}
		}
		read := func(rows pgx.Rows) error { return t.readClaim(id, rows) }
		if t.rings {
			b.Queue(d.outbox.sql.take, destination, low, t.limit).Query(read)
		} else {
			b.Queue(d.outbox.sql.claim, destination, low, t.limit, pgtype.UUID{Bytes: id, Valid: true},
				d.settings.Lease.Seconds()).Query(read)
		}
	}
	if err := d.db.SystemBatch(ctx, &b); err != nil {
		return fmt.Errorf("mark %d and claim for %s: %w", len(t.marks), destination, err)
	}
	return nil
}

func markArgs(marks []mark) []any {
	n := len(marks)
	ids, claims := make([]pgtype.UUID, n), make([]pgtype.UUID, n)
	sent, reasons := make([]bool, n), make([]string, n)
	delays, attempts, errs := make([]float64, n), make([]int32, n), make([]string, n)
	for i, m := range marks {
		ids[i] = pgtype.UUID{Bytes: m.row.id, Valid: true}
		claims[i] = pgtype.UUID{Bytes: m.row.claim, Valid: true}
		sent[i] = m.verdict.Outcome.final()
		reasons[i], delays[i], errs[i] = m.verdict.Reason, m.verdict.Delay.Seconds(), m.err
		if m.verdict.Counted {
			attempts[i] = 1
		}
	}
	return []any{ids, claims, sent, reasons, delays, attempts, errs}
}

// readMarks notes which marks the fence let through, and when the delayed ones are due.
func (t *trip) readMarks(destination string, rows pgx.Rows) error {
	t.accepted, t.delayed = make(map[uuid.UUID]bool, len(t.marks)), nil
	var (
		id   pgtype.UUID
		at   time.Time
		secs float64
	)
	_, err := pgx.ForEachRow(rows, []any{&id, &at, &secs}, func() error {
		t.accepted[id.Bytes] = true
		if secs > 0 {
			t.delayed = append(t.delayed, entry{destination: destination, at: at, delay: seconds(secs)})
		}
		return nil
	})
	return err
}

func (t *trip) readClaim(claim uuid.UUID, rows pgx.Rows) error {
	t.rows = nil
	rs, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (claimed, error) {
		var (
			c    = claimed{claim: claim}
			id   pgtype.UUID
			secs float64
		)
		err := r.Scan(&id, &c.tenant, &c.key, &c.payload, &c.traceparent, &c.attempts, &c.availableAt, &c.recordedAt, &secs)
		c.id, c.age = id.Bytes, seconds(secs)
		if t.rings {
			c.attempts-- // counted in advance
		}
		return c, err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(rs, func(a, b claimed) int {
		return cmp.Or(a.availableAt.Compare(b.availableAt), slices.Compare(a.id[:], b.id[:]))
	})
	t.rows = rs
	return nil
}
