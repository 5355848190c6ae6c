package sweep

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// seat is one installation, GitHub around it, and what came of a look.
type seat struct {
	now    ingest.InstallationNow
	fail   error // of the look
	lists  bool
	misses int
	list   error // of the listing
	asked  []string
	next   time.Duration
	paused time.Duration
}

func (s *seat) Installation(context.Context, int64) (ingest.InstallationNow, error) {
	s.asked = append(s.asked, "look")
	return s.now, s.fail
}

func (s *seat) Repositories(context.Context, int64, int) ([]ingest.Repository, int, error) {
	s.asked = append(s.asked, "list")
	return nil, 0, s.list
}

func (s *seat) FollowInstallation(context.Context, ingest.SweptInstallation, ingest.InstallationNow) (bool, error) {
	return s.lists, nil
}

func (s *seat) MissInstallation(context.Context, ingest.SweptInstallation) (lost, fresh bool, err error) {
	s.misses++
	return s.misses > 2, s.misses == 3, nil
}

func (s *seat) TakeInstallation(context.Context, string) (ingest.SweptInstallation, bool, error) {
	return ingest.SweptInstallation{Installation: ingest.Installation{ID: 70}}, true, nil
}

func (s *seat) Reconcile(context.Context, ingest.SweptInstallation, []ingest.Repository) (int, error) {
	return 0, nil
}

func (s *seat) LeaveInstallation(_ context.Context, _ ingest.SweptInstallation, end ingest.SweepEnd) error {
	s.next, s.paused = end.Next, end.Pause
	return nil
}

// TestLooks: only what needs a token is asked for with one, and only where there is something to list.
func TestLooks(t *testing.T) {
	t.Parallel()
	gone := &ghapp.Failure{Class: ghapp.Gone}
	for what, tc := range map[string]struct {
		s     *seat
		asked []string
		next  time.Duration
	}{
		"active":                    {&seat{lists: true}, []string{"look", "list"}, 24 * time.Hour},
		"enrolled by call":          {&seat{}, []string{"look"}, 24 * time.Hour},
		"suspended":                 {&seat{now: ingest.InstallationNow{Suspended: true}}, []string{"look"}, time.Hour},
		"gone, it seems":            {&seat{fail: gone}, []string{"look"}, time.Minute},
		"gone":                      {&seat{fail: gone, misses: 2}, []string{"look"}, 24 * time.Hour},
		"GitHub away":               {&seat{fail: &ghapp.Failure{Class: ghapp.NotExecuted}}, []string{"look"}, time.Minute},
		"throttled":                 {&seat{lists: true, list: &ghapp.Failure{Class: ghapp.Throttled, RetryAfter: 5 * time.Minute}}, []string{"look", "list"}, 5 * time.Minute},
		"suspended while it listed": {&seat{lists: true, list: ingest.ErrSweepLost}, []string{"look", "list"}, 0}, // it is due with its lease
		"an odd answer":             {&seat{fail: errors.New("odd")}, []string{"look"}, time.Minute},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sweep := &Installations{
					GitHub: tc.s, Store: tc.s, Standing: tc.s, Slog: slog.New(slog.DiscardHandler), Metrics: metrics(t),
					Set: ProjectSettings{Host: "github.com", Every: 24 * time.Hour, Poll: time.Second, Retry: time.Minute},
				}
				if worked, err := sweep.turn(t.Context()); !worked || err != nil {
					t.Fatal(worked, err)
				}
				if !slices.Equal(tc.s.asked, tc.asked) {
					t.Errorf("asked %v, want %v", tc.s.asked, tc.asked)
				}
				near(t, tc.s.next, tc.next)
			})
		})
	}
}
