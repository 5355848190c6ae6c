package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// TestRepositoriesGone: all targets of the project named end, more than are looked up at once, live work among
// them; another project's and another tenant's stay.
func TestRepositoriesGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.record(t, tenantA, push("work", "aaa", 1))
	c := b.claimOne(t)
	_, fence := b.resolve(t, c, reading("aaa", 1))
	for n := range departing + 5 {
		a := push(fmt.Sprint("d", n), "aaa", 1)
		a.PullRequest.Number = int64(n) + 2
		b.record(t, tenantA, a)
	}
	other := push("other", "aaa", 1)
	other.PullRequest.Repository, other.PullRequest.Project = 100, scheduler.ProjectID{2}
	stays, foreign := b.record(t, tenantA, other), b.record(t, tenantB, push("foreign", "aaa", 1))

	change := scheduler.IntegrationChange{
		Event: "gone", Kind: scheduler.ChangeGone, Host: "github.com", Installation: 7, Projects: []scheduler.ProjectID{{1}},
	}
	for range 2 {
		if err := b.RecordIntegration(t.Context(), tenantA, change); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Commit(t.Context(), tenantA, fence, accepted(1)); !errors.Is(err, scheduler.ErrClaimLost) {
		t.Errorf("the result of a departed target: %v", err)
	}
	project := scheduler.ProjectID{1}
	live, err := b.Targets(t.Context(), tenantA, scheduler.TargetFilter{Project: &project, LiveOnly: true}, 1000)
	if err != nil || len(live) != 0 {
		t.Errorf("%d live targets, %v", len(live), err)
	}
	got := b.target(t, tenantA, r.Target)
	if got.State != scheduler.StateGone || got.Due() || got.Generation != 2 {
		t.Errorf("%+v", got)
	}
	if !b.target(t, tenantA, stays.Target).Due() || !b.target(t, tenantB, foreign.Target).Due() {
		t.Error("another project's or tenant's target ended, too")
	}
	change.Event, change.Kind, change.FullName = "renamed", scheduler.ChangeRenamed, "acme/gadgets"
	if err := b.RecordIntegration(t.Context(), tenantA, change); err != nil {
		t.Fatal(err)
	}
	if got := b.target(t, tenantA, r.Target).FullName; got != "acme/gadgets" {
		t.Errorf("named %s", got)
	}
}
