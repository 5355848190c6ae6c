package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// TestReceiptOfAKnownRepositoryIsOneRoundTrip: the cost of an acknowledged webhook.
func TestReceiptOfAKnownRepositoryIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t, migrations.FS)
	db := d.Open(t, "ingest")
	s := over(db, everybody)
	deliver(t, s, "first", pull(acmeInstalled, rocket))
	deliver(t, s, "second", pull(acmeInstalled, rocket)) // looks up what the first one stored
	before := db.Stats()
	a := deliver(t, s, "third", pull(acmeInstalled, rocket))
	expect(t, "third", a, ingest.TriggerReview, "revision")
	after := db.Stats()
	if trips, commits := after.Trips-before.Trips, after.Commits-before.Commits; trips != 1 || commits != 1 {
		t.Errorf("%d round trips and %d commits, want 1 and 1", trips, commits)
	}
	before = after
	deliver(t, s, "ignored", ingest.Event{Name: "star", Action: "created"})
	if trips := db.Stats().Trips - before.Trips; trips != 1 {
		t.Errorf("%d round trips for an event that is ignored, want 1", trips)
	}
	expectRows(t, d, rows{Receipts: 4, Messages: 3, Accounts: 1, Installations: 1, Projects: 1})
}

func TestActivityTellsTheSchedulerWhatTheReceiptSays(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	e := pull(acmeInstalled, rocket)
	e.Action, e.BeforeSHA, e.PullRequest.Draft = "synchronize", strings.Repeat("a", 40), true
	a := deliver(t, s, "guid", e)
	expect(t, "draft", a, ingest.UpdateTarget, "draft")
	var got schedulerv1.RecordActivityRequest
	if err := proto.Unmarshal(pgtest.Query[[]byte](t, d, "SELECT payload FROM ingest.outbox"), &got); err != nil {
		t.Fatal(err)
	}
	tenant := tenantOfAccount(t, d, acme)
	want := &schedulerv1.RecordActivityRequest{
		Tenant: tenant.String(),
		PullRequest: &schedulerv1.PullRequest{
			ProjectId: pgtest.Query[uuid.UUID](t, d, "SELECT id FROM ingest.projects").String(), Host: host,
			InstallationId: acmeInstalled, RepositoryId: rocket.ID, Repository: rocket.Name, Number: 5,
		},
		ActivityId: "delivery:github.com/integration/424242/guid:0:701#5", Cause: schedulerv1.ActivityCause_ACTIVITY_CAUSE_WEBHOOK,
		DeliveryId: "guid", Event: "pull_request.synchronize",
		Hint: &schedulerv1.Hint{
			HeadSha: e.PullRequest.HeadSHA, BeforeSha: e.BeforeSHA, BaseRef: "main",
			State: schedulerv1.PullRequestState_PULL_REQUEST_STATE_DRAFT, UpdatedAt: timestamppb.New(morning),
		},
	}
	if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if owner := pgtest.Query[uuid.UUID](t, d, "SELECT tenant FROM ingest.outbox"); owner != uuid.UUID(tenant) {
		t.Errorf("the message belongs to %s, want %s", owner, tenant)
	}
	found, err := s.Delivery(t.Context(), nil, "guid")
	if err != nil || len(found) != 1 {
		t.Fatalf("%d receipts, %v", len(found), err)
	}
	r := found[0]
	if r.ID != a.Receipt || r.Digest != digest("guid") || r.Bytes != 4 || r.Hint.State != "draft" || *r.Tenant != tenant || !r.Hint.UpdatedAt.Equal(morning) {
		t.Errorf("receipt %+v", r)
	}
}

// TestSameDeliveryAtTwoInstancesAtOnce: 200 pairs, some of repositories that nobody knew.
func TestSameDeliveryAtTwoInstancesAtOnce(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t, migrations.FS)
	one, other := over(d.Open(t, "ingest"), everybody), over(d.Open(t, "ingest"), everybody)
	const pairs, each = 200, 10
	for n := range pairs {
		owner := ingest.Account{ID: 1000 + int64(n/each), Login: name("owner", n/each)}
		e := pull(5000+owner.ID, ingest.Repository{ID: 9000 + owner.ID, Name: owner.Login + "/r", Owner: owner})
		id := name("delivery", n)
		var answers [2]ingest.Answer
		var errs [2]error
		barrier := make(chan struct{})
		var both sync.WaitGroup
		for i, s := range []*Store{one, other} {
			both.Go(func() {
				<-barrier
				answers[i], errs[i] = s.Receive(t.Context(), source(id), digest(id), 1, e)
			})
		}
		close(barrier)
		both.Wait()
		if errs[0] != nil || errs[1] != nil {
			t.Fatalf("pair %d: %v", n, errors.Join(errs[:]...))
		}
		if answers[0].Receipt != answers[1].Receipt || answers[0].Decision != answers[1].Decision || answers[0].Duplicate == answers[1].Duplicate {
			t.Fatalf("pair %d was answered %+v", n, answers)
		}
	}
	expectRows(t, d, rows{Receipts: pairs, Messages: pairs, Accounts: pairs / each, Installations: pairs / each, Projects: pairs / each})
	if n := pgtest.Query[int64](t, d, "SELECT sum(duplicates) FROM ingest.deliveries"); n != pairs {
		t.Errorf("%d duplicates counted, want %d", n, pairs)
	}
}

