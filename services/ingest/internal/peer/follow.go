package peer

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// Follower follows requests to their runs.
type Follower struct {
	scheduler *Scheduler
	publisher publisherv1.IntentServiceClient
}

// NewFollower follows by what the scheduler decided; what a dry run would have posted the publisher renders.
func NewFollower(scheduler *Scheduler, publisher grpc.ClientConnInterface) *Follower {
	return &Follower{scheduler: scheduler, publisher: publisherv1.NewIntentServiceClient(publisher)}
}

// Follow says where a request stands.
func (f *Follower) Follow(ctx context.Context, r ingest.ReviewRequest) (ingest.Followed, error) {
	decisions, err := f.scheduler.decisions(ctx, &schedulerv1.ListDecisionsRequest{Tenant: r.Tenant.String(), RequestId: r.ID.String()})
	if err != nil {
		return ingest.Followed{}, err
	}
	followed := ingest.FollowedBy(decisions)
	if followed.Run == "" {
		return followed, nil
	}
	run, err := f.scheduler.run(ctx, r.Tenant, followed.Run)
	if err != nil {
		return ingest.Followed{}, err
	}
	var latest []ingest.Decided
	if run.GetState() == "open" {
		latest, err = f.scheduler.decisions(ctx, &schedulerv1.ListDecisionsRequest{Tenant: r.Tenant.String(), TargetId: followed.Target})
		if err != nil {
			return ingest.Followed{}, err
		}
	}
	followed = followed.OfRun(ingest.Run{State: run.GetState(), Reason: run.GetReason(), CostMicros: run.GetCost().GetMicros()}, latest)
	if r.DryRun && run.GetAttemptId() != "" && (followed.State == ingest.RequestDone || followed.State == ingest.RequestReused) {
		followed.Preview, err = f.preview(ctx, r, followed.Target, run)
	}
	return followed, err
}

func (f *Follower) preview(ctx context.Context, r ingest.ReviewRequest, target string, run *schedulerv1.Run) (string, error) {
	got, err := f.publisher.PreviewRun(ctx, &publisherv1.PreviewRunRequest{
		Tenant: r.Tenant.String(), TargetId: target,
		PullRequest: &publisherv1.PullRequest{
			ProjectId: r.Project.String(), Host: r.Host, InstallationId: r.InstallationID, RepositoryId: r.RepositoryID,
			Repository: r.Repository, Number: r.Number,
		},
		Run: &publisherv1.Run{
			RunId: run.GetRunId(), BaseRef: run.GetBaseRef(), BaseSha: run.GetBaseSha(), HeadSha: run.GetHeadSha(),
			MergeBaseSha: run.GetMergeBaseSha(), Ordinal: run.GetOrdinal(), AttemptId: run.GetAttemptId(),
			Clean: run.GetVerdict() == schedulerv1.Verdict_VERDICT_CLEAN, Errors: run.GetCounts().GetErrors(),
			Warnings: run.GetCounts().GetWarnings(), Infos: run.GetCounts().GetInfos(), Engine: run.GetEngine(), Cost: run.GetCost(),
		},
	})
	if err != nil {
		return "", fmt.Errorf("preview run: %w", err)
	}
	return got.GetBody(), nil
}
