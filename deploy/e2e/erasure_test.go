package e2e

import (
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// install makes another account with one repository, as repository does for acme, and turns to it.
func (w *world) install(login, name string) {
	w.Helper()
	ctx := w.Context()
	owner, err := w.ctl.CreateAccount(ctx, control.Account{Login: login, Type: "Organization"})
	if err != nil {
		w.Fatal(err)
	}
	repo, err := w.ctl.CreateRepository(ctx, control.NewRepository{
		Owner: login, Name: name, Commits: []control.Commit{{Branch: "main", Message: "start", Files: map[string]string{"README.md": "# " + name + "\n"}}},
	})
	if err != nil {
		w.Fatal(err)
	}
	w.installation, err = w.ctl.CreateInstallation(ctx, control.NewInstallation{Account: login, Repositories: []string{name}, Options: control.Options{Webhook: control.None}})
	if err != nil {
		w.Fatal(err)
	}
	w.owner, w.repo, w.name = owner, repo, name
}

// reviewed opens a pull request of the repository that was turned to, and returns its tenant once the review is
// shown.
func (w *world) reviewed() (tenant string, opened control.Changed) {
	w.Helper()
	opened = w.open(control.Send)
	eventually(w.T, "the pull request of "+w.name+" is reviewed", func() error { return w.shown(opened.Pull.HeadSHA) })
	conn, done := w.admin()
	defer done()
	if err := conn.QueryRow(w.Context(), `SELECT tenant::text FROM scheduler.targets WHERE repository_id = $1`, w.repo.ID).Scan(&tenant); err != nil {
		w.Fatal(err)
	}
	return tenant, opened
}

func (w *world) admin() (conn *pgx.Conn, done func()) {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.db.AdminDSN())
	if err != nil {
		w.Fatal(err)
	}
	return conn, func() { _ = conn.Close(w.Context()) }
}

// rowsOf is what every table of every service holds of a tenant.
func (w *world) rowsOf(tenant string) map[string]string {
	w.Helper()
	conn, done := w.admin()
	defer done()
	rows, _ := conn.Query(w.Context(), `
SELECT format('%I.%I', table_schema, table_name) FROM information_schema.columns WHERE table_schema = ANY ($1) AND column_name = 'tenant'`, services)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 20 {
		w.Fatalf("%d tables, %v", len(tables), err)
	}
	all := map[string]string{}
	for _, table := range tables {
		var text string
		err := conn.QueryRow(w.Context(), `SELECT coalesce(string_agg(t::text, E'\n' ORDER BY t::text), '') FROM `+table+` AS t WHERE tenant::text = $1`, tenant).Scan(&text)
		if err != nil {
			w.Fatal(err)
		}
		if text != "" {
			all[table] = text
		}
	}
	return all
}

// naming are the tables that hold a text anywhere, also in what was enqueued.
func (w *world) naming(text string) (tables []string) {
	w.Helper()
	conn, done := w.admin()
	defer done()
	rows, _ := conn.Query(w.Context(), `SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = ANY ($1)`, services)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.Fatal(err)
	}
	for _, table := range all {
		n := w.count(`SELECT count(*) FROM `+table+` AS t WHERE position($1 IN t::text) > 0 OR position($2 IN t::text) > 0`, text, hex.EncodeToString([]byte(text)))
		if n > 0 {
			tables = append(tables, fmt.Sprintf("%s: %d", table, n))
		}
	}
	return tables
}

