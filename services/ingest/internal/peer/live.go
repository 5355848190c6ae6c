package peer

import (
	"context"
	"fmt"

	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// livePage is how many targets one call lists.
const livePage = 500

// Live lists what the scheduler last read of a project's pull requests that were not closed or gone then.
func (s *Scheduler) Live(ctx context.Context, tenant ingest.TenantID, project ingest.ProjectID) ([]ingest.Target, error) {
	var all []ingest.Target
	req := &schedulerv1.ListTargetsRequest{Tenant: tenant.String(), ProjectId: project.String(), LiveOnly: true, PageSize: livePage}
	for {
		page, err := s.client.ListTargets(ctx, req)
		if err != nil {
			return nil, fmt.Errorf("list targets: %w", err)
		}
		for _, t := range page.GetTargets() {
			all = append(all, ingest.Target{
				Number: t.GetPullRequest().GetNumber(), State: readStates[t.GetState()], HeadSHA: t.GetHeadSha(), BaseRef: t.GetBaseRef(),
				Due: t.GetDueAt() != nil, Claimed: t.GetClaimed(), Resolved: t.GetResolvedGeneration(), Touched: t.GetTouchedAt().AsTime(),
				Installation: t.GetPullRequest().GetInstallationId(),
			})
		}
		if req.PageToken = page.GetNextPageToken(); req.PageToken == "" {
			return all, nil
		}
	}
}

// readStates are those of a live target; one that was never read has none.
var readStates = map[schedulerv1.PullRequestState]string{
	schedulerv1.PullRequestState_PULL_REQUEST_STATE_OPEN:  "open",
	schedulerv1.PullRequestState_PULL_REQUEST_STATE_DRAFT: "draft",
}
