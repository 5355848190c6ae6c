package outbox

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

func TestQueriesPrepare(t *testing.T) {
	t.Parallel()
	pgtest.PrepareAll(t, newEnv(t).DB, "scheduler", Queries("scheduler"))
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	pgtest.Catalog(t, newEnv(t).DB)
}

func TestSchemasDifferByNameAlone(t *testing.T) {
	t.Parallel()
	read := func(schema string) string {
		return strings.ReplaceAll(string(must(readMigration(schema))), schema, "@")
	}
	for _, schema := range []string{"ingest", "reviewer", "ledger", "publisher"} {
		if read(schema) != read("scheduler") {
			t.Errorf("the outbox of %s differs", schema)
		}
	}
}

func TestEnqueueStoresAMessage(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	tenant := uuid.New()
	sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	ctx := trace.ContextWithSpanContext(t.Context(), sc)
	later := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	err := e.db.System(ctx, func(tx *pg.Tx) error {
		return e.box.Enqueue(ctx, tx,
			Message{Destination: settle, Request: text("x"), Key: "settle:1", Tenant: tenant, NotBefore: later},
			Message{Destination: bell, Key: "ring:1"})
	})
	if err != nil {
		t.Fatal(err)
	}
	n := e.rows(t, `key = $1 AND tenant = $2 AND destination = $3 AND payload = $4 AND not_before = $5 AND available_at = $5
		AND attempts = 0 AND traceparent = '00-01000000000000000000000000000000-0200000000000000-01'`,
		tenant.String()+":settle:1", tenant, settle, must(proto.Marshal(text("x"))), later)
	if n != 1 {
		t.Error("the call is not stored as written")
	}
	if e.rows(t, `key = 'system:ring:1' AND tenant IS NULL AND payload = '' AND available_at <= clock_timestamp()`) != 1 {
		t.Error("the ring is not stored as written")
	}
}

func TestSameKeySameContentIsOneMessage(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	m := Message{Destination: settle, Request: text("x"), Key: "k"}
	e.enqueue(t, m, m)
	before := pgtest.Query[string](t, e.DB, "SELECT ctid::text || xmin::text FROM scheduler.outbox")
	again := m
	again.NotBefore = time.Now().Add(time.Hour)
	e.enqueue(t, again)
	if after := pgtest.Query[string](t, e.DB, "SELECT ctid::text || xmin::text FROM scheduler.outbox"); after != before {
		t.Error("a repeat rewrote the row")
	}
}

func TestSameKeyOtherContentAbortsTheTransaction(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.enqueue(t, Message{Destination: settle, Request: text("x"), Key: "k"})
	for name, m := range map[string]Message{
		"other request":     {Destination: settle, Request: text("y"), Key: "k"},
		"other destination": {Destination: void, Request: text("x"), Key: "k"},
	} {
		err := e.db.System(t.Context(), func(tx *pg.Tx) error {
			if err := e.box.Enqueue(t.Context(), tx, Message{Destination: settle, Request: text("x"), Key: name}); err != nil {
				return err
			}
			if err := e.box.Enqueue(t.Context(), tx, m); !errors.Is(err, ErrKeyConflict) {
				t.Errorf("%s: Enqueue = %v", name, err)
			}
			return nil // swallowing it does not save the transaction
		})
		if err == nil {
			t.Errorf("%s: the business transaction committed", name)
		}
		var b pg.Batch
		b.Queue(e.box.sql.exists, uuid.New())
		if err := e.box.Queue(t.Context(), &b, m); err != nil {
			t.Fatal(err)
		}
		if err := e.db.SystemBatch(t.Context(), &b); !errors.Is(err, ErrKeyConflict) {
			t.Errorf("%s: SystemBatch = %v", name, err)
		}
	}
	if e.rows(t, "true") != 1 {
		t.Error("an aborted transaction left messages")
	}
	twice := []Message{{Destination: settle, Request: text("1"), Key: "t"}, {Destination: settle, Request: text("2"), Key: "t"}}
	err := e.db.System(t.Context(), func(tx *pg.Tx) error { return e.box.Enqueue(t.Context(), tx, twice...) })
	if !errors.Is(err, ErrKeyConflict) {
		t.Errorf("two contents in one call: %v", err)
	}
}

func TestAbortBeforeCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	n := newNudge()
	defer e.box.listen(settle, n)()
	stop := errors.New("stop")
	err := e.db.System(t.Context(), func(tx *pg.Tx) error {
		if err := e.box.Enqueue(t.Context(), tx, many(settle, 3)...); err != nil {
			return err
		}
		return stop
	})
	if !errors.Is(err, stop) || e.rows(t, "true") != 0 {
		t.Errorf("err %v, %d rows", err, e.rows(t, "true"))
	}
	if _, due, _ := n.take(time.Now()); due {
		t.Error("a nudge without a commit")
	}
	e.enqueue(t, many(settle, 3)...)
	if _, due, _ := n.take(time.Now()); !due {
		t.Error("no nudge after the commit")
	}
}

func TestPayloadBound(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const overhead = 4 // tag and length
	fits := wrapperspb.Bytes(bytes.Repeat([]byte{7}, MaxPayload-overhead))
	e.enqueue(t, Message{Destination: settle, Request: fits, Key: "fits"})
	over := wrapperspb.Bytes(bytes.Repeat([]byte{7}, MaxPayload-overhead+1))
	err := e.db.System(t.Context(), func(tx *pg.Tx) error {
		return e.box.Enqueue(t.Context(), tx, Message{Destination: settle, Request: over, Key: "over"})
	})
	if !errors.Is(err, ErrTooLarge) || e.rows(t, "octet_length(payload) = 1048576") != 1 {
		t.Errorf("Enqueue = %v", err)
	}
}

func TestTenantEnqueuesUnderRowSecurity(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	mine, theirs := uuid.New(), uuid.New()
	enqueue := func(as uuid.UUID, m Message) error {
		return e.tenant(t, as, func(tx *pg.Tx) error { return e.box.Enqueue(t.Context(), tx, m) })
	}
	m := Message{Destination: settle, Request: text("x"), Key: "k", Tenant: mine}
	for range 2 { // the repeat needs to see the row
		if err := enqueue(mine, m); err != nil {
			t.Fatal(err)
		}
	}
	other := m
	other.Tenant, other.Request = theirs, text("y")
	if err := enqueue(theirs, other); err != nil {
		t.Errorf("the same key of another tenant: %v", err)
	}
	if err := enqueue(theirs, Message{Destination: settle, Request: text("x"), Key: "z", Tenant: mine}); err == nil {
		t.Error("a tenant enqueued for another")
	}
	if err := enqueue(mine, Message{Destination: settle, Request: text("x"), Key: "z"}); err == nil {
		t.Error("a tenant enqueued for the system")
	}
	var b pg.Batch
	if err := e.box.Queue(t.Context(), &b, Message{Destination: settle, Request: text("x"), Key: "batch", Tenant: mine}); err != nil {
		t.Fatal(err)
	}
	if err := e.db.TenantBatch(t.Context(), mine, &b); err != nil {
		t.Error(err)
	}
	var seen int
	err := e.tenant(t, mine, func(tx *pg.Tx) error {
		return tx.QueryRow(t.Context(), "SELECT count(*) FROM scheduler.outbox").Scan(&seen)
	})
	if err != nil || seen != 2 {
		t.Errorf("the tenant sees %d rows, %v", seen, err)
	}
}

func readMigration(schema string) ([]byte, error) {
	return os.ReadFile("../../migrations/" + schema + "/0001_outbox.sql")
}
