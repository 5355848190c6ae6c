package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// TestThrottledInstallationIsClaimedByNobody: the pause that one worker asks for when it gives its claim back
// holds for all workers of all replicas and for all targets of the installation, also those that come later, and
// for no other installation.
func TestThrottledInstallationIsClaimedByNobody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := bundle{New(b.db.Open(t, "scheduler"), outbox.New("scheduler"), b.rules, "reviews"), b.db}
	of := func(id string, installation, number int64) scheduler.Activity {
		a := push(id, "aaa", 1)
		a.PullRequest = pull(number)
		a.PullRequest.Installation = installation
		return a
	}
	b.record(t, tenantA, of("a1", 7, 1))
	c := b.claimOne(t)
	pause := &scheduler.Pause{Scope: scheduler.ScopeInstallation, Cause: scheduler.PauseThrottled, Reason: "throttled", Until: time.Now().Add(time.Hour)}
	if err := b.Release(t.Context(), tenantA, c.Fence(), scheduler.ReleaseThrottled, "", time.Second, pause); err != nil {
		t.Fatal(err)
	}
	b.record(t, tenantA, of("a2", 7, 2))
	free := b.record(t, tenantA, of("a3", 8, 3))
	b.admin(t, `UPDATE scheduler.targets SET due_at = due_at - interval '1 minute', not_before = not_before - interval '1 minute'`)
	for range 3 {
		claimed, _, err := other.ClaimTargets(t.Context(), "another", 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range claimed {
			if c.ID != free.Target {
				t.Errorf("a target of the throttled installation was claimed: %+v", c.PullRequest)
			}
			free.Target = scheduler.TargetID{}
		}
	}
	if free.Target != (scheduler.TargetID{}) {
		t.Error("another installation was held up")
	}
}

// TestThrottledInstallationsHoldUpNoOther: a hundred paused installations of one tenant, each with targets that
// are due for longer, are stepped over in one claim.
func TestThrottledInstallationsHoldUpNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range int64(100) {
		a := push(fmt.Sprint("a", n), "aaa", 1)
		a.PullRequest = pull(n + 1)
		a.PullRequest.Installation = 1000 + n
		b.record(t, tenantA, a)
		p := scheduler.Pause{
			Scope: scheduler.ScopeInstallation, Host: a.PullRequest.Host, Installation: 1000 + n,
			Cause: scheduler.PauseThrottled, Reason: "throttled", Until: time.Now().Add(time.Hour),
		}
		if err := b.SetPause(t.Context(), &tenantA, p); err != nil {
			t.Fatal(err)
		}
	}
	a := push("free", "aaa", 1)
	a.PullRequest = pull(500)
	free := b.record(t, tenantA, a)
	b.admin(t, `UPDATE scheduler.targets SET due_at = due_at - interval '1 minute', not_before = not_before - interval '1 minute'`)
	claimed, _, err := b.ClaimTargets(t.Context(), "worker", 5)
	if err != nil || len(claimed) != 1 || claimed[0].ID != free.Target {
		t.Fatalf("claimed %d, %v", len(claimed), err)
	}
}
