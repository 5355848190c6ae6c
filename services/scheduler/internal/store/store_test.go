package store

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

var (
	tenantA = scheduler.TenantID{0xa}
	tenantB = scheduler.TenantID{0xb}
)

// bundle is one test's database and store, with short times.
type bundle struct {
	*Store
	db *pgtest.DB
}

func setup(t *testing.T) bundle {
	t.Helper()
	return setupRules(t, func(*scheduler.Rules) {})
}

func setupRules(t *testing.T, change func(*scheduler.Rules)) bundle {
	t.Helper()
	rules := scheduler.Defaults()
	rules.Quiet, rules.MaxWait = time.Microsecond, time.Second
	change(&rules)
	db := pgtest.New(t, migrations.FS)
	return bundle{New(db.Open(t, "scheduler"), outbox.New("scheduler"), rules, "reviews"), db}
}

// ctx outlives the test's own, for clean-up and other goroutines.
func (b bundle) ctx(t interface{ Context() context.Context }) context.Context {
	return context.WithoutCancel(t.Context())
}

func pull(n int64) scheduler.PullRequest {
	return scheduler.PullRequest{Project: scheduler.ProjectID{1}, Host: "github.com", Installation: 7, Repository: 99, FullName: "acme/widgets", Number: n}
}

func push(id, head string, at int) scheduler.Activity {
	return scheduler.Activity{
		ID: scheduler.ActivityID(id), Cause: scheduler.CauseWebhook, PullRequest: pull(1), Delivery: scheduler.DeliveryID(id),
		Hint: scheduler.Hint{
			Content:   scheduler.Content{State: scheduler.StateOpen, Head: head, BaseRef: "main"},
			UpdatedAt: time.Date(2026, 1, 1, 0, 0, at, 0, time.UTC),
		},
	}
}

func reading(head string, at int) scheduler.Reading {
	return scheduler.Reading{
		Content: scheduler.Content{State: scheduler.StateOpen, Head: head, BaseRef: "main"}, BaseSHA: "base0", MergeBase: "base0",
		UpdatedAt: time.Date(2026, 1, 1, 0, 0, at, 0, time.UTC),
	}
}

func (b bundle) record(t *testing.T, tenant scheduler.TenantID, a scheduler.Activity) scheduler.Recorded {
	t.Helper()
	r, err := b.Record(t.Context(), tenant, a, "pull_request.synchronize")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (b bundle) claimOne(t *testing.T) scheduler.Claimed {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		claimed, _, err := b.ClaimTargets(t.Context(), "worker", 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(claimed) == 1 {
			return claimed[0]
		}
	}
	t.Fatal("nothing to claim within 5s")
	return scheduler.Claimed{}
}

func (b bundle) resolve(t *testing.T, c scheduler.Claimed, in scheduler.Reading) (scheduler.Resolution, scheduler.Fence) {
	t.Helper()
	res, f, err := b.Resolve(t.Context(), c.Tenant, c.Fence(), in)
	if err != nil {
		t.Fatal(err)
	}
	return res, f
}

func accepted(attempt byte) scheduler.Outcome {
	return scheduler.Outcome{Accepted: &scheduler.Result{
		Attempt: scheduler.AttemptID{attempt}, Verdict: scheduler.VerdictClean, Engine: "builtin", CostMicros: 100,
	}}
}

func (b bundle) target(t *testing.T, tenant scheduler.TenantID, id scheduler.TargetID) scheduler.Target {
	t.Helper()
	got, err := b.Target(context.WithoutCancel(t.Context()), tenant, id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestQueriesPrepare(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	all := maps.Clone(queries)
	maps.Copy(all, readQueries)
	maps.Copy(all, retentionQueries)
	maps.Copy(all, departQueries)
	pgtest.PrepareAll(t, db, "scheduler", all)
}

// TestTargetRoundTrip writes a target in which every field is set and reads it back: no column is
// forgotten, in either direction.
func TestTargetRoundTrip(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.record(t, tenantA, push("d1", "aaa", 1))
	c := b.claimOne(t)
	_, f := b.resolve(t, c, reading("aaa", 1))
	b.record(t, tenantA, push("d2", "bbb", 2))
	ask := push("r1", "", 0)
	ask.Cause, ask.Hint, ask.Request = scheduler.CauseRequest, scheduler.Hint{}, scheduler.Request{ID: "req", Dry: true, Rerun: true}
	b.record(t, tenantA, ask)
	got := b.target(t, tenantA, r.Target)
	if got.Claim.ID != f.Claim || got.Claim.Run != f.Run || !got.Claim.CancelRequested || got.Hint.Head != "bbb" || got.Read.Head != "aaa" {
		t.Fatalf("claim, hint or read lost: %+v", got)
	}
	if diff := cmp.Diff([]scheduler.Request{{ID: "req", Dry: true, Rerun: true}}, got.Requests); diff != "" {
		t.Fatalf("requests (-want +got):\n%s", diff)
	}
	if got.Generation != 3 || got.FullName != "acme/widgets" || got.DueAt.IsZero() {
		t.Fatalf("got %+v", got)
	}
}

func TestWalkOfOneTarget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.record(t, tenantA, push("d1", "aaa", 1))
	c := b.claimOne(t)
	res, f := b.resolve(t, c, reading("aaa", 1))
	if res.Answer != scheduler.AnswerReview {
		t.Fatalf("answer %q, want review", res.Answer)
	}
	if _, _, err := b.Renew(t.Context(), tenantA, f, false); err != nil {
		t.Fatal(err)
	}
	done, err := b.Commit(t.Context(), tenantA, f, accepted(1))
	if err != nil || done.Epoch != 1 {
		t.Fatalf("commit: %+v, %v", done, err)
	}
	again, err := b.Commit(t.Context(), tenantA, f, accepted(1))
	if err != nil || again != done {
		t.Fatalf("a commit repeated after a lost answer: %+v, %v; want %+v", again, err, done)
	}
	currency, _, _, err := b.CheckCurrent(t.Context(), tenantA, r.Target, scheduler.Check{Lifecycle: 1, Epoch: 1})
	if err != nil || currency != scheduler.Current {
		t.Fatalf("currency %q, %v", currency, err)
	}
	err = b.RecordPublication(t.Context(), tenantA, r.Target, scheduler.Publication{Lifecycle: 1, Epoch: 1, Delivery: scheduler.DeliveryDelivered, CommentURL: "u"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := b.target(t, tenantA, r.Target)
	if got.Due() || got.Claim.Held() || got.Page.Delivery != scheduler.DeliveryDelivered || got.CommentURL != "u" {
		t.Fatalf("not at rest: %+v", got)
	}
	if n := pgtest.Query[int64](t, b.db, `SELECT count(*) FROM scheduler.outbox WHERE destination LIKE '%PublishEpoch' OR destination LIKE '%IssueReceipt'`); n != 2 {
		t.Fatalf("%d messages to publisher and ledger, want 2", n)
	}
}
