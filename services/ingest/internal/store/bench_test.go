package store

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/benchtest"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

const (
	benchClients = 32
	benchSecret  = "a secret of a benchmark"
	benchHook    = "integration/1"
	benchHost    = "github.com"
)

// BenchmarkReceipt posts signed pull_request deliveries of 25 KB from 32 clients to the endpoint and its
// store. It is compared with the same endpoint over a transaction of four round trips, and with what the
// endpoint without a database and the commit of a bare row would make together.
func BenchmarkReceipt(b *testing.B) {
	d := pgtest.New(b, migrations.FS)
	benchtest.Durable(b, d)
	benchtest.Exec(b, d, "CREATE TABLE ingest.bare (id uuid PRIMARY KEY, tenant uuid NOT NULL, body bytea NOT NULL)",
		"GRANT INSERT ON ingest.bare TO fl_ingest")
	s := New(benchtest.Open(b, d, "ingest"), outbox.New("ingest"), ingest.Policy{Hook: benchHook})
	product, four, none := newEndpoint(b, s), newEndpoint(b, fourTrips{s}), newEndpoint(b, nothing{s})
	if err := product.post(); err != nil { // enrols the repository
		b.Fatal(err)
	}
	bare := bareRow(b.Context(), benchtest.Pool(b, d, "ingest"))
	post := func(e *endpoint) func(*testing.B) benchtest.Slice {
		return benchtest.Clients(benchClients, func(int) error { return e.post() })
	}
	got := benchtest.Compare(b,
		benchtest.Variant{Name: "receipt", Run: post(product)},
		benchtest.Variant{Name: "four-trip transaction", Run: post(four)},
		benchtest.Variant{Name: "without database", Run: post(none)},
		benchtest.Variant{Name: "bare row", Run: benchtest.Clients(benchClients, func(int) error { return bare() })},
	)
	stored := pgtest.Query[int](b, d, `SELECT LEAST((SELECT count(*) FROM ingest.deliveries), (SELECT count(*) FROM ingest.outbox WHERE key LIKE '%:activity:%'))::int`)
	if accepted := int(product.posted.Load() + four.posted.Load()); stored != accepted {
		b.Fatalf("%d deliveries were accepted, %d have a receipt and a message", accepted, stored)
	}
	overFour := got["receipt"].Over(got["four-trip transaction"])
	overSeries := got["receipt"].OverSeries(got["without database"], got["bare row"])
	b.ReportMetric(overFour.Pooled, "receipt/four")
	b.ReportMetric(overSeries.Pooled, "receipt/series")
	b.ReportMetric(got["receipt"].Rate(), "deliveries/s")
	benchtest.Report(b,
		benchtest.Figure{What: "webhook of 25 KB, c=32 / the same inserts in a transaction of 4 trips", Ratio: overFour, AtLeast: 1.3},
		benchtest.Figure{What: "webhook of 25 KB, c=32 / 1/(1/no database + 1/bare row in 3 trips)", Ratio: overSeries, AtLeast: 0.9},
	)
}

// fourTrips stores what the product stores in BEGIN, INSERT, INSERT and COMMIT.
type fourTrips struct{ s *Store }

func (f fourTrips) Receive(ctx context.Context, src ingest.Source, digest [32]byte, size int64, e ingest.Event) (ingest.Answer, error) {
	r, err := f.s.decided(ctx, src, digest, size, e)
	if err != nil {
		return ingest.Answer{}, err
	}
	err = f.s.db.System(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, insertReceipt, receiptArgs(r)); err != nil {
			return err
		}
		return f.s.outbox.Enqueue(ctx, tx, activityMessage(r, 0))
	})
	return ingest.Answer{Receipt: r.ID, Decision: r.Decision}, err
}

// nothing decides and stores nothing.
type nothing struct{ s *Store }

func (n nothing) Receive(ctx context.Context, src ingest.Source, digest [32]byte, size int64, e ingest.Event) (ingest.Answer, error) {
	r, err := n.s.decided(ctx, src, digest, size, e)
	return ingest.Answer{Receipt: r.ID, Decision: r.Decision}, err
}

// decided is all that Receive does before it writes.
func (s *Store) decided(ctx context.Context, src ingest.Source, digest [32]byte, size int64, e ingest.Event) (ingest.Receipt, error) {
	decision := s.policy.Decide(src, e)
	r := ingest.NewReceipt(ingest.ReceiptID(newID()), src, digest, size, e, decision)
	r.TraceParent = obs.Inject(ctx)
	i, err := s.integration(ctx, owner{src.Host, e.Repository.Owner.ID, e.InstallationID, e.Repository.ID})
	if err != nil {
		return r, err
	}
	admitted, enrol := ingest.Admit(decision, e, i, s.policy)
	if own(&r, admitted, i); enrol || !r.Decision.Activity() {
		return r, errors.New("the repository is not enrolled")
	}
	return r, nil
}

func bareRow(ctx context.Context, pool *pgxpool.Pool) func() error {
	binary := func(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} } // as pkg/pg sends it
	tenant, body := binary(uuid.New()), bytes.Repeat([]byte("b"), 200)
	return func() error {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO ingest.bare (id, tenant, body) VALUES ($1, $2, $3)", binary(newID()), tenant, body); err != nil {
			return err
		}
		return tx.Commit(ctx)
	}
}
