package sweep

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// scene is one project, GitHub and the scheduler around it, and what came of a listing.
type scene struct {
	now       ingest.Standing
	pages     [][]ingest.PullRequest
	pulls     map[int64]ingest.PullRequest // by itself
	at        *ingest.Installed
	live      []ingest.Target
	fail      map[string]error // by call
	overtake  bool
	contested bool

	seen      []int64
	refreshed int
	where     ingest.Where
	ends      []ingest.SweepEnd
}

var one = ingest.SweptProject{
	Project: ingest.Project{ID: ingest.ProjectID{1}, Host: "github.com", RepositoryID: 701, Repository: "acme/rocket", InstallationID: 70}, Account: 7,
}

func newSceneOf() *scene {
	return &scene{now: ingest.Standing{Repository: ingest.Repository{ID: 701, Name: "acme/rocket", Owner: ingest.Account{ID: 7}}}, fail: map[string]error{}}
}

func (s *scene) Repository(context.Context, int64, int64) (ingest.Standing, error) {
	return s.now, s.fail["repository"]
}

func (s *scene) OpenPulls(_ context.Context, _, _ int64, page int) ([]ingest.PullRequest, int, error) {
	if len(s.pages) == 0 {
		return nil, 0, s.fail["pulls"]
	}
	next := page + 1
	if page == len(s.pages) {
		next = 0
	}
	return s.pages[page-1], next, s.fail["pulls"]
}

func (s *scene) Pull(_ context.Context, _, _, number int64) (ingest.PullRequest, error) {
	if p, ok := s.pulls[number]; ok {
		return p, nil
	}
	return ingest.PullRequest{}, &ghapp.Failure{Class: ghapp.Gone}
}

func (s *scene) InstallationOf(context.Context, int64) (ingest.Installed, error) {
	if s.at == nil {
		return ingest.Installed{}, &ghapp.Failure{Class: ghapp.Gone}
	}
	return *s.at, nil
}

func (s *scene) Live(context.Context, ingest.TenantID, ingest.ProjectID) ([]ingest.Target, error) {
	return s.live, s.fail["live"]
}

func (s *scene) TakeProject(context.Context, string) (ingest.SweptProject, bool, error) {
	p := one
	p.Contested = s.contested
	return p, len(s.ends) == 0, nil
}

func (s *scene) LeaveProject(_ context.Context, _ ingest.SweptProject, end ingest.SweepEnd) error {
	s.ends = append(s.ends, end)
	return nil
}

func (s *scene) News() <-chan struct{} { return nil }

func (s *scene) Seen(_ context.Context, _ ingest.SweptProject, news []ingest.Seen) error {
	if s.overtake {
		return ingest.ErrSweepLost
	}
	for _, n := range news {
		s.seen = append(s.seen, n.Number)
	}
	return nil
}

func (s *scene) Refresh(context.Context, ingest.SweptProject, ingest.Standing) error {
	s.refreshed++
	return nil
}

func (s *scene) Resettle(_ context.Context, _ ingest.SweptProject, where ingest.Where, _ ingest.Installed) error {
	s.where = where
	return nil
}

func (s *scene) turn(t *testing.T) error {
	t.Helper()
	sweep := &Projects{
		GitHub: s, Locator: s, Targets: s, Queue: s, Findings: s, Slog: slog.New(slog.DiscardHandler), Tracer: noop.NewTracerProvider().Tracer(""), Metrics: metrics(t),
		Set: ProjectSettings{Host: "github.com", Every: time.Hour, Poll: time.Second, Retry: time.Minute}, pace: pace{spacing: 100 * time.Millisecond},
	}
	_, err := sweep.turn(t.Context())
	return err
}

func open(n int64, head string) ingest.PullRequest {
	return ingest.PullRequest{Number: n, HeadSHA: head, BaseRef: "main", State: "open"}
}

func readAs(n int64, head string) ingest.Target {
	return ingest.Target{Number: n, State: "open", HeadSHA: head, BaseRef: "main", Installation: one.InstallationID}
}

func near(t *testing.T, got, want time.Duration) {
	t.Helper()
	if got < want*9/10 || got > want*11/10 {
		t.Errorf("next after %s, want about %s", got, want)
	}
}

// TestListing: over all pages, what differs and what is left is told, once; then the project rests.
func TestListing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSceneOf()
		s.pages = [][]ingest.PullRequest{{open(1, "a"), open(2, "b")}, {open(3, "a")}, {open(9, "z")}}
		s.live = []ingest.Target{readAs(1, "a"), readAs(2, "a"), readAs(4, "a"), readAs(5, "a"), readAs(6, "a"), readAs(7, "a"), readAs(8, "a")}
		s.live[5].Installation, s.live[6].Due = 69, true // 7 is of an installation that was uninstalled; 8 will be read
		s.pages[2] = append(s.pages[2], open(7, "a"), open(8, "b"))
		closed := open(4, "a")
		closed.State = "closed"
		s.pulls = map[int64]ingest.PullRequest{4: closed, 5: open(5, "a")} // 5 shifted between pages, 6 is gone
		if err := s.turn(t); err != nil {
			t.Fatal(err)
		}
		told := map[int64]bool{}
		for _, n := range s.seen {
			told[n] = true
		}
		if diff := cmp.Diff(map[int64]bool{2: true, 3: true, 9: true, 4: true, 6: true, 7: true}, told); diff != "" || len(s.seen) != 6 {
			t.Errorf("told %v (-want +got):\n%s", s.seen, diff)
		}
		if len(s.ends) != 1 || !s.ends[0].Done || s.refreshed != 1 {
			t.Errorf("ended %+v", s.ends)
		}
		near(t, s.ends[0].Next, time.Hour)
	})
}

