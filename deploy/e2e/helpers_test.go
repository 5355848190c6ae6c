package e2e

import (
	"fmt"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

const publishEpoch = publisherv1.PublisherService_PublishEpoch_FullMethodName

// brisk shortens every lease, for tests in which many are waited out.
func (w *world) brisk() {
	for _, s := range services {
		p := strings.ToUpper(s)
		w.env[s][p+"_OUTBOX_SEND_TIMEOUT"], w.env[s][p+"_OUTBOX_LEASE"] = "800ms", "3s"
	}
	maps.Copy(w.env["scheduler"], map[string]string{"SCHEDULER_LEASE": "1s", "SCHEDULER_RETRY_MAX": "300ms"})
	maps.Copy(w.env["reviewer"], map[string]string{"REVIEWER_SCAN": "300ms", "REVIEWER_REAP_EVERY": "500ms", "REVIEWER_REAP_MARGIN": "500ms"})
	maps.Copy(w.env["publisher"], map[string]string{
		"PUBLISHER_GITHUB_TIMEOUT": "500ms", "PUBLISHER_GRACE": "1s", "PUBLISHER_LEASE": "5s", "PUBLISHER_POLL": "200ms",
	})
}

// handled checks how many writes of a class took effect on GitHub.
func (w *world) handled(class string, want int) {
	w.Helper()
	seen, err := w.ctl.Requests(w.Context(), control.RequestFilter{Class: class})
	if err != nil {
		w.Fatal(err)
	}
	n := 0
	for _, r := range seen {
		if r.Handled && r.Status < 300 {
			n++
		}
	}
	if n != want {
		w.Errorf("%d requests of %s took effect, want %d", n, class, want)
	}
}

// count reads one number as the administrator.
func (w *world) count(sql string, args ...any) int64 {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.db.AdminDSN())
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = conn.Close(w.Context()) }()
	var n int64
	if err := conn.QueryRow(w.Context(), sql, args...).Scan(&n); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	return n
}

// exec changes something as the administrator.
func (w *world) exec(sql string, args ...any) {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.db.AdminDSN())
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = conn.Close(w.Context()) }()
	if _, err := conn.Exec(w.Context(), sql, args...); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

// shown is shows without a question to the scheduler.
func (w *world) shown(sha string) error {
	if w.count(`SELECT count(*) FROM scheduler.targets WHERE page_kind = 'result' AND page_head = $1 AND page_delivery = 'delivered'`, sha) == 0 {
		return fmt.Errorf("%s is not shown", sha)
	}
	return nil
}

// state describes a target, for a test that fails.
func (w *world) state(number int) string {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.db.AdminDSN())
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close(w.Context()) }()
	var out string
	err = conn.QueryRow(w.Context(), `
SELECT format('%s generation %s/%s epoch %s %s of %s %s due %s not before %s claim %s lapses %s; read %s %s; hint %s %s; last decisions %s; open intents %s',
       state, generation, resolved_generation, epoch, page_kind, left(page_head, 7), page_delivery, due_at, not_before, claim_id, lapses,
       read_state, left(read_head, 7), hint_state, left(hint_head, 7),
       (SELECT string_agg(kind || ' ' || reason, ', ' ORDER BY sequence) FROM (SELECT * FROM scheduler.decisions AS d WHERE d.target_id = t.id ORDER BY sequence DESC LIMIT 8) AS d),
       (SELECT string_agg(i.surface || ' ' || i.epoch || ' ' || i.state || ' ' || i.op || ' at ' || i.available_at || ' ' || i.last_error, ', ') FROM publisher.intents AS i WHERE i.target_id = t.id AND i.state IN ('pending', 'sending')))
  FROM scheduler.targets AS t WHERE number = $1`, number).Scan(&out)
	if err != nil {
		return err.Error()
	}
	return out
}

// paused says why there are not n pauses.
func (w *world) paused(n int64) error {
	if got := w.count(`SELECT count(*) FROM scheduler.pauses WHERE until IS NULL OR until > clock_timestamp()`); got != n {
		return fmt.Errorf("%d pauses, want %d", got, n)
	}
	return nil
}

// ended waits until nothing is due or claimed and the last epoch's delivery has ended, however it did.
func (w *world) ended() *schedulerv1.Target {
	w.Helper()
	var at *schedulerv1.Target
	eventually(w.T, "the last epoch has ended", func() error {
		t, err := w.target()
		if err == nil && (t.GetDueAt() != nil || t.GetClaimed() || t.GetDelivery() == "pending") {
			err = fmt.Errorf("not at rest: %v", t)
		}
		at = t
		return err
	})
	return at
}
