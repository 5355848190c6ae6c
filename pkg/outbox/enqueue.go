package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"google.golang.org/protobuf/proto"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/pg"
)

// Enqueue writes the messages in the transaction that causes them, in one statement, and nudges the
// dispatcher once it has committed. ErrKeyConflict leaves the transaction aborted.
func (o *Outbox) Enqueue(ctx context.Context, tx *pg.Tx, msgs ...Message) error {
	in, err := o.insertion(ctx, msgs)
	if err != nil || in.sql == "" {
		return err
	}
	rows, err := tx.Query(ctx, in.sql, in.args...)
	if err != nil {
		return enqueueError(err)
	}
	written, err := in.collect(rows)
	if err != nil {
		return enqueueError(err)
	}
	tx.OnCommit(func() { o.tell(written) })
	return nil
}

// Queue is Enqueue as one more statement of a batch. An error of the statement, ErrKeyConflict among
// them, comes from whatever sends the batch.
func (o *Outbox) Queue(ctx context.Context, b *pg.Batch, msgs ...Message) error {
	in, err := o.insertion(ctx, msgs)
	if err != nil || in.sql == "" {
		return err
	}
	var written []entry
	b.Queue(in.sql, in.args...).Query(func(rows pgx.Rows) error {
		got, err := in.collect(rows)
		written = got
		return enqueueError(err)
	})
	b.OnCommit(func() { o.tell(written) })
	return nil
}

// insertion is the statement that writes the rows.
type insertion struct {
	sql   string
	args  []any
	rows  []row
	trace string
}

// insertion has no statement for no messages. One alone, the usual case, has its own: to unnest seven
// arrays costs the server as much as the row.
func (o *Outbox) insertion(ctx context.Context, msgs []Message) (insertion, error) {
	rows, err := rowsOf(msgs)
	in := insertion{rows: rows, trace: obs.Inject(ctx)}
	switch {
	case err != nil || len(rows) == 0:
		return insertion{}, err
	case len(rows) == 1:
		r := rows[0]
		in.sql, in.args = o.sql.enqueueOne, []any{in.trace, r.id, r.tenant, r.key, r.digest, r.destination, r.payload, r.notBefore}
	default:
		in.sql, in.args = o.sql.enqueue, append([]any{in.trace}, arraysOf(rows)...)
	}
	return in, nil
}

// collect reads what was written: a message that was there before is not among it.
func (in insertion) collect(rows pgx.Rows) ([]entry, error) {
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (entry, error) {
		var e entry
		var id pgtype.UUID
		var now time.Time
		if err := r.Scan(&id, &e.destination, &e.at, &now); err != nil {
			return e, err
		}
		e.delay = e.at.Sub(now)
		if strings.HasPrefix(e.destination, doorbell) {
			i := slices.IndexFunc(in.rows, func(r row) bool { return r.id == id })
			e.ring = &claimed{id: id.Bytes, tenant: in.rows[i].tenant, key: in.rows[i].key, traceparent: in.trace, availableAt: e.at}
		}
		return e, nil
	})
}

func rowsOf(msgs []Message) ([]row, error) {
	rows := make([]row, 0, len(msgs))
	for _, m := range msgs {
		r, err := rowOf(m)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return distinct(rows)
}

func arraysOf(rows []row) []any {
	var (
		ids, tenants  = make([]pgtype.UUID, len(rows)), make([]pgtype.UUID, len(rows))
		keys, targets = make([]string, len(rows)), make([]string, len(rows))
		sums, bodies  = make([][]byte, len(rows)), make([][]byte, len(rows))
		befores       = make([]pgtype.Timestamptz, len(rows))
	)
	for i, r := range rows {
		ids[i], tenants[i], keys[i], sums[i] = r.id, r.tenant, r.key, r.digest
		targets[i], bodies[i], befores[i] = r.destination, r.payload, r.notBefore
	}
	return []any{ids, tenants, keys, sums, targets, bodies, befores}
}

type row struct {
	id, tenant       pgtype.UUID
	key, destination string
	digest, payload  []byte
	notBefore        pgtype.Timestamptz
}

func rowOf(m Message) (row, error) {
	if err := m.validate(); err != nil {
		return row{}, err
	}
	payload := []byte{} // not nil: the column is NOT NULL
	if m.Request != nil {
		var err error
		payload, err = proto.MarshalOptions{Deterministic: true}.MarshalAppend(payload, m.Request)
		if err != nil {
			return row{}, fmt.Errorf("encode request for %s: %w", m.Destination, err)
		}
	}
	if len(payload) > MaxPayload {
		return row{}, fmt.Errorf("%w: %d bytes for %s", ErrTooLarge, len(payload), m.Destination)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return row{}, fmt.Errorf("mint message id: %w", err)
	}
	return row{
		id: pgtype.UUID{Bytes: id, Valid: true}, tenant: pgtype.UUID{Bytes: m.Tenant, Valid: m.Tenant != uuid.Nil},
		key: m.storedKey(), destination: m.Destination, digest: digest(m.Destination, payload), payload: payload,
		notBefore: pgtype.Timestamptz{Time: m.NotBefore, Valid: !m.NotBefore.IsZero()},
	}, nil
}

// digest tells two messages of one key apart. The time is no part of it: asked again, the first stands.
func digest(destination string, payload []byte) []byte {
	h := sha256.New()
	h.Write([]byte(destination))
	h.Write([]byte{0})
	h.Write(payload)
	return h.Sum(nil)
}

// distinct sorts by key, so that two transactions lock equal keys in one order, and folds equal messages,
// which one statement could not insert twice.
func distinct(rows []row) ([]row, error) {
	if len(rows) < 2 {
		return rows, nil
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.key, b.key) })
	out := rows[:1]
	for _, r := range rows[1:] {
		last := out[len(out)-1]
		switch {
		case r.key != last.key:
			out = append(out, r)
		case !slices.Equal(r.digest, last.digest):
			return nil, fmt.Errorf("%w: twice in one call, for %s and %s", ErrKeyConflict, last.destination, r.destination)
		}
	}
	return out, nil
}

// entry is what a nudge needs of a row that was written: not the row.
type entry struct {
	destination string
	at          time.Time     // available_at, by the database's clock
	delay       time.Duration // until then, as the statement saw it
	ring        *claimed      // what a doorbell that is due needs to be rung without another look
}

func collectEntries(rows pgx.Rows) ([]entry, error) {
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (entry, error) {
		var e entry
		var secs float64
		err := r.Scan(&e.destination, &e.at, &secs)
		e.delay = seconds(secs)
		return e, err
	})
}

func enqueueError(err error) error {
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &pgErr) && pgErr.Code == "23502" && pgErr.TableName == "outbox" && pgErr.ColumnName == "digest":
		return fmt.Errorf("%w: %w", ErrKeyConflict, err)
	default:
		return fmt.Errorf("enqueue: %w", err)
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
