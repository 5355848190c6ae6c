package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// invariant is a query that finds what must not be. Those that hold always are asked at the end of every
// test, whatever was killed in it; the others once everything has come to rest.
type invariant struct {
	id   string
	rest bool
	sql  string
}

// ended are the decisions that end a claim.
const ended = `('accepted', 'reused', 'skipped', 'refused', 'released', 'lapsed', 'fenced', 'read_lags', 'over_budget')`

// kept are those whose intents are there still: neither has their lifecycle ended, nor were they erased, nor was an
// older database restored.
const kept = `NOT (SELECT restored FROM bounds) AND EXISTS (SELECT FROM scheduler.targets AS t
                WHERE t.repository_id = s.repository AND t.number = s.number AND t.lifecycle = s.first_lifecycle)`

var invariants = []invariant{
	{"every delivery that names work has exactly one message, or one command", false, `
SELECT d.delivery_id, count(o.id) FROM ingest.deliveries AS d
  LEFT JOIN ingest.outbox AS o ON o.key = format('%s:activity:delivery:%s/%s/%s:0:%s#%s', d.tenant, d.host, d.hook, d.delivery_id, d.repository_id, d.number)
  LEFT JOIN ingest.commands AS c ON c.id = d.id
 WHERE d.decision IN ('trigger_review', 'update_target') GROUP BY d.id, d.delivery_id HAVING count(o.id) + count(c.id) <> 1`},
	{"every message about a pull request is recorded", true, `
SELECT o.key FROM (SELECT * FROM ingest.outbox UNION ALL SELECT * FROM publisher.outbox) AS o
 WHERE o.destination LIKE '%/RecordActivity'
   AND NOT EXISTS (SELECT FROM scheduler.activities AS a WHERE format('%s:activity:%s', a.tenant, a.activity_id) = o.key)`},
	{"no activity without a message", false, `
SELECT a.activity_id FROM scheduler.activities AS a
 WHERE NOT EXISTS (SELECT FROM ingest.outbox AS o WHERE o.key = format('%s:activity:%s', a.tenant, a.activity_id))
   AND NOT EXISTS (SELECT FROM publisher.outbox AS o WHERE o.key = format('%s:activity:%s', a.tenant, a.activity_id))
   -- A departure is told for a project, and recorded for each of its targets.
   AND NOT EXISTS (SELECT FROM ingest.outbox AS o WHERE a.decision = 'departed' AND o.key = format('%s:integration:%s', a.tenant, left(a.activity_id, -37)))`},
	{"generations count what was recorded, without a gap", false, `
SELECT t.id, t.generation, array_agg(a.generation ORDER BY a.generation) FROM scheduler.targets AS t
  LEFT JOIN scheduler.activities AS a ON a.target_id = t.id AND a.decision <> 'already_seen'
 GROUP BY t.id, t.generation HAVING count(a.activity_id) <> t.generation OR count(DISTINCT a.generation) <> t.generation OR max(a.generation) <> t.generation`},
	{"one engine at work per target", false, `
SELECT target_id FROM reviewer.attempts WHERE state = 'started' GROUP BY 1 HAVING count(*) > 1`},
	{"a claim ends once, and belongs to one target", false, `
SELECT claim_id FROM scheduler.decisions WHERE claim_id IS NOT NULL AND kind IN ` + ended + `
 GROUP BY 1 HAVING count(DISTINCT kind) > 1 OR count(DISTINCT target_id) > 1`},
	{"nothing is accepted after a later generation", false, `
SELECT a.run_id, a.generation, x.generation FROM scheduler.decisions AS a
  JOIN scheduler.decisions AS x ON x.target_id = a.target_id AND x.sequence < a.sequence AND x.generation > a.generation
 WHERE a.kind = 'accepted'`},
	{"a result is committed by the claim of its attempt, unless it was adopted", false, `
SELECT r.id FROM scheduler.runs AS r JOIN reviewer.attempts AS a ON a.id = r.attempt_id
 WHERE r.taken_from IS NULL AND NOT r.adopted AND a.claim_id <> r.result_claim`},
	{"a result names a finished attempt of the same diff", false, `
SELECT r.id, a.state FROM scheduler.runs AS r LEFT JOIN reviewer.attempts AS a ON a.id = r.attempt_id
 WHERE r.attempt_id IS NOT NULL AND (a.id IS NULL OR a.state <> 'finished' OR a.head_sha <> r.head_sha OR a.merge_base_sha <> r.merge_base)`},
	{"a run is accepted once", false, `
SELECT run_id FROM scheduler.decisions WHERE kind = 'accepted' GROUP BY 1 HAVING count(*) > 1`},
	{"every started attempt has money held before", false, `
SELECT a.id FROM reviewer.attempts AS a LEFT JOIN ledger.reservations AS v ON v.tenant = a.tenant AND v.attempt_id = a.id
  JOIN scheduler.targets AS t ON t.id = a.target_id AND t.lifecycle = a.lifecycle
 WHERE a.started_at IS NOT NULL AND (v.attempt_id IS NULL OR v.state = 'tombstone' OR v.held_at > a.started_at)`},
	{"a reservation is closed once", false, `
SELECT attempt_id FROM ledger.transfers WHERE kind IN ('settle', 'void') GROUP BY tenant, attempt_id HAVING count(*) > 1`},
	{"what ended is paid or freed", true, `
SELECT a.id, a.state, v.state FROM reviewer.attempts AS a JOIN ledger.reservations AS v ON v.attempt_id = a.id
 WHERE a.ended_at IS NOT NULL AND v.state = 'open'`},
	{"nothing is held for an attempt that nobody knows", true, `
SELECT v.attempt_id FROM ledger.reservations AS v LEFT JOIN reviewer.attempts AS a ON a.id = v.attempt_id
 WHERE v.state = 'open' AND (a.id IS NULL OR a.ended_at IS NOT NULL)`},
	{"what attempts cost is what was spent", true, `
SELECT a.id, a.cost, v.settled, v.overrun FROM reviewer.attempts AS a JOIN ledger.reservations AS v ON v.attempt_id = a.id
 WHERE a.ended_at IS NOT NULL AND a.cost <> v.settled + v.overrun`},
	{"0 <= settled <= reserved", false, `
SELECT attempt_id FROM ledger.reservations WHERE settled < 0 OR settled > amount`},
	{"postings sum to zero", false, `
SELECT id FROM ledger.transfers WHERE grants + available + reserved + spent + overruns <> 0`},
	{"balances equal their postings", false, `
SELECT a.tenant FROM ledger.accounts AS a JOIN ledger.transfers AS t USING (tenant)
 GROUP BY a.tenant, a.granted, a.available, a.reserved, a.spent, a.overruns HAVING (a.granted, a.available, a.reserved, a.spent, a.overruns)
    <> (-sum(t.grants), sum(t.available), sum(t.reserved), sum(t.spent), sum(t.overruns))`},
	{"nobody holds and spends more than was granted", false, `
SELECT tenant FROM ledger.accounts WHERE reserved + spent > granted`},
	{"transfers are numbered without a gap", false, `
SELECT a.tenant FROM ledger.accounts AS a JOIN ledger.transfers AS t USING (tenant)
 GROUP BY a.tenant HAVING sum(t.covers) <> a.sequence OR count(*) FILTER (WHERE t.kind = 'opening') > 1`},
	{"a run that ended has a complete receipt", true, `
SELECT c.run_id, r.state FROM ledger.receipts AS c LEFT JOIN scheduler.runs AS r ON r.id = c.run_id
 WHERE c.completed_at IS NULL AND r.state IS DISTINCT FROM 'open'`},
	{"no more engine calls than a run may have", false, `
SELECT run_id FROM reviewer.attempts WHERE number > 0 GROUP BY 1 HAVING count(*) > (SELECT attempts FROM bounds)`},
	{"tenants agree along every link", false, `
SELECT a.id FROM reviewer.attempts AS a JOIN scheduler.runs AS r ON r.id = a.run_id WHERE a.tenant <> r.tenant
 UNION ALL SELECT i.id FROM publisher.intents AS i JOIN scheduler.targets AS t ON t.id = i.target_id WHERE i.tenant <> t.tenant
 UNION ALL SELECT v.attempt_id FROM ledger.reservations AS v JOIN reviewer.attempts AS a ON a.id = v.attempt_id WHERE v.tenant <> a.tenant
 UNION ALL SELECT t.id FROM scheduler.targets AS t JOIN ingest.projects AS p ON p.id = t.project_id WHERE t.tenant <> p.tenant`},
	{"no lease is longer than it may be", false, `
SELECT id FROM scheduler.targets WHERE lease_until > claimed_at + interval '15 min' OR lease_until > clock_timestamp() + interval '15 min'`},
	{"one comparison is one run", false, `
SELECT target_id FROM scheduler.runs GROUP BY target_id, lifecycle, base_sha, head_sha, ordinal HAVING count(*) > 1`},
	{"no message is parked", false, `
SELECT destination, park_reason, last_error FROM (SELECT * FROM ingest.outbox UNION ALL SELECT * FROM scheduler.outbox UNION ALL
  SELECT * FROM reviewer.outbox UNION ALL SELECT * FROM ledger.outbox UNION ALL SELECT * FROM publisher.outbox) AS o WHERE parked_at IS NOT NULL`},
	{"no message waits", true, `
SELECT destination, last_error FROM (SELECT * FROM ingest.outbox UNION ALL SELECT * FROM scheduler.outbox UNION ALL
  SELECT * FROM reviewer.outbox UNION ALL SELECT * FROM ledger.outbox UNION ALL SELECT * FROM publisher.outbox) AS o
 WHERE dispatched_at IS NULL AND parked_at IS NULL AND not_before <= clock_timestamp()`},
	{"no intent is open that is not of the last epoch", true, `
SELECT i.key, i.state, i.last_error FROM publisher.intents AS i JOIN scheduler.targets AS t ON t.id = i.target_id
 WHERE i.state IN ('pending', 'sending') AND i.epoch < t.epoch`},
	{"every comment of ours was recorded before it was posted", false, `
SELECT s.id FROM seen AS s WHERE s.ours AND NOT EXISTS (
  SELECT FROM publisher.intents AS i JOIN publisher.epochs AS e USING (tenant, target_id, lifecycle, epoch)
   WHERE i.surface IN ('summary', 'reply') AND e.repository_id = s.repository AND e.number = s.number AND i.sent_at IS NOT NULL
     AND (e.lifecycle, e.epoch) = (s.first_lifecycle, s.first_epoch))
   AND ` + kept},
	{"no two visible comments of one surface", true, `
SELECT repository, number, surface FROM seen WHERE ours AND visible GROUP BY 1, 2, 3 HAVING count(*) > 1`},
	{"no surface is somebody else's comment", false, `
SELECT s.id FROM publisher.surfaces AS f JOIN seen AS s ON s.id = f.github_id WHERE f.surface = 'summary' AND NOT s.ours`},
	{"a visible comment says what the page should say", true, `
SELECT s.id, s.epoch, t.epoch, t.page_kind FROM seen AS s
  JOIN scheduler.targets AS t ON t.repository_id = s.repository AND t.number = s.number
 WHERE s.ours AND s.visible AND t.page_delivery = 'delivered' AND (s.lifecycle, s.epoch) <> (t.lifecycle, t.epoch)
   AND NOT EXISTS (SELECT FROM publisher.intents AS i WHERE i.surface = 'reply' AND i.github_id = s.id)
   AND (s.lifecycle = t.lifecycle OR t.read_at IS NOT NULL) -- or nothing was read since the lifecycle of before ended`},
	{"no lower epoch overwrites a higher one", false, `
SELECT id FROM seen WHERE backwards`},
	{"one check run per head and run", true, `
SELECT head, external_id FROM checked WHERE external_id <> 'duplicate' GROUP BY 1, 2 HAVING count(*) > 1`},
	{"every check run has concluded", true, `
SELECT id, external_id, status FROM checked WHERE status <> 'completed'`},
	{"no two marked reviews of one run and part", true, `
SELECT repository, number, surface FROM seen_reviews GROUP BY 1, 2, 3 HAVING count(*) > 1`},
	{"nothing is remarked twice while it stands", true, `
SELECT repository, number, fingerprint FROM seen_remarks WHERE visible AND NOT resolved GROUP BY 1, 2, 3 HAVING count(*) > 1`},
	{"every review of ours was recorded before it was posted", false, `
SELECT s.id FROM seen_reviews AS s WHERE NOT EXISTS (
  SELECT FROM publisher.intents AS i JOIN publisher.epochs AS e USING (tenant, target_id, lifecycle, epoch, step)
   WHERE i.surface = 'review' AND e.repository_id = s.repository AND e.number = s.number AND i.sent_at IS NOT NULL
     AND (e.lifecycle, e.epoch) = (s.first_lifecycle, s.first_epoch))
   AND ` + kept},
	{"every check run and status of ours was recorded before it was written", false, `
SELECT s.id, s.surface, s.head FROM on_heads AS s WHERE NOT EXISTS (
  SELECT FROM publisher.intents AS i JOIN publisher.epochs AS e USING (tenant, target_id, lifecycle, epoch, step)
   WHERE i.surface = s.surface AND e.repository_id = s.repository AND i.sent_at IS NOT NULL
     AND split_part(i.surface_key, ':', 1) = s.head)
   AND EXISTS (SELECT FROM scheduler.targets AS t WHERE t.repository_id = s.repository)
   AND NOT EXISTS (SELECT FROM scheduler.targets AS t WHERE t.repository_id = s.repository AND t.lifecycle > 1)
   AND NOT (SELECT restored FROM bounds)`},
}

