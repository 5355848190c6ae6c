package store

import (
	"fmt"
	"slices"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
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
	"gone":   schedulerv1.PullRequestState_PULL_REQUEST_STATE_GONE,
}

// seenMessage tells the scheduler what a sweep saw of a pull request.
func seenMessage(p ingest.SweptProject, s ingest.Seen) outbox.Message {
	req := &schedulerv1.RecordActivityRequest{
		Tenant: p.Tenant.String(),
		PullRequest: &schedulerv1.PullRequest{
			ProjectId: p.ID.String(), Host: p.Host, InstallationId: p.InstallationID, RepositoryId: p.RepositoryID,
			Repository: p.Repository, Number: s.Number,
		},
		ActivityId: s.ActivityID(p), Cause: schedulerv1.ActivityCause_ACTIVITY_CAUSE_SWEEP, Event: "sweep", Hint: hint(s.Hint),
	}
	return outbox.Message{
		Destination: schedulerv1.SchedulerService_RecordActivity_FullMethodName,
		Request:     req, Key: "activity:" + req.GetActivityId(), Tenant: uuid.UUID(p.Tenant),
	}
}

// mostProjects is what one message to the scheduler may name.
const mostProjects = 1000

// integrationMessages tell the scheduler what happened to an installation. A change of repositories that
// concerns no project is told to nobody; one that concerns many, in several messages.
func integrationMessages(r ingest.Receipt, kind ingest.ChangeKind, projects []ingest.ProjectID) []outbox.Message {
	if r.Tenant == nil {
		return nil
	}
	cause := "delivery:" + r.Source.Host + "/" + r.Source.Hook + "/" + r.Source.DeliveryID
	return changeMessages(*r.Tenant, cause, r.Source.Host, r.InstallationID, kind, projects)
}

func changeMessages(tenant ingest.TenantID, cause, host string, installation int64, kind ingest.ChangeKind, projects []ingest.ProjectID) []outbox.Message {
	if len(projects) == 0 {
		if kind == "" || kind == ingest.ChangeAdded || kind == ingest.ChangeRemoved {
			return nil
		}
		return []outbox.Message{changeMessage(tenant, fmt.Sprintf("%s:%s:0", cause, kind), host, installation, kind, nil)}
	}
	var msgs []outbox.Message
	for part := range slices.Chunk(projects, mostProjects) {
		id := fmt.Sprintf("%s:%s:%d", cause, kind, len(msgs))
		msgs = append(msgs, changeMessage(tenant, id, host, installation, kind, part))
	}
	return msgs
}

func changeMessage(tenant ingest.TenantID, event, host string, installation int64, kind ingest.ChangeKind, projects []ingest.ProjectID) outbox.Message {
	req := &schedulerv1.RecordIntegrationRequest{
		Tenant: tenant.String(), EventId: event, Host: host, InstallationId: installation, Change: changeKinds[kind],
	}
	for _, p := range projects {
		req.ProjectIds = append(req.ProjectIds, p.String())
	}
	return outbox.Message{
		Destination: schedulerv1.SchedulerService_RecordIntegration_FullMethodName,
		Request:     req, Key: "integration:" + req.GetEventId(), Tenant: uuid.UUID(tenant),
	}
}

// named adds the name of the day to a message about one renamed project.
func named(m outbox.Message, repository string) outbox.Message {
	m.Request.(*schedulerv1.RecordIntegrationRequest).Repository = repository
	return m
}

// surfacesMessage tells the publisher what a project chose.
func surfacesMessage(tenant ingest.TenantID, project ingest.ProjectID, version int64, surfaces []ingest.Surface) outbox.Message {
	req := &publisherv1.ConfigureProjectRequest{Tenant: tenant.String(), ProjectId: project.String(), Version: version}
	for _, s := range surfaces {
		req.Surfaces = append(req.Surfaces, projectSurfaces[s])
	}
	return outbox.Message{
		Destination: publisherv1.PublisherService_ConfigureProject_FullMethodName,
		Request:     req, Key: fmt.Sprintf("surfaces:%s:%d", project, version), Tenant: uuid.UUID(tenant),
	}
}

var projectSurfaces = map[ingest.Surface]publisherv1.ProjectSurface{
	ingest.SurfaceSummary:      publisherv1.ProjectSurface_PROJECT_SURFACE_SUMMARY,
	ingest.SurfaceReview:       publisherv1.ProjectSurface_PROJECT_SURFACE_REVIEW,
	ingest.SurfaceCheckRun:     publisherv1.ProjectSurface_PROJECT_SURFACE_CHECK_RUN,
	ingest.SurfaceCommitStatus: publisherv1.ProjectSurface_PROJECT_SURFACE_COMMIT_STATUS,
}

var changeKinds = map[ingest.ChangeKind]schedulerv1.IntegrationChange{
	ingest.ChangeCreated:     schedulerv1.IntegrationChange_INTEGRATION_CHANGE_CREATED,
	ingest.ChangeDeleted:     schedulerv1.IntegrationChange_INTEGRATION_CHANGE_DELETED,
	ingest.ChangeSuspended:   schedulerv1.IntegrationChange_INTEGRATION_CHANGE_SUSPENDED,
	ingest.ChangeUnsuspended: schedulerv1.IntegrationChange_INTEGRATION_CHANGE_UNSUSPENDED,
	ingest.ChangeAdded:       schedulerv1.IntegrationChange_INTEGRATION_CHANGE_REPOSITORIES_ADDED,
	ingest.ChangeRemoved:     schedulerv1.IntegrationChange_INTEGRATION_CHANGE_REPOSITORIES_REMOVED,
	ingest.ChangeGone:        schedulerv1.IntegrationChange_INTEGRATION_CHANGE_REPOSITORIES_GONE,
	ingest.ChangeRenamed:     schedulerv1.IntegrationChange_INTEGRATION_CHANGE_REPOSITORIES_RENAMED,
	ingest.ChangeArchived:    schedulerv1.IntegrationChange_INTEGRATION_CHANGE_REPOSITORIES_ARCHIVED,
	ingest.ChangeUnarchived:  schedulerv1.IntegrationChange_INTEGRATION_CHANGE_REPOSITORIES_UNARCHIVED,
}
