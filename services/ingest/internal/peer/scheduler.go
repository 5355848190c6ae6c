// Package peer asks other services what ingest can't know: where a request stands, and which pull request a
// command is about.
package peer

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Reads are the methods of peers that are safe to repeat.
var Reads = []string{
	schedulerv1.TargetService_LookupTarget_FullMethodName, schedulerv1.TargetService_ListTargets_FullMethodName,
	schedulerv1.TargetService_ExplainTarget_FullMethodName, schedulerv1.TargetService_GetRun_FullMethodName,
	schedulerv1.TargetService_ListDecisions_FullMethodName,
}

// Scheduler knows targets, runs and decisions.
type Scheduler struct {
	client schedulerv1.TargetServiceClient
}

// NewScheduler returns the scheduler behind the connection.
func NewScheduler(conn grpc.ClientConnInterface) *Scheduler {
	return &Scheduler{client: schedulerv1.NewTargetServiceClient(conn)}
}

// newest is how many decisions are looked at: those that name one request, or a target's last ones.
const newest = 50

func (s *Scheduler) decisions(ctx context.Context, req *schedulerv1.ListDecisionsRequest) ([]ingest.Decided, error) {
	req.PageSize = newest
	page, err := s.client.ListDecisions(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("list decisions: %w", err)
	}
	out := make([]ingest.Decided, len(page.GetDecisions()))
	for i, d := range page.GetDecisions() {
		out[i] = ingest.Decided{Kind: d.GetKind(), Reason: d.GetReason(), Target: d.GetTargetId(), Run: d.GetRunId()}
	}
	return out, nil
}

// run reads a run without waiting; nil where its lifecycle has ended.
func (s *Scheduler) run(ctx context.Context, tenant ingest.TenantID, id string) (*schedulerv1.Run, error) {
	got, err := s.client.GetRun(ctx, &schedulerv1.GetRunRequest{Tenant: tenant.String(), RunId: id, Wait: durationpb.New(0)})
	switch {
	case status.Code(err) == codes.NotFound:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read run: %w", err)
	}
	return got.GetRun(), nil
}

// FindPull returns the target of a pull request by its numbers, "" where nothing was heard of it. Names are
// tried first, and believed by nobody: a repository that was renamed is found among its project's.
func (s *Scheduler) FindPull(ctx context.Context, c ingest.Command) (target string, err error) {
	found, err := s.lookup(ctx, c.Tenant, fmt.Sprintf("https://%s/%s/pull/%d", c.Host, c.Repository.Name, c.Number))
	if err != nil {
		return "", err
	}
	for token := ""; ; {
		if target = among(found, c); target != "" {
			return target, nil
		}
		page, err := s.client.ListTargets(ctx, &schedulerv1.ListTargetsRequest{
			Tenant: c.Tenant.String(), ProjectId: c.Project.String(), PageSize: 1000, PageToken: token,
		})
		if err != nil {
			return "", fmt.Errorf("list targets: %w", err)
		}
		if found, token = page.GetTargets(), page.GetNextPageToken(); token == "" {
			return among(found, c), nil
		}
	}
}

func among(found []*schedulerv1.Target, c ingest.Command) string {
	for _, t := range found {
		if pr := t.GetPullRequest(); pr.GetProjectId() == c.Project.String() && pr.GetNumber() == c.Number {
			return t.GetTargetId()
		}
	}
	return ""
}

func (s *Scheduler) lookup(ctx context.Context, tenant ingest.TenantID, query string) ([]*schedulerv1.Target, error) {
	got, err := s.client.LookupTarget(ctx, &schedulerv1.LookupTargetRequest{Tenant: tenant.String(), Query: query})
	switch {
	case status.Code(err) == codes.InvalidArgument: // a check run's external id that was never ours
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look up target: %w", err)
	}
	return got.GetTargets(), nil
}

// Reruns returns the numbers of the pull requests that a check's re-run is about: the one of its run, or
// those whose head it is.
func (s *Scheduler) Reruns(ctx context.Context, c ingest.Command) ([]int64, error) {
	query := c.ExternalID
	if c.Source == ingest.ByCheckSuite {
		query = c.HeadSHA
	}
	found, err := s.lookup(ctx, c.Tenant, query)
	if err != nil {
		return nil, err
	}
	var numbers []int64
	for _, t := range found {
		pr := t.GetPullRequest()
		if pr.GetProjectId() != c.Project.String() || c.Source == ingest.ByCheckSuite && t.GetHeadSha() != c.HeadSHA {
			continue
		}
		numbers = append(numbers, pr.GetNumber())
	}
	return numbers, nil
}

// Explain answers why a target was, or was not, reviewed.
func (s *Scheduler) Explain(ctx context.Context, tenant ingest.TenantID, target string) (string, error) {
	got, err := s.client.ExplainTarget(ctx, &schedulerv1.ExplainTargetRequest{
		Tenant: tenant.String(), Which: &schedulerv1.ExplainTargetRequest_TargetId{TargetId: target},
	})
	if err != nil {
		return "", fmt.Errorf("explain target: %w", err)
	}
	return got.GetAnswer() + ".", nil
}

// SetPause pauses a target until it is resumed, or ends that. Repeating it changes nothing.
func (s *Scheduler) SetPause(ctx context.Context, c ingest.Command, target string) error {
	verb := "paused"
	if c.Verb == ingest.VerbResume {
		verb = "resumed"
	}
	_, err := s.client.SetPause(ctx, &schedulerv1.SetPauseRequest{
		Tenant: c.Tenant.String(), Scope: schedulerv1.PauseScope_PAUSE_SCOPE_TARGET, TargetId: target,
		Reason: fmt.Sprintf("%s by %.80s", verb, c.By.Login), Clear: c.Verb == ingest.VerbResume,
	})
	if err != nil {
		return fmt.Errorf("set pause: %w", err)
	}
	return nil
}