func TestAnotherDigestIsAConflictAndChangesNothing(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	first := deliver(t, s, "guid", pull(acmeInstalled, rocket))
	const state = "SELECT string_agg(xmin::text || ' ' || d::text, ',' ORDER BY id) FROM ingest.deliveries AS d"
	before, stored := count(t, d), pgtest.Query[string](t, d, state)
	other := pull(acmeInstalled, sled)
	other.PullRequest.HeadSHA = strings.Repeat("b", 40)
	for _, e := range []ingest.Event{
		other, pull(acmeInstalled, rocket),
		{Name: "star"},
		installation("created", acmeInstalled, acme, 0, sled),
		pull(zenithInstalled, kite),
	} {
		if _, err := s.Receive(t.Context(), source("guid"), digest("another body"), 1, e); !errors.Is(err, ingest.ErrDigestConflict) {
			t.Errorf("%s: %v, want a conflict", e.Name, err)
		}
	}
	expectRows(t, d, before)
	if now := pgtest.Query[string](t, d, state); now != stored {
		t.Errorf("the receipt was written:\n%s\n%s", stored, now)
	}
	again := deliver(t, s, "guid", pull(acmeInstalled, rocket))
	if want := (ingest.Answer{Receipt: first.Receipt, Decision: first.Decision, Duplicate: true}); again != want {
		t.Errorf("the first body again: %+v, want %+v", again, want)
	}
}

// TestOneEventOfTwoHooks: GitHub gives an App's hook and a repository's the same delivery id for one event.
func TestOneEventOfTwoHooks(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "guid", pull(acmeInstalled, rocket))
	theirs := ingest.Source{Host: host, Hook: "repository/701", DeliveryID: "guid"}
	a, err := s.Receive(t.Context(), theirs, digest("their body"), 1, pull(0, rocket))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "another hook's", a, ingest.Ignore, "hook_not_ours")
	elsewhere := ingest.Source{Host: "ghe.example.test", Hook: hook, DeliveryID: "guid"}
	if a, err = s.Receive(t.Context(), elsewhere, digest("elsewhere"), 1, pull(acmeInstalled, rocket)); err != nil {
		t.Fatal(err)
	}
	expect(t, "another host's", a, ingest.TriggerReview, "revision")
	expectRows(t, d, rows{Receipts: 3, Messages: 2, Accounts: 2, Installations: 2, Projects: 2})
	if found, err := s.Delivery(t.Context(), nil, "guid"); err != nil || len(found) != 3 {
		t.Errorf("%d receipts, %v; want 3", len(found), err)
	}
}

// operation is one way into the store.
type operation struct {
	name  string
	table string
	run   func(context.Context, *Store) (any, error)
}

// operations are all ways that write; run is the same call each time.
func operations(receipt ingest.ReceiptID, tenant ingest.TenantID) []operation {
	receive := func(e ingest.Event) func(context.Context, *Store) (any, error) {
		return func(ctx context.Context, s *Store) (any, error) {
			return s.Receive(ctx, source("under test"), digest("under test"), 1, e)
		}
	}
	type replayed struct {
		N        int32
		Activity string
	}
	return []operation{
		{"receive, known repository", "ingest.outbox", receive(pull(acmeInstalled, rocket))},
		{"receive, new repository", "ingest.outbox", receive(pull(acmeInstalled, sled))},
		{"receive, new account", "ingest.outbox", receive(pull(zenithInstalled, kite))},
		{"receive, ignored", "ingest.deliveries", receive(ingest.Event{Name: "star"})},
		{"receive, installation", "ingest.outbox", receive(installation("created", zenithInstalled, zenith, 1, kite))},
		{"receive, repositories", "ingest.outbox", receive(repositories("removed", acmeInstalled, acme, 1, rocket))},
		{"bind", "ingest.installations", func(ctx context.Context, s *Store) (any, error) {
			return s.Bind(ctx, ingest.Installation{Host: host, ID: zenithInstalled, Account: zenith})
		}},
		{"enrol", "ingest.projects", func(ctx context.Context, s *Store) (any, error) {
			return s.Enrol(ctx, ingest.Project{Tenant: tenant, Host: host, RepositoryID: sled.ID, Repository: sled.Name, InstallationID: acmeInstalled})
		}},
		{"replay", "ingest.outbox", func(ctx context.Context, s *Store) (any, error) {
			n, activity, err := s.Replay(ctx, receipt, "key")
			return replayed{n, activity}, err
		}},
	}
}

