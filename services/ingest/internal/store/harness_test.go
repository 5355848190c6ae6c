package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, pgtest.Goroutines()...) }

const (
	host = "github.com"
	hook = "integration/424242"
)

// The accounts, installations and repositories of these tests: acme has installed the App as 70 and owns
// rocket and sled; zenith has installed it as 80 and owns kite.
var (
	acme   = ingest.Account{ID: 7, Login: "acme"}
	zenith = ingest.Account{ID: 8, Login: "zenith"}
	rocket = ingest.Repository{ID: 701, Name: "acme/rocket", Owner: acme}
	sled   = ingest.Repository{ID: 702, Name: "acme/sled", Owner: acme}
	kite   = ingest.Repository{ID: 801, Name: "zenith/kite", Owner: zenith}
)

const (
	acmeInstalled   = 70
	zenithInstalled = 80
)

// everybody binds every account and enrols every repository at its first delivery.
var everybody = ingest.Policy{Hook: hook}

func setup(t *testing.T, p ingest.Policy) (*Store, *pgtest.DB) {
	t.Helper()
	d := pgtest.New(t, migrations.FS)
	return over(d.Open(t, "ingest"), p), d
}

func over(db *pg.DB, p ingest.Policy) *Store { return New(db, outbox.New("ingest"), p) }

func allow(accounts ...ingest.Account) ingest.Policy {
	p := ingest.Policy{Hook: hook, Accounts: map[int64]bool{}}
	for _, a := range accounts {
		p.Accounts[a.ID] = true
	}
	return p
}

func explicit(p ingest.Policy) ingest.Policy { p.ExplicitEnroll = true; return p }

var morning = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// pull is a delivery that asks for a review of a pull request of a repository.
func pull(installation int64, r ingest.Repository) ingest.Event {
	return ingest.Event{
		Name: "pull_request", Action: "opened", InstallationID: installation, Repository: r,
		PullRequest: ingest.PullRequest{
			Number: 5, HeadSHA: "ec26c3e57ca3a959ca5aad62de7213c562f8c821", BaseRef: "main", State: "open", UpdatedAt: morning,
		},
	}
}

// installation is a delivery about an installation, of the given hour.
func installation(action string, id int64, by ingest.Account, hour int, repos ...ingest.Repository) ingest.Event {
	return ingest.Event{
		Name: "installation", Action: action, InstallationID: id, Installer: by,
		InstalledAt: morning.Add(time.Duration(hour) * time.Hour), Added: repos,
	}
}

func repositories(action string, id int64, by ingest.Account, hour int, repos ...ingest.Repository) ingest.Event {
	e := ingest.Event{
		Name: "installation_repositories", Action: action, InstallationID: id, Installer: by,
		InstalledAt: morning.Add(time.Duration(hour) * time.Hour),
	}
	if action == "removed" {
		e.Removed = repos
	} else {
		e.Added = repos
	}
	return e
}

func source(id string) ingest.Source { return ingest.Source{Host: host, Hook: hook, DeliveryID: id} }

func digest(s string) [32]byte { return sha256.Sum256([]byte(s)) }

// deliver receives an event under an id; its digest is the id's.
func deliver(t *testing.T, s *Store, id string, e ingest.Event) ingest.Answer {
	t.Helper()
	a, err := s.Receive(t.Context(), source(id), digest(id), int64(len(id)), e)
	if err != nil {
		t.Fatalf("deliver %s: %v", id, err)
	}
	return a
}

func expect(t *testing.T, what string, a ingest.Answer, kind ingest.Kind, reason string) {
	t.Helper()
	if want := (ingest.Decision{Kind: kind, Reason: reason}); a.Decision != want {
		t.Errorf("%s: decided %v, want %v", what, a.Decision, want)
	}
}

// rows counts what is stored.
type rows struct{ Receipts, Messages, Accounts, Installations, Projects, Replays int64 }

func count(t *testing.T, d *pgtest.DB) rows {
	t.Helper()
	n := func(table string) int64 { return pgtest.Query[int64](t, d, "SELECT count(*) FROM ingest."+table) }
	return rows{n("deliveries"), n("outbox"), n("accounts"), n("installations"), n("projects"), n("replays")}
}

func expectRows(t *testing.T, d *pgtest.DB, want rows) {
	t.Helper()
	if diff := cmp.Diff(want, count(t, d)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func pgxAll[T any](t *testing.T, d *pgtest.DB, sql string, args ...any) ([]T, error) {
	t.Helper()
	rows, err := d.Admin(t).Query(t.Context(), sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

// tenantOfAccount is the tenant an account is bound to.
func tenantOfAccount(t *testing.T, d *pgtest.DB, a ingest.Account) ingest.TenantID {
	t.Helper()
	return ingest.TenantID(pgtest.Query[uuid.UUID](t, d, "SELECT tenant FROM ingest.accounts WHERE account_id = $1", a.ID))
}

// projectState is the state and installation of a repository's project.
func projectState(t *testing.T, d *pgtest.DB, r ingest.Repository) string {
	t.Helper()
	return pgtest.Query[string](t, d, `
SELECT coalesce((SELECT state || ' under ' || installation_id FROM ingest.projects WHERE repository_id = $1), 'none')`, r.ID)
}

func installationState(t *testing.T, d *pgtest.DB, id int64) string {
	t.Helper()
	return pgtest.Query[string](t, d, "SELECT coalesce((SELECT state FROM ingest.installations WHERE installation_id = $1), 'none')", id)
}

// until waits for a condition of the database, as the administrator sees it.
func until(t *testing.T, d *pgtest.DB, condition string, args ...any) {
	t.Helper()
	conn := d.Admin(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		var holds bool
		if err := conn.QueryRow(ctx, "SELECT "+condition+" FROM pg_sleep(0.002)", args...).Scan(&holds); err != nil {
			t.Fatalf("waiting for %s: %v", condition, err)
		}
		if holds {
			return
		}
	}
}

func name(prefix string, n int) string { return fmt.Sprintf("%s-%04d", prefix, n) }

func sorted(s []string) []string { slices.Sort(s); return s }
