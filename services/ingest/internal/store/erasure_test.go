package store

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

const grace = 30 * 24 * time.Hour

func admin(t *testing.T, d *pgtest.DB, sql string, args ...any) {
	t.Helper()
	if _, err := d.Admin(t).Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// erase runs one pass, which is expected to end so many erasures.
func erase(t *testing.T, s *Store, want int) {
	t.Helper()
	if n, err := s.EraseTenants(t.Context(), grace, 10); err != nil || n != want {
		t.Fatalf("%d tenants were erased, %v; want %d", n, err, want)
	}
}

func erasure(t *testing.T, d *pgtest.DB, tenant ingest.TenantID) string {
	t.Helper()
	return pgtest.Query[string](t, d, `SELECT coalesce((SELECT state || CASE WHEN due_at > clock_timestamp() THEN ', later' ELSE ', due' END FROM ingest.erasures WHERE tenant = $1), 'none')`, uuid.UUID(tenant))
}

// dispatch says that the messages were sent.
func dispatch(t *testing.T, d *pgtest.DB, where string) {
	t.Helper()
	admin(t, d, `UPDATE ingest.outbox SET dispatched_at = clock_timestamp() WHERE dispatched_at IS NULL AND `+where)
}

// filled has a row of both tenants in every table that has a tenant, and acme's App uninstalled.
func filled(t *testing.T) (s *Store, d *pgtest.DB, mine, yours ingest.TenantID) {
	t.Helper()
	s, d, mine, yours = twoTenants(t)
	for tenant, r := range map[ingest.TenantID]ingest.Repository{mine: rocket, yours: kite} {
		if _, err := s.Request(t.Context(), ingest.Asked{Tenant: tenant, Project: projectOf(t, d, r), Number: 5, Source: ingest.FromAPI, Key: "key", By: "ann"}); err != nil {
			t.Fatal(err)
		}
		admin(t, d, `INSERT INTO ingest.commands (id, tenant, project_id, source, cause, verb, host, installation_id, repository_id, repository)
			VALUES ($1, $2, $2, 'check_suite', 'd', 'rerun', 'github.com', 1, 1, $3)`, newID(), uuid.UUID(tenant), r.Name)
		admin(t, d, `INSERT INTO ingest.former_projects (id, tenant, host, repository_id, repository, installation_id, created_at)
			VALUES ($1, $2, 'github.com', 1, $3, 1, clock_timestamp())`, newID(), uuid.UUID(tenant), r.Name)
	}
	deliver(t, s, "uninstalled", installation("deleted", acmeInstalled, acme, 9))
	dispatch(t, d, "true")
	return s, d, mine, yours
}

// tenantTables are those with rows of a tenant.
func tenantTables(t *testing.T, d *pgtest.DB) []string {
	t.Helper()
	return pgtest.Query[[]string](t, d, `
SELECT array_agg(table_name::text ORDER BY table_name) FROM information_schema.columns
 WHERE table_schema = 'ingest' AND column_name = 'tenant' AND table_name <> 'erasures'`)
}

func ofTenant(t *testing.T, d *pgtest.DB, table string, tenant ingest.TenantID) int64 {
	t.Helper()
	return pgtest.Query[int64](t, d, `SELECT count(*) FROM ingest.`+table+` WHERE tenant = $1`, uuid.UUID(tenant))
}

// TestUninstallingErasesAfterTheGrace fills every table that has a tenant; one that is new has to be added
// there.
func TestUninstallingErasesAfterTheGrace(t *testing.T) {
	t.Parallel()
	s, d, mine, yours := filled(t)
	before := map[string]int64{}
	for _, table := range tenantTables(t, d) {
		before[table] = ofTenant(t, d, table, yours)
		if before[table] == 0 || ofTenant(t, d, table, mine) == 0 {
			t.Fatalf("ingest.%s has no row of a tenant: filled must make some", table)
		}
	}
	erase(t, s, 0)
	if got := erasure(t, d, mine); got != "waiting, later" {
		t.Fatalf("the erasure is %s", got)
	}
	if got := erasure(t, d, yours); got != "none" {
		t.Fatalf("the erasure of the other tenant is %s", got)
	}
	if n := ofTenant(t, d, "projects", mine); n == 0 {
		t.Fatal("erased before the grace has passed")
	}
	admin(t, d, `UPDATE ingest.erasures SET due_at = clock_timestamp() - interval '1 second'`)
	for range 2 {
		erase(t, s, 0) // the others have not answered yet
	}
	told := pgtest.Query[string](t, d, `SELECT string_agg(destination, ' ' ORDER BY destination) FROM ingest.outbox WHERE dispatched_at IS NULL`)
	const method = "/fenceline.outbox.v1.ErasureService/EraseTenant"
	if want := "ledger" + method + " publisher" + method + " reviewer" + method + " scheduler" + method; told != want {
		t.Errorf("told %s, want %s", told, want)
	}
	dispatch(t, d, "destination LIKE 'ledger%'")
	erase(t, s, 0)
	dispatch(t, d, "true")
	erase(t, s, 1)
	erase(t, s, 0)
	if got := erasure(t, d, mine); got != "done, due" {
		t.Errorf("the erasure is %s", got)
	}
	for table, n := range before {
		if left := ofTenant(t, d, table, mine); left != 0 {
			t.Errorf("%d rows of the erased tenant in ingest.%s", left, table)
		}
		if now := ofTenant(t, d, table, yours); now != n {
			t.Errorf("%d rows of the other tenant in ingest.%s, had %d", now, table, n)
		}
	}
	if n := pgtest.Query[int64](t, d, `SELECT count(*) FROM ingest.deliveries AS d WHERE d::text ~* 'acme|rocket|ec26c3e5' AND d::text !~* 'kite'`); n != 0 {
		t.Errorf("%d receipts still name something", n)
	}
}

// TestReceiptsOfTheErasedAreTakenOnce sends a delivery of before again, and installs the App again: what was
// erased stays so, and the account is a new tenant.
func TestReceiptsOfTheErasedAreTakenOnce(t *testing.T) {
	t.Parallel()
	s, d, mine, _ := filled(t)
	erase(t, s, 0)
	admin(t, d, `UPDATE ingest.erasures SET due_at = clock_timestamp() - interval '1 second'`)
	erase(t, s, 0)
	again := deliver(t, s, "pr-0", pull(acmeInstalled, rocket))
	expect(t, "sent again", again, ingest.Ignore, ingest.ReasonErased)
	if !again.Duplicate {
		t.Error("a delivery of before was taken as new")
	}
	deliver(t, s, "installed", installation("created", 71, acme, 12, rocket))
	anew := tenantOfAccount(t, d, acme)
	for _, state := range []string{"done", "erasing"} {
		admin(t, d, `UPDATE ingest.erasures SET state = $1, done_at = CASE WHEN $1 = 'done' THEN clock_timestamp() END`, state)
		_, err := s.Bind(t.Context(), ingest.Installation{Tenant: mine, Host: host, ID: 72, Account: ingest.Account{ID: 7272, Login: "late"}})
		if !errors.Is(err, ingest.ErrTenantErased) {
			t.Errorf("bound to a tenant whose erasure is %s: %v", state, err)
		}
	}
	if anew == mine {
		t.Fatal("whoever installs while an erasure is under way is met by it")
	}
	if got, want := projectState(t, d, rocket), "enrolled under 71"; got != want {
		t.Errorf("the repository is %s, want %s", got, want)
	}
	dispatch(t, d, "true")
	erase(t, s, 1)
	if n := ofTenant(t, d, "projects", anew); n != 1 {
		t.Errorf("%d projects of the new tenant, want 1", n)
	}
}

func TestInstallingAgainCancelsAnErasure(t *testing.T) {
	t.Parallel()
	s, d, mine, _ := filled(t)
	erase(t, s, 0)
	deliver(t, s, "installed", installation("created", 71, acme, 12, rocket))
	admin(t, d, `UPDATE ingest.erasures SET due_at = clock_timestamp() - interval '1 second'`)
	erase(t, s, 0)
	if got := erasure(t, d, mine); got != "none" || tenantOfAccount(t, d, acme) != mine {
		t.Errorf("the erasure is %s, the account's tenant %s; want none and %s", got, tenantOfAccount(t, d, acme), mine)
	}
	// Suspended is installed.
	deliver(t, s, "suspended", installation("suspend", 71, acme, 13))
	erase(t, s, 0)
	if got := erasure(t, d, mine); got != "none" {
		t.Errorf("the erasure of a suspended tenant is %s", got)
	}
}

func TestManyProjectsAreForgottenInBatches(t *testing.T) {
	t.Parallel()
	s, d, mine, _ := filled(t)
	admin(t, d, `INSERT INTO ingest.projects (id, tenant, host, repository_id, installation_id, state)
		SELECT gen_random_uuid(), $1, 'github.com', 10000 + n, $2, 'enrolled' FROM generate_series(1, 1100) AS n`, uuid.UUID(mine), acmeInstalled)
	erase(t, s, 0)
	admin(t, d, `UPDATE ingest.erasures SET due_at = clock_timestamp() - interval '1 second'`)
	erase(t, s, 0)
	if n := ofTenant(t, d, "projects", mine) + ofTenant(t, d, "accounts", mine); n != 0 {
		t.Errorf("%d projects and accounts are left", n)
	}
}

func TestRowsGoByAge(t *testing.T) {
	t.Parallel()
	s, d, _, _ := filled(t)
	const age = 90 * 24 * time.Hour
	older := `id = (lpad(to_hex((extract(epoch FROM clock_timestamp() - interval '91 days') * 1000)::bigint), 12, '0') || substr(replace(id::text, '-', ''), 13))::uuid`
	admin(t, d, `UPDATE ingest.deliveries SET received_at = received_at - interval '91 days', `+older+` WHERE delivery_id LIKE 'pr-%'`)
	admin(t, d, `UPDATE ingest.replays SET created_at = created_at - interval '91 days'`)
	admin(t, d, `UPDATE ingest.requests SET created_at = created_at - interval '91 days', `+older)
	admin(t, d, `UPDATE ingest.commands SET `+older)
	admin(t, d, `UPDATE ingest.commands SET state = 'done', outcome = 'accepted', done_at = clock_timestamp() - interval '91 days' WHERE repository = $1`, kite.Name)
	admin(t, d, `INSERT INTO ingest.erasures VALUES (gen_random_uuid(), 'done', clock_timestamp(), clock_timestamp(), clock_timestamp() - interval '91 days'),
		(gen_random_uuid(), 'waiting', clock_timestamp(), clock_timestamp() - interval '91 days', NULL)`)
	for i, ended := range []any{nil, time.Now().Add(-91 * 24 * time.Hour), time.Now()} {
		admin(t, d, `INSERT INTO ingest.missed (host, hook, delivery_id, attempt_id, state, next_at, status, delivered_at, ended_at)
			VALUES ('github.com', 'h', $1, 1, CASE WHEN $2::timestamptz IS NULL THEN 'waiting' ELSE 'recovered' END, clock_timestamp(), 500, '2020-01-01', $2)`, name("missed", i), ended)
	}
	want := map[string][2]int{"missed": {1, 2}, "deliveries": {2, 2}, "replays": {2, 0}, "requests": {2, 0}, "commands": {1, 1}, "erasures": {1, 1}}
	for _, kind := range s.Kinds(Retention{Deliveries: age, Replays: age, Requests: age, Commands: age, Missed: age, Erasures: age}) {
		n, err := kind.Remove(t.Context(), age, 100)
		left := pgtest.Query[int](t, d, `SELECT count(*)::int FROM ingest.`+kind.Name)
		if got := [2]int{n, left}; err != nil || got != want[kind.Name] {
			t.Errorf("%s: %d removed and %d left, %v; want %v", kind.Name, n, left, err, want[kind.Name])
		}
	}
}
