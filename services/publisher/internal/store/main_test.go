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
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

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
	db    *pgtest.DB
	rings int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{db: pgtest.New(t, ownMigrations(t))}
	f.Store = New(f.db.Open(t, schema), outbox.New(schema), publisher.DefaultRules, func() { f.rings++ })
	return f
}

func mint() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// theProject is the one that all epochs are of.
var theProject = publisher.ProjectID(mint())

// choose gives the tenant's project its surfaces: the comment and the check run alone, if none are named.
func (f *fixture) choose(t *testing.T, tenant publisher.Tenant, kinds ...publisher.SurfaceKind) {
	t.Helper()
	if len(kinds) == 0 {
		kinds = []publisher.SurfaceKind{publisher.SurfaceSummary, publisher.SurfaceCheckRun}
	}
	version := pgtest.Query[int64](t, f.db, `SELECT COALESCE(max(version), 0) + 1 FROM publisher.projects WHERE tenant = $1`, tenant)
	err := f.ConfigureProject(t.Context(), publisher.Configuration{Tenant: tenant, Project: theProject, Version: version, Surfaces: kinds})
	if err != nil {
		t.Fatal(err)
	}
}

// result is an epoch that shows a clean result.
func result(tenant publisher.Tenant, target publisher.TargetID, epoch int64) publisher.Epoch {
	return publisher.Epoch{
		Tenant: tenant, Target: target, At: publisher.Position{Lifecycle: 1, Epoch: epoch}, Kind: publisher.KindResult,
		PR: publisher.PullRequest{Project: theProject, Host: "github.com", Installation: 7, Repository: 42, Name: "o/r", Number: 5},
		Run: &publisher.Run{
			ID: publisher.RunID(mint()), BaseRef: "main", BaseSHA: "aaaa", HeadSHA: "bbbb", MergeBaseSHA: "aaaa",
			Attempt: publisher.AttemptID(mint()), Clean: true, Engine: "builtin", CostMicros: 1500,
		},
		Traceparent: "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01",
	}
}

// sends says that the cell's write begins.
func sends(c publisher.Cell, now time.Time) publisher.Cell {
	c.Intent.State, c.Intent.Op, c.Intent.Body = publisher.StateSending, publisher.OpCreate, "body"
	c.Intent.SentAt, c.Intent.Available, c.Intent.Attempts = now, now.Add(publisher.DefaultRules.Grace), 1
	return c
}

// confirms says that GitHub answered.
func confirms(c publisher.Cell, id int64, now time.Time) publisher.Cell {
	c.Intent.Version++
	c.Intent.State, c.Intent.Op, c.Intent.GitHubID, c.Intent.EndedAt = publisher.StateConfirmed, publisher.OpNone, id, now
	c.Surface.GitHubID, c.Surface.Shown, c.Surface.Run = id, c.Intent.At, c.Intent.Run
	return c
}
