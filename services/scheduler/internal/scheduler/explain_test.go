package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

func TestExplainNamesThePauseThatHolds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		play func(s *scene)
		held *scheduler.Pause
		want string // the sentence's end
	}{
		{"due, not paused", func(s *scene) { s.webhook(open1) }, nil, "; it is due again at 2026-01-05 09:00:30 UTC"},
		{
			"due, and GitHub throttles", func(s *scene) { s.webhook(open1) },
			&scheduler.Pause{Scope: scheduler.ScopeInstallation, Cause: scheduler.PauseThrottled, Reason: "secondary_limit", Until: start.Add(time.Hour)},
			"; it is due again at 2026-01-05 09:00:30 UTC, and the installation is paused because GitHub throttles it, until 2026-01-05 10:00:00 UTC",
		},
		{
			"at rest, and an operator stopped it", func(s *scene) { s.webhook(open1).reviewed(open1) },
			&scheduler.Pause{Scope: scheduler.ScopeTarget, Cause: scheduler.PauseOperator, Reason: "our own words"},
			"; nothing more is due, and the pull request is paused by an operator, until that is ended",
		},
		{
			"at work, in an archived repository", func(s *scene) { s.webhook(open1).claims() },
			&scheduler.Pause{Scope: scheduler.ScopeProject, Cause: scheduler.PauseArchive, Reason: "repository_archived", Until: start.Add(time.Hour)},
			"; worker worker is at work on it now, and the repository is paused because it is archived, until 2026-01-05 10:00:00 UTC",
		},
		{
			"on a host that is away", func(s *scene) { s.webhook(open1) },
			&scheduler.Pause{Scope: scheduler.ScopeHost, Cause: scheduler.PauseSuspension, Reason: "suspended", Until: start.Add(time.Hour)},
			", and the host is paused because access to it is suspended, until 2026-01-05 10:00:00 UTC",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.play(s)
			if got := scheduler.Explain(s.target, tt.held); !strings.HasSuffix(got, tt.want) {
				t.Errorf("explained as %q, want an end of %q", got, tt.want)
			}
		})
	}
}