// TestUninstalledTenantIsErased uninstalls the App from one of two accounts: after the grace nothing is left of
// its content in any service, its totals stay, and not a row of the other one has changed.
func TestUninstalledTenantIsErased(t *testing.T) {
	w := newWorld(t)
	maps.Copy(w.env["ingest"], map[string]string{"INGEST_ERASURE_GRACE": "1s", "INGEST_PURGE_EVERY": "200ms"})
	w.up()
	w.install("zenith", "kite")
	other, _ := w.reviewed()
	w.repository()
	tenant, opened := w.reviewed()
	w.settled(tenant)
	w.settled(other)
	w.atPeace()
	before, spent := w.rowsOf(other), w.settled(tenant).GetSpent().GetMicros()
	if len(w.rowsOf(tenant)) < 15 || len(before) < 15 {
		t.Fatalf("rows in only %d and %d tables", len(w.rowsOf(tenant)), len(before))
	}
	if _, err := w.ctl.DeleteInstallation(t.Context(), w.installation.ID, control.Options{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the erasure is done", func() error {
		if w.count(`SELECT count(*) FROM ingest.erasures WHERE tenant = $1 AND state = 'done'`, tenant) == 0 {
			return fmt.Errorf("waiting: %d, erasing: %d", w.count(`SELECT count(*) FROM ingest.erasures WHERE state = 'waiting'`), w.count(`SELECT count(*) FROM ingest.erasures WHERE state = 'erasing'`))
		}
		return nil
	})
	left := w.rowsOf(tenant)
	for _, stays := range []string{"ledger.accounts", "ledger.transfers", "scheduler.pauses", "ingest.erasures"} {
		if strings.Count(left[stays], "\n") != 0 || left[stays] == "" {
			t.Errorf("%s holds %q, want one row", stays, left[stays])
		}
		delete(left, stays)
	}
	if len(left) > 0 {
		t.Errorf("rows of the erased tenant are left: %v", left)
	}
	for _, text := range []string{"acme", "widgets", opened.Pull.HeadSHA, w.owner.Login} {
		if tables := w.naming(text); len(tables) > 0 {
			t.Errorf("%q is still named in %v", text, tables)
		}
	}
	if tables := w.naming("kite"); len(tables) == 0 {
		t.Error("the other tenant's repository is named nowhere: the test sees nothing")
	}
	if got := w.settled(tenant).GetSpent().GetMicros(); got != spent || spent == 0 {
		t.Errorf("%d is spent, was %d", got, spent)
	}
	after := w.rowsOf(other)
	for table := range before {
		if after[table] != before[table] {
			t.Errorf("rows of the other tenant in %s have changed:\n%s\nwere\n%s", table, after[table], before[table])
		}
	}
	w.atPeace()
}

// TestDeletedInstallationAsksForNoToken uninstalls the App while a pull request is due, and another has been
// reviewed: whatever is heard or asked for afterwards, no token is asked for.
func TestDeletedInstallationAsksForNoToken(t *testing.T) {
	w := newWorld(t)
	w.env["scheduler"]["SCHEDULER_QUIET"] = "3s"
	w.env["scheduler"]["SCHEDULER_MAX_WAIT"] = "3s"
	w.up()
	w.repository()
	w.reviewed()
	w.push("change", map[string]string{"notes.txt": conflicted + "more\n"}, control.Send)
	eventually(t, "the pull request is due again", func() error {
		return w.some(`SELECT count(*) FROM scheduler.targets WHERE due_at IS NOT NULL AND generation > 1`)
	})
	if _, err := w.ctl.DeleteInstallation(t.Context(), w.installation.ID, control.Options{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the installation is paused for good", func() error {
		return w.some(`SELECT count(*) FROM scheduler.pauses WHERE reason = 'installation_deleted' AND until IS NULL`)
	})
	eventually(t, "whoever was at work has heard of it", func() error {
		if n := w.count(`SELECT (SELECT count(*) FROM scheduler.targets WHERE claim_id IS NOT NULL) + (SELECT count(*) FROM publisher.intents WHERE state = 'sending')`); n != 0 {
			return fmt.Errorf("%d at work", n)
		}
		return nil
	})
	seen, err := w.ctl.Requests(t.Context(), control.RequestFilter{})
	if err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	for _, r := range seen {
		last = max(last, r.Seq)
	}
	w.replay("after it was deleted")
	eventually(t, "it has been due for some scans", func() error {
		return w.some(`SELECT count(*) FROM scheduler.targets WHERE claim_id IS NULL AND ready_at < clock_timestamp() - interval '3 seconds'`)
	})
	later, err := w.ctl.Requests(t.Context(), control.RequestFilter{After: last})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range later {
		t.Errorf("%s %s was asked for", r.Method, r.Path)
	}
}