// look asks the invariants, and returns what it found.
func (w *world) look(ctx context.Context, rest bool) error {
	conn, err := pgx.Connect(ctx, w.db.AdminDSN())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	// GitHub first: what is there now was recorded before.
	all, err := w.truth(ctx)
	if err != nil {
		return err
	}
	// One snapshot, so that what two services say of each other is of one moment.
	if _, err := conn.Exec(ctx, `SET default_transaction_isolation = 'repeatable read'`); err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := w.tell(ctx, tx, all); err != nil {
		return err
	}
	return broken(ctx, tx, rest)
}

// broken runs the queries, those of a system at rest only where it is.
func broken(ctx context.Context, tx pgx.Tx, rest bool) error {
	var found []error
	for _, i := range invariants {
		if i.rest && !rest {
			continue
		}
		rows, err := tx.Query(ctx, i.sql)
		if err != nil {
			return fmt.Errorf("%s: %w", i.id, err)
		}
		bad, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
		if err != nil {
			return fmt.Errorf("%s: %w", i.id, err)
		}
		if len(bad) > 0 {
			found = append(found, fmt.Errorf("not so: %s: %d rows, the first is %s", i.id, len(bad), text(bad[0])))
		}
	}
	return errors.Join(found...)
}

func text(row []any) string {
	out := make([]string, len(row))
	for i, v := range row {
		if id, ok := v.([16]byte); ok {
			v = fmt.Sprintf("%x", id)
		}
		out[i] = fmt.Sprint(v)
	}
	return strings.Join(out, ", ")
}

