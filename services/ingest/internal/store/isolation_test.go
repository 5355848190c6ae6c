package store

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

func TestQueriesPrepare(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	for _, set := range []map[string]string{queries, retentionQueries, sweepQueries, reconcileQueries, pauseQueries} {
		pgtest.PrepareAll(t, db, "ingest", set)
	}
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	alone := fstest.MapFS{} // the other services' schemas have tests of their own
	for _, file := range must(fs.Glob(migrations.FS, "ingest/*.sql")) {
		alone[file] = &fstest.MapFile{Data: must(fs.ReadFile(migrations.FS, file))}
	}
	pgtest.Catalog(t, pgtest.New(t, alone))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// twoTenants has a project, a replayed delivery and a message of each of acme and zenith, and a delivery
// of nobody.
func twoTenants(t *testing.T) (s *Store, d *pgtest.DB, mine, yours ingest.TenantID) {
	t.Helper()
	s, d = setup(t, everybody)
	for i, e := range []ingest.Event{pull(acmeInstalled, rocket), pull(zenithInstalled, kite)} {
		a := deliver(t, s, fmt.Sprintf("pr-%d", i), e)
		if _, _, err := s.Replay(t.Context(), a.Receipt, "key"); err != nil {
			t.Fatal(err)
		}
	}
	deliver(t, s, "nobody's", ingest.Event{Name: "star"})
	return s, d, tenantOfAccount(t, d, acme), tenantOfAccount(t, d, zenith)
}

func TestTenantsSeeTheirOwn(t *testing.T) {
	t.Parallel()
	s, _, mine, yours := twoTenants(t)
	stranger := ingest.TenantID(uuid.New())
	for what, tc := range map[string]struct {
		tenant  *ingest.TenantID
		ids     []string
		hosts   int
		project string
	}{
		"mine": {&mine, []string{"pr-0"}, 1, "acme/rocket"}, "yours": {&yours, []string{"pr-1"}, 1, "zenith/kite"},
		"a stranger": {&stranger, nil, 0, ""}, "an operator": {nil, []string{"nobody's", "pr-1", "pr-0"}, 2, ""},
	} {
		found, err := s.Deliveries(t.Context(), ingest.DeliveryFilter{Tenant: tc.tenant, Before: ingest.ReceiptID(uuid.Max)}, 10)
		var ids []string
		for _, r := range found {
			ids = append(ids, r.Source.DeliveryID)
			if tc.tenant != nil && (r.Tenant == nil || *r.Tenant != *tc.tenant || r.Replays != 1) {
				t.Errorf("%s: sees %+v", what, r)
			}
		}
		if diff := cmp.Diff(tc.ids, ids); err != nil || diff != "" {
			t.Errorf("%s: deliveries: %v (-want +got):\n%s", what, err, diff)
		}
		installations, err := s.Installations(t.Context(), tc.tenant, ingest.InstallationCursor{}, 10)
		if err != nil || len(installations) != tc.hosts {
			t.Errorf("%s: installations %+v, %v", what, installations, err)
		}
		for _, id := range []string{"pr-0", "pr-1", "nobody's"} {
			found, err := s.Delivery(t.Context(), tc.tenant, id)
			sees := err == nil && len(found) == 1
			if want := cmp.Equal(tc.ids, []string{id}) || tc.tenant == nil; sees != want {
				t.Errorf("%s: delivery %s: %v, %v", what, id, found, err)
			}
			if sees && tc.tenant != nil { // by the receipt's own id, too
				if _, err := s.Delivery(t.Context(), &mine, found[0].ID.String()); (err == nil) != (*tc.tenant == mine) {
					t.Errorf("%s: receipt %s read by mine: %v", what, found[0].ID, err)
				}
			}
		}
		if tc.tenant == nil {
			continue
		}
		projects, err := s.Projects(t.Context(), *tc.tenant, ingest.ProjectID{}, 10)
		if err != nil || (tc.project == "") != (len(projects) == 0) || tc.project != "" && projects[0].Repository != tc.project {
			t.Errorf("%s: projects %+v, %v", what, projects, err)
		}
	}
	if _, err := s.Projects(t.Context(), ingest.TenantID{}, ingest.ProjectID{}, 10); err == nil {
		t.Error("projects of no tenant")
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	s, _, _, _ := twoTenants(t)
	for want, f := range map[string]ingest.DeliveryFilter{
		"[pr-1]": {RepositoryID: kite.ID}, "[nobody's]": {Event: "star"}, "[pr-1 pr-0]": {Decision: "trigger_review"},
		"[pr-0]": {DeliveryID: "pr-0"}, "[]": {DeliveryID: "pr-0", Event: "star"}, "[nobody's pr-1 pr-0]": {},
	} {
		f.Before = ingest.ReceiptID(uuid.Max)
		var ids []string
		for {
			found, err := s.Deliveries(t.Context(), f, 1) // page by page
			if err != nil {
				t.Fatal(err)
			}
			if len(found) == 0 {
				break
			}
			ids, f.Before = append(ids, found[0].Source.DeliveryID), found[0].ID
		}
		if got := fmt.Sprint(ids); got != want {
			t.Errorf("%+v: %s, want %s", f, got, want)
		}
	}
}

// TestInstallationsOfTwoHostsPage: ids are unique on a host only.
func TestInstallationsOfTwoHostsPage(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, allow())
	var want, got []string
	for id := int64(1); id <= 3; id++ {
		for _, h := range []string{"ghe.example.test", "github.com"} {
			if _, err := s.Bind(t.Context(), ingest.Installation{Host: h, ID: id, Account: ingest.Account{ID: id, Login: "x"}}); err != nil {
				t.Fatal(err)
			}
			want = append(want, fmt.Sprint(id, h))
		}
	}
	var after ingest.InstallationCursor
	for {
		page, err := s.Installations(t.Context(), nil, after, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		after = ingest.InstallationCursor{ID: page[0].ID, Host: page[0].Host}
		got = append(got, fmt.Sprint(page[0].ID, page[0].Host))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

var tables = []string{"accounts", "installations", "projects", "deliveries", "replays", "outbox"}

// TestRowLevelSecurity: statements without any predicate, under both roles.
func TestRowLevelSecurity(t *testing.T) {
	t.Parallel()
	_, d, mine, yours := twoTenants(t)
	db := d.Open(t, "ingest")
	counts := func(run func(func(*pg.Tx) error) error) (n []int64, err error) {
		err = run(func(tx *pg.Tx) error {
			n = make([]int64, len(tables))
			for i, table := range tables {
				if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM ingest."+table).Scan(&n[i]); err != nil {
					return err
				}
			}
			return nil
		})
		return n, err
	}
	as := func(tenant ingest.TenantID) func(func(*pg.Tx) error) error {
		return func(fn func(*pg.Tx) error) error { return db.Tenant(t.Context(), uuid.UUID(tenant), fn) }
	}
	for what, tc := range map[string]struct {
		run  func(func(*pg.Tx) error) error
		want []int64
	}{
		"system": {func(fn func(*pg.Tx) error) error { return db.System(t.Context(), fn) }, []int64{2, 2, 2, 3, 2, 4}},
		"mine":   {as(mine), []int64{1, 1, 1, 1, 1, 2}}, "yours": {as(yours), []int64{1, 1, 1, 1, 1, 2}},
		"a stranger": {as(ingest.TenantID(uuid.New())), []int64{0, 0, 0, 0, 0, 0}},
	} {
		got, err := counts(tc.run)
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s sees of %v: %v (-want +got):\n%s", what, tables, err, diff)
		}
	}
	for _, table := range tables {
		// Locked reads, updates and deletes find one's own rows alone.
		for _, sql := range []string{
			"SELECT 1 FROM ingest.%s WHERE tenant = $1 FOR UPDATE", "UPDATE ingest.%s SET tenant = tenant WHERE tenant = $1",
		} {
			err := as(mine)(func(tx *pg.Tx) error {
				tag, err := tx.Exec(t.Context(), fmt.Sprintf(sql, table), uuid.UUID(yours))
				if err == nil && tag.RowsAffected() != 0 {
					return fmt.Errorf("reached %d rows", tag.RowsAffected())
				}
				return err
			})
			if err != nil {
				t.Errorf("mine, with yours' id: %s of %s: %v", sql, table, err)
			}
		}
		// A row can't be given away.
		if err := as(mine)(func(tx *pg.Tx) error {
			_, err := tx.Exec(t.Context(), "UPDATE ingest."+table+" SET tenant = $1", uuid.UUID(yours))
			return err
		}); err == nil {
			t.Errorf("mine gave its rows of %s to yours", table)
		}
	}
	noTenant(t, d)
}

// noTenant: unset and empty both raise an error, they don't show nothing.
func noTenant(t *testing.T, d *pgtest.DB) {
	t.Helper()
	for _, set := range []string{"SELECT 1", "SELECT set_config('fenceline.tenant', '', true)"} {
		for _, table := range tables {
			conn, err := pgx.Connect(t.Context(), d.DSN("ingest"))
			if err != nil {
				t.Fatal(err)
			}
			err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE fl_ingest_tenant"); err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec(t.Context(), set); err != nil {
					t.Fatal(err)
				}
				_, err := tx.Exec(t.Context(), "SELECT count(*) FROM ingest."+table)
				return err
			})
			if err == nil {
				t.Errorf("%s answers the tenant role without a tenant (%s)", table, set)
			}
			if err := conn.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}
