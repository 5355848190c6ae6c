package store

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// activityMessage tells the scheduler what a receipt says of its pull request; replay is 0 for the
// delivery itself.
func activityMessage(r ingest.Receipt, replay int32) outbox.Message {
	cause := schedulerv1.ActivityCause_ACTIVITY_CAUSE_WEBHOOK
	if replay > 0 {
		cause = schedulerv1.ActivityCause_ACTIVITY_CAUSE_REPLAY
	}
	req := &schedulerv1.RecordActivityRequest{
		Tenant: r.Tenant.String(),
		PullRequest: &schedulerv1.PullRequest{
			ProjectId: r.Project.String(), Host: r.Source.Host, InstallationId: r.InstallationID,
			RepositoryId: r.RepositoryID, Repository: r.Repository, Number: r.Number,
		},
		ActivityId: r.ActivityID(replay), Cause: cause, DeliveryId: r.Source.DeliveryID,
		Event: r.Event + "." + r.Action, Hint: hint(r.Hint),
	}
	return outbox.Message{
		Destination: schedulerv1.SchedulerService_RecordActivity_FullMethodName,
		Request:     req, Key: "activity:" + req.GetActivityId(), Tenant: tenantOf(r),
	}
}

func hint(h ingest.Hint) *schedulerv1.Hint {
	out := &schedulerv1.Hint{HeadSha: h.HeadSHA, BeforeSha: h.BeforeSHA, BaseRef: h.BaseRef, State: states[h.State]}
	if !h.UpdatedAt.IsZero() {
		out.UpdatedAt = timestamppb.New(h.UpdatedAt)
	}
	return out
}

var states = map[string]schedulerv1.PullRequestState{
	"open":   schedulerv1.PullRequestState_PULL_REQUEST_STATE_OPEN,
	"draft":  schedulerv1.PullRequestState_PULL_REQUEST_STATE_DRAFT,
	"closed": schedulerv1.PullRequestState_PULL_REQUEST_STATE_CLOSED,
}

// integrationMessage tells the scheduler what happened to an installation.
func integrationMessage(r ingest.Receipt, change schedulerv1.IntegrationChange, projects []ingest.ProjectID) outbox.Message {
	req := &schedulerv1.RecordIntegrationRequest{
		Tenant: r.Tenant.String(), EventId: "delivery:" + r.Source.Host + "/" + r.Source.Hook + "/" + r.Source.DeliveryID,
		Host: r.Source.Host, InstallationId: r.InstallationID, Change: change,
	}
	for _, p := range projects {
		req.ProjectIds = append(req.ProjectIds, p.String())
	}
	return outbox.Message{
		Destination: schedulerv1.SchedulerService_RecordIntegration_FullMethodName,
		Request:     req, Key: "integration:" + req.GetEventId(), Tenant: uuid.UUID(*r.Tenant),
	}
}
