// Package bench compares Fenceline's outbox with another queue in PostgreSQL. It is a module of its own
// so that no service depends on what is compared.
package bench

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/benchtest"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

const insertRow = `INSERT INTO scheduler.rows (id, tenant, body) VALUES ($1, $2, $3)`

var (
	body   = bytes.Repeat([]byte("b"), 200)
	text   = string(bytes.Repeat([]byte("m"), 300))
	tenant = uuid.MustParse("018f0000-0000-7000-8000-00000000000a")
)

// job is River's message.
type job struct {
	Text string `json:"text"`
}

// Kind implements river.JobArgs.
func (job) Kind() string { return "settle" }

// BenchmarkEnqueueRiver writes a business row with a message: through the outbox, in a batch under the
// tenant's row-level security, and through River's InsertTx, which knows no tenant.
func BenchmarkEnqueueRiver(b *testing.B) {
	d := pgtest.New(b, migrations.FS)
	benchtest.Durable(b, d)
	db, plain := benchtest.Open(b, d, "scheduler"), benchtest.Pool(b, d, "scheduler")
	client := newRiver(b, d, plain)
	box := outbox.New("scheduler")
	for _, clients := range []int{8, 32} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			ctx := b.Context()
			got := benchtest.Compare(b,
				benchtest.Variant{Name: "River", Run: benchtest.Clients(clients, func(int) error { return enqueueRiver(ctx, plain, client) })},
				benchtest.Variant{Name: "outbox", Run: benchtest.Clients(clients, func(int) error { return enqueue(ctx, db, box) })},
			)
			ratio := got["outbox"].Over(got["River"])
			b.ReportMetric(ratio.Pooled, "outbox/river")
			benchtest.Report(b, benchtest.Figure{
				What: fmt.Sprintf("enqueue in a batch with tenant / River's InsertTx, c=%d", clients), Ratio: ratio,
			})
		})
	}
}

// newRiver migrates River into a schema of its own and lets the service's role use it.
func newRiver(b *testing.B, d *pgtest.DB, plain *pgxpool.Pool) *river.Client[pgx.Tx] {
	b.Helper()
	benchtest.Exec(b, d, "CREATE TABLE scheduler.rows (id uuid PRIMARY KEY, tenant uuid NOT NULL, body bytea NOT NULL)",
		"ALTER TABLE scheduler.rows ENABLE ROW LEVEL SECURITY", "ALTER TABLE scheduler.rows FORCE ROW LEVEL SECURITY",
		"CREATE POLICY rows_system ON scheduler.rows TO fl_scheduler USING (true) WITH CHECK (true)",
		`CREATE POLICY rows_tenant ON scheduler.rows TO fl_scheduler_tenant
		 USING (tenant = current_setting('fenceline.tenant')::uuid) WITH CHECK (tenant = current_setting('fenceline.tenant')::uuid)`,
		"GRANT SELECT, INSERT ON scheduler.rows TO fl_scheduler, fl_scheduler_tenant", "CREATE SCHEMA river")
	admin, err := pgxpool.New(b.Context(), d.AdminDSN())
	if err != nil {
		b.Fatal(err)
	}
	defer admin.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(admin), &rivermigrate.Config{Schema: "river"})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := migrator.Migrate(b.Context(), rivermigrate.DirectionUp, nil); err != nil {
		b.Fatal(err)
	}
	benchtest.Exec(b, d, "GRANT USAGE ON SCHEMA river TO fl_scheduler", "GRANT ALL ON ALL TABLES IN SCHEMA river TO fl_scheduler",
		"GRANT ALL ON ALL SEQUENCES IN SCHEMA river TO fl_scheduler")
	client, err := river.NewClient(riverpgxv5.New(plain), &river.Config{Schema: "river"})
	if err != nil {
		b.Fatal(err)
	}
	return client
}

func enqueueRiver(ctx context.Context, pool *pgxpool.Pool, client *river.Client[pgx.Tx]) error {
	binary := func(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, insertRow, binary(uuid.Must(uuid.NewV7())), binary(tenant), body); err != nil {
			return err
		}
		_, err := client.InsertTx(ctx, tx, job{Text: text}, nil)
		return err
	})
}

func enqueue(ctx context.Context, db *pg.DB, box *outbox.Outbox) error {
	id := uuid.Must(uuid.NewV7())
	var batch pg.Batch
	batch.Queue(insertRow, id, tenant, body)
	err := box.Queue(ctx, &batch, outbox.Message{
		Destination: "/fenceline.ledger.v1.LedgerService/Settle", Request: wrapperspb.String(text), Key: "settle:" + id.String(), Tenant: tenant,
	})
	if err != nil {
		return err
	}
	return db.TenantBatch(ctx, tenant, &batch)
}
