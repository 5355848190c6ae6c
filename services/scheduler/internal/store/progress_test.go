package store

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// progressSent are the messages to the publisher about runs without a result, in the order they were written.
func (b bundle) progressSent(t *testing.T) []*publisherv1.PublishProgressRequest {
	t.Helper()
	rows, err := b.db.Admin(t).Query(context.WithoutCancel(t.Context()),
		`SELECT payload FROM scheduler.outbox WHERE destination LIKE '%/PublishProgress' ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*publisherv1.PublishProgressRequest, error) {
		var payload []byte
		if err := row.Scan(&payload); err != nil {
			return nil, err
		}
		req := &publisherv1.PublishProgressRequest{}
		return req, proto.Unmarshal(payload, req)
	})
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func (b bundle) renew(t *testing.T, f scheduler.Fence, starting bool) {
	t.Helper()
	if _, _, err := b.Renew(t.Context(), tenantA, f, starting); err != nil {
		t.Fatal(err)
	}
}

// TestProgressLeavesWithItsTransition follows one run: each state is told once, however often its call is
// repeated, and an ordinary renewal tells nothing.
func TestProgressLeavesWithItsTransition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.record(t, tenantA, push("d1", "aaa", 1))
	c := b.claimOne(t)
	for range 2 { // asked again after a lost answer
		b.resolve(t, c, reading("aaa", 1))
	}
	_, f := b.resolve(t, c, reading("aaa", 1))
	b.renew(t, f, false)
	want := []*publisherv1.PublishProgressRequest{{
		Tenant: tenantA.String(), TargetId: r.Target.String(), Lifecycle: 1, Generation: 1,
		State: publisherv1.ProgressState_PROGRESS_STATE_QUEUED,
		PullRequest: &publisherv1.PullRequest{
			ProjectId: scheduler.ProjectID{1}.String(), Host: "github.com", InstallationId: 7, RepositoryId: 99, Repository: "acme/widgets", Number: 1,
		},
		Run: &publisherv1.Run{RunId: f.Run.String(), BaseRef: "main", BaseSha: "base0", HeadSha: "aaa", MergeBaseSha: "base0"},
	}}
	if diff := cmp.Diff(want, b.progressSent(t), protocmp.Transform()); diff != "" {
		t.Fatalf("queued (-want +got):\n%s", diff)
	}
	for range 2 {
		b.renew(t, f, true)
	}
	b.renew(t, f, false)
	started := proto.CloneOf(want[0])
	started.State = publisherv1.ProgressState_PROGRESS_STATE_IN_PROGRESS
	if diff := cmp.Diff(append(want, started), b.progressSent(t), protocmp.Transform()); diff != "" {
		t.Fatalf("in progress (-want +got):\n%s", diff)
	}
	check := scheduler.Check{Lifecycle: 1, Progress: f.Run}
	if currency, _, _, err := b.CheckCurrent(t.Context(), tenantA, r.Target, check); err != nil || currency != scheduler.Current {
		t.Fatalf("currency %q, %v", currency, err)
	}
	if _, err := b.Commit(t.Context(), tenantA, f, accepted(1)); err != nil {
		t.Fatal(err)
	}
	if currency, _, _, err := b.CheckCurrent(t.Context(), tenantA, r.Target, check); err != nil || currency != scheduler.Superseded {
		t.Fatalf("currency %q after the run's end, %v", currency, err)
	}
	if got := b.target(t, tenantA, r.Target); got.Told != (scheduler.Told{Generation: 1, State: scheduler.ProgressStarted}) || got.Epoch != 1 {
		t.Fatalf("left %+v", got)
	}
}

// TestProgressOfARenamedRepository claims a run again after its repository was renamed: the same progress, under
// another name, is no other message.
func TestProgressOfARenamedRepository(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.record(t, tenantA, push("d1", "aaa", 1))
	c := b.claimOne(t)
	_, f := b.resolve(t, c, reading("aaa", 1))
	b.renew(t, f, true)
	if err := b.Release(t.Context(), tenantA, f, scheduler.ReleaseShuttingDown, "", 0, nil); err != nil {
		t.Fatal(err)
	}
	err := b.RecordIntegration(t.Context(), tenantA, scheduler.IntegrationChange{
		Event: "e1", Kind: scheduler.ChangeRenamed, Host: "github.com", Installation: 7, Projects: []scheduler.ProjectID{pull(1).Project}, FullName: "acme/gadgets",
	})
	if err != nil {
		t.Fatal(err)
	}
	c = b.claimOne(t)
	_, f = b.resolve(t, c, reading("aaa", 1))
	b.renew(t, f, true)
	if sent := b.progressSent(t); len(sent) != 2 {
		t.Fatalf("%d messages, want the first claim's two: %v", len(sent), sent)
	}
}

// TestDryRunsShowNoProgress: a run that only a dry request asked for is nobody's to see.
func TestDryRunsShowNoProgress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ask := push("r1", "", 0)
	ask.Cause, ask.Hint, ask.Request = scheduler.CauseRequest, scheduler.Hint{}, scheduler.Request{ID: "req", Dry: true}
	b.record(t, tenantA, ask)
	c := b.claimOne(t)
	_, f := b.resolve(t, c, reading("aaa", 1))
	b.renew(t, f, true)
	if sent := b.progressSent(t); len(sent) != 0 {
		t.Fatalf("told %v", sent)
	}
}
