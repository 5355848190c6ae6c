package scheduler_test

import (
	"testing"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// TestIntegrationPausesEndByThemselves: messages have no order, so what a change pauses must not depend on
// another one to end, except where nothing can come after it.
func TestIntegrationPausesEndByThemselves(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind    scheduler.ChangeKind
		set     int
		cleared int
		forEver bool
	}{
		{kind: scheduler.ChangeSuspended, set: 1},
		{kind: scheduler.ChangeUnsuspended, cleared: 1},
		{kind: scheduler.ChangeCreated, cleared: 1},
		{kind: scheduler.ChangeDeleted, set: 1, forEver: true},
		{kind: scheduler.ChangeRemoved, set: 2},
		{kind: scheduler.ChangeAdded, cleared: 2},
	} {
		t.Run(string(tc.kind), func(t *testing.T) {
			t.Parallel()
			c := scheduler.IntegrationChange{Kind: tc.kind, Host: "github.com", Installation: 7}
			if tc.kind == scheduler.ChangeRemoved || tc.kind == scheduler.ChangeAdded {
				c.Projects = []scheduler.ProjectID{{1}, {2}}
			}
			set, cleared := c.Pauses(start)
			if len(set) != tc.set || len(cleared) != tc.cleared {
				t.Fatalf("%d set and %d cleared, want %d and %d", len(set), len(cleared), tc.set, tc.cleared)
			}
			for _, p := range set {
				if err := p.Validate(); err != nil {
					t.Error(err)
				}
				if p.Until.IsZero() != tc.forEver {
					t.Errorf("pause until %v, for ever %v", p.Until, tc.forEver)
				}
			}
		})
	}
}
