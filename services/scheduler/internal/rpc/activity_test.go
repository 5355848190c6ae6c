package rpc

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// A pause for a suspended installation has the cause that its unsuspension clears.
func TestPauseCauses(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for reason, want := range map[string]scheduler.PauseCause{
		"suspended": scheduler.PauseSuspension, "throttled": scheduler.PauseThrottled, "secondary_limit": scheduler.PauseThrottled,
	} {
		got := pauseOf(&schedulerv1.Pause{
			Scope: schedulerv1.PauseScope_PAUSE_SCOPE_INSTALLATION, Reason: reason, Until: timestamppb.New(until),
		})
		_, clear := scheduler.IntegrationChange{Kind: scheduler.ChangeUnsuspended}.Pauses(until)
		if got.Cause != want || got.Scope != scheduler.ScopeInstallation || !got.Until.Equal(until) {
			t.Errorf("%s: %+v, want cause %s", reason, got, want)
		}
		if ended := got.Cause == clear[0].Cause; ended != (reason == "suspended") {
			t.Errorf("%s: an unsuspension ends it: %t", reason, ended)
		}
	}
	if pauseOf(nil) != nil {
		t.Error("no pause is a pause")
	}
}