// atPeace waits until every invariant holds, also those of a system at rest.
func (w *world) atPeace() {
	w.Helper()
	eventually(w.T, "everything comes to rest", func() error { return w.look(w.Context(), true) })
}

// marker is the first line of what the publisher posts.
var marker = regexp.MustCompile(`^<!-- fenceline:1 s=([0-9a-f]+) r=\S* e=(\d+)\.(\d+) h=[0-9a-f]+ -->`)

// truth is what is on GitHub.
type truth struct {
	comments []control.Comment
	checks   []control.CheckRun
	reviews  []control.Review
	statuses []control.Status
}

func (w *world) truth(ctx context.Context) (all truth, err error) {
	if all.comments, err = w.ctl.Comments(ctx, 0, 0); err != nil {
		return all, err
	}
	if all.checks, err = w.ctl.CheckRuns(ctx, 0, ""); err != nil {
		return all, err
	}
	if all.reviews, err = w.ctl.Reviews(ctx, 0, 0); err != nil {
		return all, err
	}
	all.statuses, err = w.ctl.Statuses(ctx, 0, "")
	return all, err
}

// tell puts the simulator's truth into tables beside ours.
func (w *world) tell(ctx context.Context, tx pgx.Tx, all truth) error {
	_, err := tx.Exec(ctx, `
CREATE TEMPORARY TABLE seen (id bigint, repository bigint, number bigint, ours boolean, visible boolean, surface text,
  lifecycle bigint, epoch bigint, first_lifecycle bigint, first_epoch bigint, backwards boolean) ON COMMIT DROP;
CREATE TEMPORARY TABLE checked (id bigint, head text, external_id text, status text) ON COMMIT DROP;
CREATE TEMPORARY TABLE on_heads (id bigint, repository bigint, surface text, head text) ON COMMIT DROP;
CREATE TEMPORARY TABLE seen_reviews (id bigint, repository bigint, number bigint, surface text, first_lifecycle bigint, first_epoch bigint) ON COMMIT DROP;
CREATE TEMPORARY TABLE seen_remarks (id bigint, repository bigint, number bigint, fingerprint text, visible boolean, resolved boolean) ON COMMIT DROP;
CREATE TEMPORARY TABLE bounds (attempts integer, restored boolean) ON COMMIT DROP`)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO bounds VALUES ($1, $2)`, cmp.Or(w.maxAttempts, 3), w.restored); err != nil {
		return err
	}
	b := &pgx.Batch{}
	for _, c := range all.comments {
		s := told(c)
		b.Queue(`INSERT INTO seen VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`, c.ID, c.RepositoryID, c.Number,
			s.ours, c.DeletedAt == nil, s.surface, s.last[0], s.last[1], s.first[0], s.first[1], s.backwards)
	}
	for _, c := range all.checks {
		b.Queue(`INSERT INTO checked VALUES ($1, $2, $3, $4)`, c.ID, c.HeadSHA, c.ExternalID, c.Status)
		b.Queue(`INSERT INTO on_heads VALUES ($1, $2, 'check_run', $3)`, c.ID, c.RepositoryID, c.HeadSHA)
	}
	for _, s := range all.statuses {
		b.Queue(`INSERT INTO on_heads VALUES ($1, $2, 'commit_status', $3)`, s.ID, s.RepositoryID, s.SHA)
	}
	for _, r := range all.reviews {
		tellReview(b, r)
	}
	return tx.SendBatch(ctx, b).Close()
}

// tellReview tells of a review of ours that is on the page, and of its inline comments. One that is a duplicate has
// no marker any more.
func tellReview(b *pgx.Batch, r control.Review) {
	if r.Author.Login != bot || r.SubmittedAt == nil || r.DeletedAt != nil {
		return
	}
	if m := marker.FindStringSubmatch(r.Body); m != nil {
		var first [2]int64
		if m := marker.FindStringSubmatch(r.History[0].Body); m != nil {
			_, _ = fmt.Sscan(m[2], &first[0])
			_, _ = fmt.Sscan(m[3], &first[1])
		}
		b.Queue(`INSERT INTO seen_reviews VALUES ($1, $2, $3, $4, $5, $6)`, r.ID, r.RepositoryID, r.Number, m[1], first[0], first[1])
	}
	for _, c := range r.Comments {
		if m := remarked.FindStringSubmatch(c.Body); m != nil {
			b.Queue(`INSERT INTO seen_remarks VALUES ($1, $2, $3, $4, $5, $6)`, c.ID, c.RepositoryID, c.Number, m[4], c.DeletedAt == nil, m[5] == "1")
		}
	}
}

// said is what a comment says, over time.
type said struct {
	ours        bool
	surface     string
	first, last [2]int64 // lifecycle and epoch
	backwards   bool     // our own edits went back to an earlier epoch
}

func told(c control.Comment) said {
	s := said{ours: c.Author.Login == "fenceline[bot]"}
	if !s.ours {
		return s
	}
	for _, v := range c.History {
		m := marker.FindStringSubmatch(v.Body)
		if m == nil || !strings.HasSuffix(v.By, "[bot]") {
			continue
		}
		var at [2]int64
		_, _ = fmt.Sscan(m[2], &at[0])
		_, _ = fmt.Sscan(m[3], &at[1])
		if s.surface == "" {
			s.first = at
		}
		s.backwards = s.backwards || at[0] < s.last[0] || at[0] == s.last[0] && at[1] < s.last[1]
		s.surface, s.last = m[1], at
	}
	return s
}

// hold checks at the end of a test what always holds.
func (w *world) hold() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.look(ctx, false); err != nil {
		w.Errorf("at the end:\n%v", err)
	}
}
