package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/pkg/redistest"
)

// TestPostgresCrashesUnderLoad crashes the database again and again while pull requests are pushed to: no
// delivery that was answered with 2xx is lost, no service has to be restarted, and all comes to rest.
func TestPostgresCrashesUnderLoad(t *testing.T) {
	t.Parallel()
	pg := newOwnPostgres(t)
	w := newWorldOn(t, pg, "crashes")
	w.env["scheduler"]["SCHEDULER_LEASE"] = "3s"
	w.up()
	w.repository()
	opened := w.open(control.Send)
	var last control.Pushed
	var deliveries []control.Delivery
	for round := range 4 {
		last = w.change(2*round, control.Send)
		deliveries = append(deliveries, last.Deliveries...)
		pg.crash()
		for _, s := range services {
			if code := w.probe(s, "/healthz"); code != http.StatusOK {
				t.Errorf("%s says it is not alive while its database is away: %d", s, code)
			}
			eventually(t, s+" is not ready without its database", func() error {
				if code := w.probe(s, "/readyz"); code != http.StatusServiceUnavailable {
					return fmt.Errorf("readyz: %d", code)
				}
				return nil
			})
		}
		last = w.change(2*round+1, control.Send) // while it is away
		deliveries = append(deliveries, last.Deliveries...)
		for _, d := range last.Deliveries {
			if got, err := w.ctl.WaitDelivery(t.Context(), d.GUID, 1); err != nil || got.Attempts[0].StatusCode != http.StatusServiceUnavailable {
				t.Errorf("a delivery without a database was answered %+v, %v", got.Attempts, err)
			}
		}
		pg.restart()
	}
	w.redeliver(deliveries)
	eventually(t, "the last head is shown", func() error { return w.shows(last.After) })
	w.oneReview(w.atRest(), opened.Pull.Number, last.After)
	for _, s := range services {
		if w.probe(s, "/readyz") != http.StatusOK {
			t.Errorf("%s is not ready again", s)
		}
	}
}

// redeliver sends again what was not taken, as an operator or GitHub's API would.
func (w *world) redeliver(all []control.Delivery) {
	w.Helper()
	for _, d := range all {
		n := 0
		eventually(w.T, "a delivery is taken", func() error {
			got, err := w.ctl.GetDelivery(w.Context(), d.GUID)
			if err != nil || got.Answered() {
				return err
			}
			if n++; n > 1 {
				if _, err := w.ctl.SendDelivery(w.Context(), d.GUID, control.Resend{}); err != nil {
					return err
				}
				if got, err = w.ctl.WaitDelivery(w.Context(), d.GUID, len(got.Attempts)+1); err == nil && got.Answered() {
					return nil
				}
			}
			return errors.New("not yet")
		})
	}
}

// probe asks a service's debug listener.
func (w *world) probe(service, path string) int {
	w.Helper()
	resp, err := http.Get("http://" + w.debug[service] + path)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestSessionsTerminatedAllTheTime ends random sessions while pushes arrive.
func TestSessionsTerminatedAllTheTime(t *testing.T) {
	w := newWorld(t)
	w.env["scheduler"]["SCHEDULER_LEASE"] = "3s"
	w.up()
	w.repository()
	opened := w.open(control.Send)
	stop := w.storm(100 * time.Millisecond)
	var last control.Pushed
	var all []control.Delivery
	all = append(all, opened.Deliveries...)
	for n := range 12 {
		last = w.change(n, control.Send)
		all = append(all, last.Deliveries...)
	}
	w.redeliver(all)
	w.heard(5)
	stop()
	eventually(t, "the last head is shown", func() error { return w.shows(last.After) })
	w.oneReview(w.atRest(), opened.Pull.Number, last.After)
}

// storm terminates one random session of the services every so often until it is told to stop.
func (w *world) storm(every time.Duration) (stop func()) {
	conn, err := pgx.Connect(w.Context(), w.db.AdminDSN())
	if err != nil {
		w.Fatal(err)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = conn.Close(context.WithoutCancel(w.Context())) }()
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if _, err := conn.Exec(w.Context(), `SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity
  WHERE datname = current_database() AND usename LIKE 'fl\_%' ORDER BY random() LIMIT 2) AS victims`); err != nil {
					w.Errorf("terminate sessions: %v", err)
					return
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}

// TestRedisFlushedHangingAndRestarted takes the doorbell away in every manner, with a push in each.
func TestRedisFlushedHangingAndRestarted(t *testing.T) {
	w := newWorld(t)
	server := redistest.Server(t)
	if !server.Real() {
		t.Skip("needs a redis-server")
	}
	w.redis = server.Addr()
	w.up()
	w.repository()
	opened := w.open(control.Send)
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
	for n, trouble := range []func() error{
		func() error {
			rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
			defer func() { _ = rdb.Close() }()
			return rdb.FlushAll(t.Context()).Err()
		},
		server.Pause, server.Resume, server.Stop,
	} {
		if err := trouble(); err != nil {
			t.Fatal(err)
		}
		pushed := w.change(n, control.Send)
		eventually(t, "the new head is shown", func() error { return w.shows(pushed.After) })
		w.oneReview(w.atRest(), opened.Pull.Number, pushed.After)
	}
	for s, p := range w.procs {
		if n := p.audit.count("doorbell is away, the scan finds the work"); n > 20 {
			t.Errorf("%s said %d times that the doorbell is away", s, n)
		}
	}
}