// TestAbortBeforeCommit ends the session of each operation while it waits in the middle: nothing of it is
// left, and the same call again succeeds.
func TestAbortBeforeCommit(t *testing.T) {
	t.Parallel()
	for i := range operations(ingest.ReceiptID{}, ingest.TenantID{}) {
		t.Run(operations(ingest.ReceiptID{}, ingest.TenantID{})[i].name, func(t *testing.T) {
			t.Parallel()
			s, d := setup(t, everybody)
			first := deliver(t, s, "first", pull(acmeInstalled, rocket))
			op := operations(first.Receipt, tenantOfAccount(t, d, acme))[i]
			before := count(t, d)

			conn := d.Admin(t)
			lock, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := lock.Exec(t.Context(), "LOCK TABLE "+op.table+" IN EXCLUSIVE MODE"); err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() { _, err := op.run(t.Context(), s); failed <- err }()
			const waiting = "FROM pg_stat_activity WHERE datname = current_database() AND usename = 'fl_ingest' AND wait_event_type = 'Lock'"
			until(t, d, "(SELECT count(*) = 1 "+waiting+")")
			if _, err := lock.Exec(t.Context(), "SELECT pg_terminate_backend(pid) "+waiting); err != nil {
				t.Fatal(err)
			}
			if err := <-failed; !errors.Is(err, pg.ErrUnavailable) {
				t.Errorf("the aborted call: %v, want the database to be unavailable", err)
			}
			if err := lock.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			expectRows(t, d, before)
			if _, err := op.run(t.Context(), s); err != nil {
				t.Errorf("the same call again: %v", err)
			}
			if after := count(t, d); after == before {
				t.Error("the second call wrote nothing")
			}
		})
	}
}

// TestCallerGivesUp: whatever became of it, the same delivery again is answered, and there is one receipt.
func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "first", pull(acmeInstalled, rocket))
	conn := d.Admin(t)
	lock, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "LOCK TABLE ingest.outbox IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := s.Receive(ctx, source("given up"), digest("given up"), 1, pull(acmeInstalled, rocket))
		failed <- err
	}()
	until(t, d, "(SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND usename = 'fl_ingest' AND wait_event_type = 'Lock')")
	cancel()
	if err := <-failed; err == nil {
		t.Error("a call that waits for a lock was answered")
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	deliver(t, s, "given up", pull(acmeInstalled, rocket))
	expectRows(t, d, rows{Receipts: 2, Messages: 2, Accounts: 1, Installations: 1, Projects: 1})
}

// TestLostAnswerAfterCommit loses the reply to each commit of each operation in turn. A delivery is answered
// as if nothing had happened; an operator's call is, at the latest, when it is made again.
func TestLostAnswerAfterCommit(t *testing.T) {
	t.Parallel()
	for i := range operations(ingest.ReceiptID{}, ingest.TenantID{}) {
		t.Run(operations(ingest.ReceiptID{}, ingest.TenantID{})[i].name, func(t *testing.T) {
			t.Parallel()
			prepare := func() (operation, *Store, *pgtest.DB, *pgtest.Dropper) {
				d := pgtest.New(t, migrations.FS)
				calm := over(d.Open(t, "ingest"), everybody)
				first := deliver(t, calm, "first", pull(acmeInstalled, rocket))
				db, dropper := pgtest.DropReplies(t, d, "ingest")
				s := over(db, everybody)
				deliver(t, s, "warm", ingest.Event{Name: "star"})
				return operations(first.Receipt, tenantOfAccount(t, d, acme))[i], s, d, dropper
			}
			op, s, _, dropper := prepare()
			commits := -dropper.Commits()
			if _, err := op.run(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			commits += dropper.Commits()
			for nth := range commits {
				op, s, d, dropper := prepare()
				before := count(t, d)
				dropper.Arm(nth)
				got, err := op.run(t.Context(), s)
				if dropper.Lost() != 1 {
					t.Fatalf("commit %d: %d replies were lost", nth, dropper.Lost())
				}
				if strings.HasPrefix(op.name, "receive") && err != nil {
					t.Fatalf("commit %d: %v", nth, err)
				}
				if a, ok := got.(ingest.Answer); ok && a.Duplicate {
					t.Errorf("commit %d: its own receipt is taken for a duplicate: %+v", nth, a)
				}
				if err != nil && !errors.Is(err, pg.ErrUnknownOutcome) {
					t.Fatalf("commit %d: %v", nth, err)
				}
				after := count(t, d)
				second, err := op.run(t.Context(), s)
				if err != nil {
					t.Fatalf("commit %d, again: %v", nth, err)
				}
				if a, ok := second.(ingest.Answer); ok {
					if !a.Duplicate {
						t.Errorf("commit %d, again: %+v is not a duplicate", nth, a)
					}
					a.Duplicate = false
					if diff := cmp.Diff(got, any(a)); diff != "" {
						t.Errorf("commit %d, again (-first +second):\n%s", nth, diff)
					}
				}
				if now := count(t, d); now != after {
					t.Errorf("commit %d: the second call wrote:\n%s", nth, cmp.Diff(after, now))
				}
				if after == before {
					t.Errorf("commit %d: nothing was written", nth)
				}
				if n := pgtest.Query[int64](t, d, "SELECT count(*) FROM ingest.deliveries WHERE delivery_id = 'under test'"); n > 1 {
					t.Errorf("commit %d: %d receipts", nth, n)
				}
			}
		})
	}
}
