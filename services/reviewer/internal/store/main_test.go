package store

import (
	"io/fs"
	"path"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

const schema = "reviewer"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, pgtest.Goroutines()...) }

// ownMigrations are those of this schema alone: a test's database needs no other.
func ownMigrations(t testing.TB) fs.FS {
	t.Helper()
	own := fstest.MapFS{}
	files, err := fs.ReadDir(migrations.FS, schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := path.Join(schema, f.Name())
		data, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		own[name] = &fstest.MapFile{Data: data}
	}
	return own
}

type fixture struct {
	*Store
	db     *pgtest.DB
	pool   *pg.DB
	tenant reviewer.TenantID
	target reviewer.TargetID
	run    reviewer.Run
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{db: pgtest.New(t, ownMigrations(t)), tenant: reviewer.TenantID(mint()), target: reviewer.TargetID(mint())}
	f.pool = f.db.Open(t, schema)
	f.Store = New(f.pool, outbox.New(schema))
	f.run = reviewer.Run{ID: reviewer.RunID(mint()), BaseSHA: "base", HeadSHA: "head", MergeBase: "merge", Lifecycle: 1}
	return f
}

func mint() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// ask is a new claim on the fixture's target that wants to review its run.
func (f *fixture) ask() reviewer.Ask {
	return reviewer.Ask{
		Attempt: reviewer.AttemptID(mint()), Tenant: f.tenant, Run: f.run, Engine: "builtin/1", DiffBytes: 2000, Reserve: 2000,
		Fence: reviewer.Fence{Target: f.target, Claim: reviewer.ClaimID(mint()), Generation: 1, Lifecycle: 1, Run: f.run.ID},
		Lease: time.Minute, MaxPerRun: 3,
	}
}

// open makes a created attempt of a new claim.
func (f *fixture) open(t *testing.T) reviewer.Attempt {
	t.Helper()
	o, err := f.Open(t.Context(), f.ask())
	if err != nil || o.Kind != reviewer.OpenFresh {
		t.Fatalf("Open = %+v, %v", o, err)
	}
	return o.Attempt
}

// start makes a started attempt of a new claim.
func (f *fixture) start(t *testing.T) reviewer.Attempt {
	t.Helper()
	a, err := f.Start(t.Context(), f.open(t), 3, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// lapse makes an attempt's lease have passed long ago.
func (f *fixture) lapse(t *testing.T, a reviewer.Attempt) reviewer.Orphan {
	t.Helper()
	if _, err := f.db.Admin(t).Exec(t.Context(), `UPDATE reviewer.attempts SET lease_until = clock_timestamp() - interval '1 hour' WHERE id = $1`, a.ID); err != nil {
		t.Fatal(err)
	}
	return reviewer.Orphan{Tenant: a.Tenant, Attempt: a.ID}
}

// keys lists what the outbox holds, oldest first, without the tenant.
func (f *fixture) keys(t *testing.T) []string {
	t.Helper()
	return pgtest.Query[[]string](t, f.db, `SELECT COALESCE(array_agg(substr(key, 38) ORDER BY id), '{}') FROM reviewer.outbox`)
}
