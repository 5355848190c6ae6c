package store

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// TestPausesAreListed sets pauses of every scope and lists them by whom they hold up: what has no tenant counts
// for those who have something there, and what has ended for nobody.
func TestPausesAreListed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.record(t, tenantA, push("d1", "aaa", 1))
	other := push("d1", "bbb", 1)
	other.PullRequest = scheduler.PullRequest{Project: scheduler.ProjectID{2}, Host: "ghes.example", Installation: 8, Repository: 5, FullName: "b/b", Number: 1}
	b.record(t, tenantB, other)
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	set := func(tenant *scheduler.TenantID, p scheduler.Pause) {
		t.Helper()
		p.Cause = scheduler.PauseOperator
		if err := b.SetPause(t.Context(), tenant, p); err != nil {
			t.Fatal(err)
		}
	}
	set(nil, scheduler.Pause{Scope: scheduler.ScopeHost, Host: "github.com", Reason: "host", Until: until})
	set(nil, scheduler.Pause{Scope: scheduler.ScopeInstallation, Host: "github.com", Installation: 7, Reason: "seven"})
	set(nil, scheduler.Pause{Scope: scheduler.ScopeInstallation, Host: "ghes.example", Installation: 8, Reason: "eight", Until: until})
	set(&tenantA, scheduler.Pause{Scope: scheduler.ScopeProject, Project: scheduler.ProjectID{1}, Reason: "project", Until: until})
	set(&tenantA, scheduler.Pause{Scope: scheduler.ScopeTarget, Target: r.Target, Reason: "target", Until: until})
	set(&tenantB, scheduler.Pause{Scope: scheduler.ScopeProject, Project: scheduler.ProjectID{2}, Reason: "over", Until: time.Now()})
	for name, tc := range map[string]struct {
		filter scheduler.PauseFilter
		limit  int
		want   string
	}{
		"all":                  {scheduler.PauseFilter{}, 10, "host seven eight project target"},
		"a page":               {scheduler.PauseFilter{}, 2, "host seven"},
		"of a tenant":          {scheduler.PauseFilter{Tenant: &tenantA}, 10, "host seven project target"},
		"of another":           {scheduler.PauseFilter{Tenant: &tenantB}, 10, "eight"},
		"of a tenant unknown":  {scheduler.PauseFilter{Tenant: &scheduler.TenantID{0xc}}, 10, ""},
		"of a host":            {scheduler.PauseFilter{Host: "github.com"}, 10, "host seven"},
		"of an installation":   {scheduler.PauseFilter{Host: "github.com", Installation: 7}, 10, "seven"},
		"of no such one there": {scheduler.PauseFilter{Host: "github.com", Installation: 8}, 10, ""},
	} {
		found, err := b.Pauses(t.Context(), tc.filter, tc.limit)
		if err != nil {
			t.Fatal(err)
		}
		var reasons []string
		for _, p := range found {
			reasons = append(reasons, p.Reason)
		}
		if got := strings.Join(reasons, " "); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	all, err := b.Pauses(t.Context(), scheduler.PauseFilter{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	next, err := b.Pauses(t.Context(), scheduler.PauseFilter{After: all[1].ID}, 10)
	if err != nil || len(next) != 3 || next[0].Reason != "eight" {
		t.Errorf("the next page: %+v, %v", next, err)
	}
	want := scheduler.PauseRow{
		Pause: scheduler.Pause{
			ID: all[4].ID, Scope: scheduler.ScopeTarget, Target: r.Target, Cause: scheduler.PauseOperator, Reason: "target", Until: until,
		},
		Tenant: tenantA, SetAt: all[4].SetAt,
	}
	if diff := cmp.Diff(want, all[4]); diff != "" || all[4].SetAt.IsZero() {
		t.Errorf("a target's (-want +got):\n%s", diff)
	}
}

// TestThePauseThatHolds is the one that lasts the longest of those that cover a target.
func TestThePauseThatHolds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.record(t, tenantA, push("d1", "aaa", 1))
	held := func() string {
		t.Helper()
		p, err := b.Held(t.Context(), tenantA, r.Target)
		if err != nil {
			t.Fatal(err)
		}
		if p == nil {
			return ""
		}
		return p.Reason
	}
	if got := held(); got != "" {
		t.Errorf("held by %q before any pause", got)
	}
	for _, p := range []scheduler.Pause{
		{Scope: scheduler.ScopeInstallation, Host: "github.com", Installation: 8, Reason: "elsewhere"},
		{Scope: scheduler.ScopeInstallation, Host: "github.com", Installation: 7, Reason: "an hour", Until: time.Now().Add(time.Hour)},
		{Scope: scheduler.ScopeTarget, Target: r.Target, Reason: "a minute", Until: time.Now().Add(time.Minute)},
	} {
		p.Cause = scheduler.PauseOperator
		if err := b.SetPause(t.Context(), &tenantA, p); err != nil {
			t.Fatal(err)
		}
	}
	if got := held(); got != "an hour" {
		t.Errorf("held by %q", got)
	}
	whole := scheduler.Pause{Scope: scheduler.ScopeHost, Host: "github.com", Cause: scheduler.PauseOperator, Reason: "without end"}
	if err := b.SetPause(t.Context(), nil, whole); err != nil {
		t.Fatal(err)
	}
	if got := held(); got != "without end" {
		t.Errorf("held by %q", got)
	}
}
