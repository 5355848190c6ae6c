package e2e

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestRollingRestart stops every service as an orchestrator does, with a new replica in its place before:
// each stops by itself, in time and without a complaint, and no delivery is refused.
func TestRollingRestart(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
	var all []control.Delivery
	var last control.Pushed
	for n, s := range services {
		last = w.change(2*n, control.Send)
		old := w.procs[s]
		w.up(s) // deliveries and calls go to the new one from here
		all = append(all, last.Deliveries...)
		began := time.Now()
		old.signal(t, syscall.SIGTERM)
		last = w.change(2*n+1, control.Send)
		all = append(all, last.Deliveries...)
		select {
		case <-old.done:
			if code := old.cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("%s ended with %d:\n%s", s, code, old.log)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("%s took %s to stop", s, took)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s does not stop:\n%s", s, old.log)
		}
		if n := old.audit.errors(); n > 0 {
			t.Errorf("%s logged %d errors:\n%s", s, n, old.log)
		}
	}
	for _, d := range all {
		got, err := w.ctl.WaitDelivery(t.Context(), d.GUID, 1)
		if err != nil || got.Attempts[0].StatusCode != http.StatusOK {
			t.Errorf("a delivery was answered %+v, %v", got.Attempts, err)
		}
	}
	eventually(t, "the last head is shown", func() error { return w.shows(last.After) })
	w.oneReview(w.atRest(), opened.Pull.Number, last.After)
}

// TestTwoOfEach runs two replicas of every service, with many pull requests at once and the same
// deliveries sent to both ingests.
func TestTwoOfEach(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	first := map[string]*process{}
	for _, s := range services {
		first[s] = w.procs[s]
	}
	one := w.webhook
	w.up() // another five; calls go to these, work is taken by all
	other := w.webhook
	const pulls = 8
	heads := map[int]string{}
	for n := range pulls {
		branch := fmt.Sprintf("change-%d", n)
		w.push(branch, map[string]string{"notes.txt": conflicted + branch}, control.None)
		opened, err := w.ctl.OpenPull(t.Context(), w.repo.ID, control.OpenPull{Title: branch, Head: branch, Base: "main", Options: control.Options{Webhook: control.Hold}})
		if err != nil {
			t.Fatal(err)
		}
		heads[opened.Pull.Number] = opened.Pull.HeadSHA
		for k := range 4 {
			w.sim.SetWebhook(map[bool]string{true: one, false: other}[k%2 == 0], secret)
			if _, err := w.ctl.SendDelivery(t.Context(), opened.Deliveries[0].GUID, control.Resend{Copies: 3}); err != nil {
				t.Fatal(err)
			}
		}
		if d, err := w.ctl.WaitDelivery(t.Context(), opened.Deliveries[0].GUID, 12); err != nil {
			t.Fatal(err)
		} else {
			for _, a := range d.Attempts {
				if a.StatusCode != http.StatusOK {
					t.Errorf("a copy was answered %d: %s", a.StatusCode, a.Response)
				}
			}
		}
	}
	for number, sha := range heads {
		eventually(t, fmt.Sprintf("#%d is shown", number), func() error { return w.shown(sha) })
		if p := w.page(number, sha); len(p.comments) != 1 || len(p.checks) != 1 {
			t.Errorf("#%d: %d comments, %d check runs", number, len(p.comments), len(p.checks))
		}
	}
	w.atPeace()
	if n := w.count(`SELECT count(*) FROM reviewer.attempts WHERE started_at IS NOT NULL`); n != pulls {
		t.Errorf("%d engine calls for %d heads", n, pulls)
	}
	if n := w.count(`SELECT max(generation) FROM scheduler.targets`); n != 1 {
		t.Errorf("a generation of %d after one delivery each", n)
	}
}

// TestRowsHeldByAStoppedSession locks the rows that everybody needs, as a stopped replica would, for longer
// than a lock is waited for.
func TestRowsHeldByAStoppedSession(t *testing.T) {
	for _, table := range []string{"scheduler.targets", "ledger.accounts", "publisher.senders", "ingest.projects"} {
		t.Run(table, func(t *testing.T) {
			w := newWorld(t)
			w.env["scheduler"]["SCHEDULER_LEASE"] = "2s"
			w.up()
			w.repository()
			opened := w.open(control.Send)
			w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
			conn, err := pgx.Connect(t.Context(), w.db.AdminDSN())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close(t.Context()) }()
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), `SELECT 1 FROM `+table+` FOR UPDATE`); err != nil {
				t.Fatal(err)
			}
			pushed := w.change(1, control.Send)
			eventually(t, "somebody waits for the lock, or for its end", func() error {
				if w.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 && table != "publisher.senders" && table != "ingest.projects" {
					return fmt.Errorf("nobody does")
				}
				return nil
			})
			<-time.After(4 * time.Second) // longer than lock_timeout
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.redeliver(pushed.Deliveries)
			eventually(t, "the new head is shown", func() error { return w.shown(pushed.After) })
			w.oneReview(w.atRest(), opened.Pull.Number, pushed.After)
		})
	}
}

// TestNoCollector sends spans to nobody: the walk is none the worse, and the logs are not full of it.
func TestNoCollector(t *testing.T) {
	w := newWorld(t)
	for _, s := range services {
		w.env[s]["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:9"
	}
	w.up()
	w.repository()
	opened := w.open(control.Send)
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
	for s, p := range w.procs {
		if n := p.audit.warnings(); n > 5 {
			t.Errorf("%s complained %d times:\n%s", s, n, p.log)
		}
	}
}

// TestNoConnectionsLeft takes every connection that the database has: deliveries are refused with 503, and
// everything goes on when there are connections again.
func TestNoConnectionsLeft(t *testing.T) {
	t.Parallel()
	pg := newOwnPostgres(t)
	w := newWorldOn(t, pg, "crowded")
	w.up()
	w.repository()
	opened := w.open(control.Send)
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
	// Those that are open are ended, and their places taken.
	var taken []*pgx.Conn
	admin, err := pgx.Connect(t.Context(), pg.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }()
	for range 400 {
		_, err := admin.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'fenceline-%'`)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(t.Context(), pg.DSN("ledger"))
		if err != nil {
			break
		}
		taken = append(taken, conn)
	}
	pushed := w.change(1, control.Send)
	d, err := w.ctl.WaitDelivery(t.Context(), pushed.Deliveries[0].GUID, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d connections taken, the delivery was answered %d", len(taken), d.Attempts[0].StatusCode)
	for _, conn := range taken {
		_ = conn.Close(t.Context())
	}
	w.redeliver(pushed.Deliveries)
	eventually(t, "the new head is shown", func() error { return w.shown(pushed.After) })
	w.oneReview(w.atRest(), opened.Pull.Number, pushed.After)
}