// TestElsewhere: a repository that its installation does not show is looked for, and what GitHub says counts.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	zenith := ingest.Account{ID: 8, Login: "zenith"}
	for name, tc := range map[string]struct {
		set   func(*scene)
		where ingest.Where
		end   ingest.SweepEnd
	}{
		"not there, and nowhere": {func(s *scene) { s.fail["repository"] = &ghapp.Failure{Class: ghapp.Gone} }, "", ingest.SweepEnd{Next: time.Minute, Missed: true}},
		"not there for a moment": {func(s *scene) {
			s.fail["repository"], s.at = &ghapp.Failure{Class: ghapp.Gone}, &ingest.Installed{ID: 70, Account: ingest.Account{ID: 7}}
		}, "", ingest.SweepEnd{Next: time.Minute}},
		"moved, and public": {func(s *scene) { s.now.Owner, s.at = zenith, &ingest.Installed{ID: 80, Account: zenith} }, ingest.WhereMoved, ingest.SweepEnd{Next: time.Hour, Done: true}},
		"moved, and private": {func(s *scene) {
			s.fail["repository"], s.at = &ghapp.Failure{Class: ghapp.Gone}, &ingest.Installed{ID: 80, Account: zenith}
		}, ingest.WhereMoved, ingest.SweepEnd{Next: time.Hour, Done: true}},
		"its installation is gone, another is there": {func(s *scene) {
			s.fail["repository"], s.at = &ghapp.Failure{Class: ghapp.Gone, Mint: true}, &ingest.Installed{ID: 71, Account: ingest.Account{ID: 7}}
		}, ingest.WhereAgain, ingest.SweepEnd{Next: time.Hour, Done: true}},
		"contested, and moved": {func(s *scene) {
			s.contested, s.fail["repository"], s.at = true, errors.New("a token was asked for"), &ingest.Installed{ID: 80, Account: zenith}
		}, ingest.WhereMoved, ingest.SweepEnd{Next: time.Hour, Done: true}},
		"contested, and the same account's": {func(s *scene) {
			s.contested, s.fail["repository"], s.at = true, errors.New("a token was asked for"), &ingest.Installed{ID: 71, Account: ingest.Account{ID: 7}}
		}, "", ingest.SweepEnd{Next: time.Hour, Done: true}},
		"contested, and nowhere": {func(s *scene) {
			s.contested, s.fail["repository"] = true, errors.New("a token was asked for")
		}, "", ingest.SweepEnd{Next: time.Hour, Done: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSceneOf()
				s.live = []ingest.Target{readAs(1, "a")}
				tc.set(s)
				if err := s.turn(t); err != nil {
					t.Fatal(err)
				}
				if s.where != tc.where || len(s.seen) != 0 || len(s.ends) != 1 {
					t.Fatalf("%q, told %v, ended %+v", s.where, s.seen, s.ends)
				}
				near(t, s.ends[0].Next, tc.end.Next)
				if tc.end.Next = s.ends[0].Next; s.ends[0] != tc.end {
					t.Errorf("ended %+v, want %+v", s.ends[0], tc.end)
				}
			})
		})
	}
}

// TestBreaksOff: limits hold for the installation, the scheduler's absence for nobody, and an overtaken listing
// is left to the next.
func TestBreaksOff(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set  func(*scene)
		end  []ingest.SweepEnd
		fail bool
	}{
		"throttled": {func(s *scene) {
			s.fail["pulls"] = &ghapp.Failure{Class: ghapp.Throttled, RetryAfter: 10 * time.Minute}
		}, []ingest.SweepEnd{{Next: 10 * time.Minute, Pause: 10 * time.Minute}}, false},
		"a limit shorter than our own pause": {func(s *scene) {
			s.fail["repository"] = &ghapp.Failure{Class: ghapp.Throttled, RetryAfter: time.Second}
		}, []ingest.SweepEnd{{Next: time.Minute, Pause: time.Minute}}, false},
		"refused credentials": {func(s *scene) { s.fail["repository"] = &ghapp.Failure{Class: ghapp.Auth} }, []ingest.SweepEnd{{Next: time.Minute, Pause: time.Minute}}, false},
		"a server error":      {func(s *scene) { s.fail["repository"] = &ghapp.Failure{Class: ghapp.NotExecuted} }, []ingest.SweepEnd{{Next: time.Minute}}, false},
		"no scheduler":        {func(s *scene) { s.fail["live"] = errors.New("away") }, []ingest.SweepEnd{{Next: time.Second}}, true},
		"overtaken by news":   {func(s *scene) { s.overtake = true }, nil, false},
		"archived":            {func(s *scene) { s.now.Archived, s.fail["pulls"] = true, errors.New("not asked") }, []ingest.SweepEnd{{Next: archivedEvery, Done: true}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSceneOf()
				tc.set(s)
				if err := s.turn(t); (err != nil) != tc.fail {
					t.Fatal(err)
				}
				if len(s.ends) != len(tc.end) {
					t.Fatalf("ended %+v, want %+v", s.ends, tc.end)
				}
				for i, want := range tc.end {
					near(t, s.ends[i].Next, want.Next)
					if want.Next = s.ends[i].Next; s.ends[i] != want {
						t.Errorf("ended %+v, want %+v", s.ends[i], want)
					}
				}
			})
		})
	}
}
