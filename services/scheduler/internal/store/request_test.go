package store

import (
	"strings"
	"testing"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// TestRequestDecisions follows a request by the decisions that name it, with its target and without.
func TestRequestDecisions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.record(t, tenantA, push("d1", "aaa", 1))
	for _, request := range []scheduler.RequestID{"one", "two"} {
		b.record(t, tenantA, scheduler.Activity{
			ID: scheduler.ActivityID(request), Cause: scheduler.CauseRequest, PullRequest: pull(1), Request: scheduler.Request{ID: request},
		})
	}
	c := b.claimOne(t)
	if _, f := b.resolve(t, c, reading("aaa", 1)); f.Run.IsZero() {
		t.Fatal("no run was given out")
	}
	for what, tc := range map[string]struct {
		tenant  scheduler.TenantID
		target  scheduler.TargetID
		request scheduler.RequestID
		want    string
	}{
		"a request":        {tenantA, scheduler.TargetID{}, "one", "review coalesced"},
		"the other one":    {tenantA, c.ID, "two", "review coalesced"},
		"another target":   {tenantA, scheduler.TargetID{9}, "one", ""},
		"unknown":          {tenantA, scheduler.TargetID{}, "three", ""},
		"another tenant's": {tenantB, scheduler.TargetID{}, "one", ""},
	} {
		found, err := b.RequestDecisions(t.Context(), tc.tenant, tc.request, tc.target, 1<<62, 10)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, d := range found {
			kinds = append(kinds, string(d.Kind))
			if d.Request != tc.request || d.Target != c.ID {
				t.Errorf("%s: %+v", what, d)
			}
		}
		if got := strings.Join(kinds, " "); got != tc.want {
			t.Errorf("%s: %q, want %q", what, got, tc.want)
		}
	}
}