// some is satisfied where the count is above zero.
func (w *world) some(sql string, args ...any) error {
	if w.count(sql, args...) == 0 {
		return fmt.Errorf("none: %s", sql)
	}
	return nil
}

// TestUnsuspendingGoesOnWithTheNewestState pushes twice to a pull request whose installation is suspended: one
// push is heard of, and waits; the other is not, since GitHub tells a suspended App nothing. Once it is over, the
// newest head is read first and reviewed once, and nothing else is.
func TestUnsuspendingGoesOnWithTheNewestState(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	_, opened := w.reviewed()
	w.atPeace()
	heard := w.push("change", map[string]string{"notes.txt": conflicted + "first\n"}, control.Hold)
	if _, err := w.ctl.SuspendInstallation(t.Context(), w.installation.ID, control.Options{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the installation is paused", func() error {
		return w.some(`SELECT count(*) FROM scheduler.pauses WHERE cause = 'suspension' AND until > clock_timestamp()`)
	})
	before := w.count(`SELECT count(*) FROM reviewer.attempts`)
	if _, err := w.ctl.SendDelivery(t.Context(), heard.Deliveries[0].GUID, control.Resend{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the push waits", func() error {
		return w.some(`SELECT count(*) FROM scheduler.targets WHERE generation > 1 AND claim_id IS NULL AND ready_at < clock_timestamp() - interval '2 seconds'`)
	})
	newest := w.push("change", map[string]string{"notes.txt": conflicted + "second\n"}, control.None)
	if _, err := w.ctl.UnsuspendInstallation(t.Context(), w.installation.ID, control.Options{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the newest head is shown", func() error { return w.shown(newest.After) })
	w.oneReview(w.atRest(), opened.Pull.Number, newest.After)
	if got := w.count(`SELECT count(*) FROM reviewer.attempts`) - before; got != 1 {
		t.Errorf("%d attempts since, want one, of the newest head", got)
	}
}

// TestRefusedTokenRenewsTheSuspension finds a suspension out by a refused token, and lets its pause run out while
// it lasts: the next refused token renews it, whether a review or a page needed it.
func TestRefusedTokenRenewsTheSuspension(t *testing.T) {
	for _, asks := range []string{"reviewer", "publisher"} {
		t.Run(asks, func(t *testing.T) {
			w := newWorld(t)
			held := newGate()
			if asks == "publisher" {
				w.proxies["publisher"].fault(publishEpoch, held.before)
			}
			w.up()
			w.repository()
			opened := w.open(control.Hold)
			suspend := func() {
				if _, err := w.ctl.SuspendInstallation(t.Context(), w.installation.ID, control.Options{Webhook: control.None}); err != nil {
					t.Fatal(err)
				}
			}
			if asks == "reviewer" {
				suspend()
			}
			if _, err := w.ctl.SendDelivery(t.Context(), opened.Deliveries[0].GUID, control.Resend{}); err != nil {
				t.Fatal(err)
			}
			if asks == "publisher" {
				wait(t, "an epoch is to be published", held.reached)
				suspend()
				w.proxies["publisher"].fault(publishEpoch, nil)
				held.release()
			}
			const holds = `SELECT count(*) FROM scheduler.pauses WHERE cause IN ('suspension', 'throttled') AND scope = 'installation'
				AND until BETWEEN clock_timestamp() + interval '9 minutes' AND clock_timestamp() + interval '10 minutes'`
			eventually(t, "the installation is paused for ten minutes", func() error { return w.some(holds) })
			since := w.count(`SELECT extract(epoch FROM min(set_at))::bigint FROM scheduler.pauses`)
			for range 2 {
				w.exec(`UPDATE scheduler.pauses SET until = clock_timestamp() - interval '1 second'`)
				eventually(t, "the pause is renewed", func() error { return w.some(holds) })
			}
			if again := w.count(`SELECT extract(epoch FROM min(set_at))::bigint FROM scheduler.pauses`); again != since {
				t.Errorf("paused since %d, was %d: a pause that is renewed is one", again, since)
			}
			if _, err := w.ctl.UnsuspendInstallation(t.Context(), w.installation.ID, control.Options{}); err != nil {
				t.Fatal(err)
			}
			w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
		})
	}
}
