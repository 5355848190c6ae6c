package peer

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// shelf is a scheduler that has targets of two projects.
type shelf struct {
	schedulerv1.UnimplementedTargetServiceServer
	byQuery map[string][]*schedulerv1.Target
	pages   [][]*schedulerv1.Target
	asked   []string
	pause   *schedulerv1.SetPauseRequest
}

func (s *shelf) LookupTarget(_ context.Context, req *schedulerv1.LookupTargetRequest) (*schedulerv1.LookupTargetResponse, error) {
	s.asked = append(s.asked, req.GetQuery())
	if req.GetQuery() == "not ours" {
		return nil, status.Error(codes.InvalidArgument, "nothing a person could have")
	}
	return &schedulerv1.LookupTargetResponse{Targets: s.byQuery[req.GetQuery()]}, nil
}

func (s *shelf) ListTargets(_ context.Context, req *schedulerv1.ListTargetsRequest) (*schedulerv1.ListTargetsResponse, error) {
	at := 0
	_, _ = fmt.Sscan(req.GetPageToken(), &at)
	resp := &schedulerv1.ListTargetsResponse{}
	if at < len(s.pages) {
		resp.Targets = s.pages[at]
	}
	if at+1 < len(s.pages) {
		resp.NextPageToken = fmt.Sprint(at + 1)
	}
	return resp, nil
}

func (s *shelf) SetPause(_ context.Context, req *schedulerv1.SetPauseRequest) (*schedulerv1.SetPauseResponse, error) {
	s.pause = req
	return &schedulerv1.SetPauseResponse{}, nil
}

func (s *shelf) scheduler(t *testing.T) *Scheduler {
	t.Helper()
	server, err := rpc.NewServer(rpc.ServerConfig{Listen: "127.0.0.1:0", Plaintext: true}, rpc.ServerDeps{Service: "scheduler"})
	if err != nil {
		t.Fatal(err)
	}
	schedulerv1.RegisterTargetServiceServer(server, s)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	conn, err := grpc.NewClient(server.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return NewScheduler(conn)
}

var mine, others = ingest.ProjectID{1}, ingest.ProjectID{2}

func target(id string, project ingest.ProjectID, number int64, head string) *schedulerv1.Target {
	return &schedulerv1.Target{TargetId: id, HeadSha: head, PullRequest: &schedulerv1.PullRequest{ProjectId: project.String(), Number: number}}
}

func command(number int64) ingest.Command {
	return ingest.Command{Project: mine, Host: "github.com", Repository: ingest.Repository{Name: "acme/rocket"}, Number: number, By: ingest.Account{Login: "ann"}}
}

// TestFindPull: a name may lead to another repository; numbers decide.
func TestFindPull(t *testing.T) {
	t.Parallel()
	s := &shelf{
		byQuery: map[string][]*schedulerv1.Target{
			"https://github.com/acme/rocket/pull/1": {target("other's", others, 1, ""), target("one", mine, 1, "")},
			"https://github.com/acme/rocket/pull/4": {target("other's", others, 4, "")},
		},
		pages: [][]*schedulerv1.Target{{target("one", mine, 1, ""), target("two", mine, 2, "")}, {target("three", mine, 3, "")}},
	}
	at := s.scheduler(t)
	for number, want := range map[int64]string{1: "one", 2: "two", 3: "three", 4: ""} {
		if got, err := at.FindPull(t.Context(), command(number)); err != nil || got != want {
			t.Errorf("pull request %d: %q, %v, want %q", number, got, err, want)
		}
	}
}

func TestReruns(t *testing.T) {
	t.Parallel()
	s := &shelf{byQuery: map[string][]*schedulerv1.Target{
		"run": {target("one", mine, 1, "new")},
		"sha": {target("one", mine, 1, "sha"), target("two", mine, 2, "new"), target("three", mine, 3, "sha"), target("other's", others, 4, "sha")},
	}}
	at := s.scheduler(t)
	for what, tc := range map[string]struct {
		c    ingest.Command
		want []int64
	}{
		"a run of an older head": {ingest.Command{Project: mine, Source: ingest.ByCheckRun, ExternalID: "run"}, []int64{1}},
		"a head":                 {ingest.Command{Project: mine, Source: ingest.ByCheckSuite, HeadSHA: "sha"}, []int64{1, 3}},
		"another project's run":  {ingest.Command{Project: others, Source: ingest.ByCheckRun, ExternalID: "run"}, nil},
		"nobody's":               {ingest.Command{Project: mine, Source: ingest.ByCheckRun, ExternalID: "unknown"}, nil},
		"no id of ours":          {ingest.Command{Project: mine, Source: ingest.ByCheckRun, ExternalID: "not ours"}, nil},
	} {
		if got, err := at.Reruns(t.Context(), tc.c); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, %v, want %v", what, got, err, tc.want)
		}
	}
}

func TestSetPause(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	at := s.scheduler(t)
	const id = "11111111-1111-4111-8111-111111111111"
	for verb, reason := range map[ingest.Verb]string{ingest.VerbPause: "paused by ann", ingest.VerbResume: "resumed by ann"} {
		c := command(1)
		c.Verb, c.Tenant = verb, ingest.TenantID{6: 0x70, 8: 0x80}
		if err := at.SetPause(t.Context(), c, id); err != nil {
			t.Fatal(err)
		}
		if p := s.pause; p.GetReason() != reason || p.GetTargetId() != id || p.GetClear() != (verb == ingest.VerbResume) ||
			p.GetScope() != schedulerv1.PauseScope_PAUSE_SCOPE_TARGET || p.GetUntil() != nil {
			t.Errorf("%s set %v", verb, p)
		}
	}
}
