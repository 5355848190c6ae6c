package outbox

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

const (
	settle = "/fenceline.ledger.v1.LedgerService/Settle"
	void   = "/fenceline.ledger.v1.LedgerService/Void"
	bell   = "doorbell:targets"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, pgtest.Goroutines()...)
}

// env is one test's database, under the service's real login role.
type env struct {
	*pgtest.DB
	db  *pg.DB
	box *Outbox
}

func newEnv(t *testing.T) *env {
	t.Helper()
	sql, err := os.ReadFile("../../migrations/scheduler/0001_outbox.sql")
	if err != nil {
		t.Fatal(err)
	}
	d := pgtest.New(t, fstest.MapFS{"scheduler/0001_outbox.sql": {Data: sql}})
	return &env{DB: d, db: d.Open(t, "scheduler"), box: New("scheduler")}
}

func text(s string) proto.Message { return wrapperspb.String(s) }

// enqueue writes messages in one system transaction.
func (e *env) enqueue(t *testing.T, msgs ...Message) {
	t.Helper()
	err := e.db.System(t.Context(), func(tx *pg.Tx) error { return e.box.Enqueue(t.Context(), tx, msgs...) })
	if err != nil {
		t.Fatal(err)
	}
}

// many returns n messages of one destination.
func many(destination string, n int) []Message {
	msgs := make([]Message, n)
	for i := range msgs {
		msgs[i] = Message{Destination: destination, Request: text(fmt.Sprint(i)), Key: fmt.Sprintf("m:%d", i)}
	}
	return msgs
}

func (e *env) rows(t *testing.T, where string, args ...any) int {
	t.Helper()
	return pgtest.Query[int](t, e.DB, "SELECT count(*)::int FROM scheduler.outbox WHERE "+where, args...)
}

// admin changes what only time would change.
func (e *env) admin(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := e.Admin(t).Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// tenant runs fn under the tenant role.
func (e *env) tenant(t *testing.T, tenant uuid.UUID, fn func(tx *pg.Tx) error) error {
	t.Helper()
	return e.db.Tenant(t.Context(), tenant, fn)
}

// settles waits until no row is left that where describes.
func (e *env) settles(t *testing.T, where string) {
	t.Helper()
	conn := e.Admin(t)
	eventually(t, "no row with "+where, func() bool {
		var n int
		err := conn.QueryRow(t.Context(), "SELECT count(*) FROM scheduler.outbox WHERE "+where).Scan(&n)
		return err == nil && n == 0
	})
}

// eventually polls a condition that has no event to wait on.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
