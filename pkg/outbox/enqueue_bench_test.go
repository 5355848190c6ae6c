package outbox

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fenceline-dev/fenceline/pkg/benchtest"
	"github.com/fenceline-dev/fenceline/pkg/pg"
)

// BenchmarkEnqueue writes a business row with its message, under a tenant's row-level security and with
// the trace: in one round trip, and in a transaction of four. The base is the business row alone, without
// tenant or policy, in the three round trips of a plain transaction.
func BenchmarkEnqueue(b *testing.B) {
	e := newBenchEnv(b)
	for _, clients := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			run := func(op func(context.Context) error) func(*testing.B) benchtest.Slice {
				ctx := tracedContext(b.Context())
				return benchtest.Clients(clients, func(int) error { return op(ctx) })
			}
			got := benchtest.Compare(b,
				benchtest.Variant{Name: "bare row", Run: run(e.bareRow)},
				benchtest.Variant{Name: "tenant batch", Run: run(e.enqueueBatch)},
				benchtest.Variant{Name: "tenant transaction", Run: run(e.enqueueTx)},
			)
			batch, plain := got["tenant batch"].Over(got["bare row"]), got["tenant transaction"].Over(got["bare row"])
			b.ReportMetric(batch.Pooled, "batch/bare")
			b.ReportMetric(plain.Pooled, "tx/bare")
			aim := 1.0
			if clients == 1 {
				aim = 0 // one flush after the other: noise decides
			}
			benchtest.Report(b,
				benchtest.Figure{What: fmt.Sprintf("enqueue in a batch with tenant and trace / bare row in 3 trips, c=%d", clients), Ratio: batch, AtLeast: aim},
				benchtest.Figure{What: fmt.Sprintf("enqueue in a tenant transaction of 4 trips / bare row in 3 trips, c=%d", clients), Ratio: plain},
			)
		})
	}
}

// businessBody is of the size of a small row, its message of the size of a typical request.
var (
	businessBody = bytes.Repeat([]byte("b"), 200)
	messageBody  = string(bytes.Repeat([]byte("m"), 300))
	benchTenant  = uuid.MustParse("018f0000-0000-7000-8000-00000000000a")
)

const (
	insertBare  = `INSERT INTO scheduler.bare (id, tenant, body) VALUES ($1, $2, $3)`
	insertOwned = `INSERT INTO scheduler.owned (id, tenant, body) VALUES ($1, $2, $3)`
)

func (e *benchEnv) bareRow(ctx context.Context) error {
	tx, err := e.plain.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, insertBare, binary(must(uuid.NewV7())), binary(benchTenant), businessBody); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// binary spares a plain pool pgx's detour through the text of a uuid.UUID, as pkg/pg does for services.
func binary(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

func (e *benchEnv) message(id uuid.UUID) Message {
	return Message{Destination: settle, Request: text(messageBody), Key: "settle:" + id.String(), Tenant: benchTenant}
}

func (e *benchEnv) enqueueBatch(ctx context.Context) error {
	id := must(uuid.NewV7())
	var batch pg.Batch
	batch.Queue(insertOwned, id, benchTenant, businessBody)
	if err := e.box.Queue(ctx, &batch, e.message(id)); err != nil {
		return err
	}
	return e.db.TenantBatch(ctx, benchTenant, &batch)
}

func (e *benchEnv) enqueueTx(ctx context.Context) error {
	id := must(uuid.NewV7())
	return e.db.Tenant(ctx, benchTenant, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, insertOwned, id, benchTenant, businessBody); err != nil {
			return err
		}
		return e.box.Enqueue(ctx, tx, e.message(id))
	})
}
