package rpc

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

type recorder interface {
	Record(ctx context.Context, tenant scheduler.TenantID, a scheduler.Activity, event string) (scheduler.Recorded, error)
	RecordIntegration(ctx context.Context, tenant scheduler.TenantID, c scheduler.IntegrationChange) error
	RecordPublication(ctx context.Context, tenant scheduler.TenantID, target scheduler.TargetID, p scheduler.Publication, pause *scheduler.Pause) error
}

// RecordActivity folds one hint into its target.
func (s *Scheduler) RecordActivity(ctx context.Context, req *schedulerv1.RecordActivityRequest) (*schedulerv1.RecordActivityResponse, error) {
	a := activity(req)
	if a.Cause == scheduler.CauseRequest && a.Request.ID == "" {
		return nil, scheduler.ErrInvalidRequest
	}
	r, err := s.record.Record(ctx, id[scheduler.TenantID](req.GetTenant()), a, req.GetEvent())
	if err != nil {
		return nil, err
	}
	trace.SpanFromContext(ctx).SetAttributes(obs.Tenant(req.GetTenant()), obs.TargetID(r.Target.String()), obs.ActivityID(req.GetActivityId()),
		obs.DeliveryID(req.GetDeliveryId()), obs.Generation(int64(r.Generation)), obs.Decision(string(r.Decision)))
	return &schedulerv1.RecordActivityResponse{
		TargetId: r.Target.String(), Generation: int64(r.Generation), Decision: string(r.Decision),
	}, nil
}

var causes = map[schedulerv1.ActivityCause]scheduler.Cause{
	schedulerv1.ActivityCause_ACTIVITY_CAUSE_WEBHOOK: scheduler.CauseWebhook,
	schedulerv1.ActivityCause_ACTIVITY_CAUSE_SWEEP:   scheduler.CauseSweep,
	schedulerv1.ActivityCause_ACTIVITY_CAUSE_REPLAY:  scheduler.CauseReplay,
	schedulerv1.ActivityCause_ACTIVITY_CAUSE_REQUEST: scheduler.CauseRequest,
}

var states = map[schedulerv1.PullRequestState]scheduler.State{
	schedulerv1.PullRequestState_PULL_REQUEST_STATE_OPEN:   scheduler.StateOpen,
	schedulerv1.PullRequestState_PULL_REQUEST_STATE_DRAFT:  scheduler.StateDraft,
	schedulerv1.PullRequestState_PULL_REQUEST_STATE_CLOSED: scheduler.StateClosed,
	schedulerv1.PullRequestState_PULL_REQUEST_STATE_GONE:   scheduler.StateGone,
}

func activity(req *schedulerv1.RecordActivityRequest) scheduler.Activity {
	a := scheduler.Activity{
		ID: scheduler.ActivityID(req.GetActivityId()), Cause: causes[req.GetCause()],
		Delivery: scheduler.DeliveryID(req.GetDeliveryId()), PullRequest: pullRequest(req.GetPullRequest()),
	}
	if h := req.GetHint(); h != nil {
		a.Hint = scheduler.Hint{
			Content: scheduler.Content{State: states[h.GetState()], Head: h.GetHeadSha(), BaseRef: h.GetBaseRef()},
			Before:  h.GetBeforeSha(), UpdatedAt: moment(h.GetUpdatedAt()),
		}
	}
	if a.Cause == scheduler.CauseRequest {
		ask := req.GetAsk()
		a.Request = scheduler.Request{ID: scheduler.RequestID(ask.GetRequestId()), Dry: ask.GetDryRun(), Rerun: ask.GetRerun()}
	}
	return a
}

func pullRequest(pr *schedulerv1.PullRequest) scheduler.PullRequest {
	return scheduler.PullRequest{
		Project: id[scheduler.ProjectID](pr.GetProjectId()), Host: pr.GetHost(), Installation: pr.GetInstallationId(),
		Repository: pr.GetRepositoryId(), FullName: pr.GetRepository(), Number: pr.GetNumber(),
	}
}

var changeKinds = map[schedulerv1.IntegrationChange]scheduler.ChangeKind{
	schedulerv1.IntegrationChange_INTEGRATION_CHANGE_SUSPENDED:               scheduler.ChangeSuspended,
	schedulerv1.IntegrationChange_INTEGRATION_CHANGE_UNSUSPENDED:             scheduler.ChangeUnsuspended,
	schedulerv1.IntegrationChange_INTEGRATION_CHANGE_DELETED:                 scheduler.ChangeDeleted,
	schedulerv1.IntegrationChange_INTEGRATION_CHANGE_CREATED:                 scheduler.ChangeCreated,
	schedulerv1.IntegrationChange_INTEGRATION_CHANGE_REPOSITORIES_REMOVED:    scheduler.ChangeRemoved,
	schedulerv1.IntegrationChange_INTEGRATION_CHANGE_REPOSITORIES_ADDED:      scheduler.ChangeAdded,
	schedulerv1.IntegrationChange_INTEGRATION_CHANGE_REPOSITORIES_GONE:       scheduler.ChangeGone,
	schedulerv1.IntegrationChange_INTEGRATION_CHANGE_REPOSITORIES_RENAMED:    scheduler.ChangeRenamed,
	schedulerv1.IntegrationChange_INTEGRATION_CHANGE_REPOSITORIES_ARCHIVED:   scheduler.ChangeArchived,
	schedulerv1.IntegrationChange_INTEGRATION_CHANGE_REPOSITORIES_UNARCHIVED: scheduler.ChangeUnarchived,
}

// RecordIntegration applies a change of an installation.
func (s *Scheduler) RecordIntegration(ctx context.Context, req *schedulerv1.RecordIntegrationRequest) (*schedulerv1.RecordIntegrationResponse, error) {
	c := scheduler.IntegrationChange{
		Event: scheduler.ActivityID(req.GetEventId()), Kind: changeKinds[req.GetChange()], Host: req.GetHost(), Installation: req.GetInstallationId(),
		FullName: req.GetRepository(),
	}
	c.Recorded, _ = outbox.RecordedAt(ctx)
	for _, p := range req.GetProjectIds() {
		c.Projects = append(c.Projects, id[scheduler.ProjectID](p))
	}
	trace.SpanFromContext(ctx).SetAttributes(obs.Tenant(req.GetTenant()), obs.InstallationID(req.GetInstallationId()), obs.Decision(string(c.Kind)))
	if err := s.record.RecordIntegration(ctx, id[scheduler.TenantID](req.GetTenant()), c); err != nil {
		return nil, err
	}
	return &schedulerv1.RecordIntegrationResponse{}, nil
}

var deliveries = map[schedulerv1.PublicationState]scheduler.Delivery{
	schedulerv1.PublicationState_PUBLICATION_STATE_DELIVERED: scheduler.DeliveryDelivered,
	schedulerv1.PublicationState_PUBLICATION_STATE_ENDED:     scheduler.DeliveryEnded,
}

// RecordPublication stores how an epoch's delivery stands.
func (s *Scheduler) RecordPublication(ctx context.Context, req *schedulerv1.RecordPublicationRequest) (*schedulerv1.RecordPublicationResponse, error) {
	trace.SpanFromContext(ctx).SetAttributes(obs.Tenant(req.GetTenant()), obs.TargetID(req.GetTargetId()), obs.Epoch(req.GetEpoch()))
	p := scheduler.Publication{
		Lifecycle: scheduler.Lifecycle(req.GetLifecycle()), Epoch: scheduler.Epoch(req.GetEpoch()),
		Delivery: deliveries[req.GetState()], Reason: req.GetReason(), CommentURL: req.GetCommentUrl(),
	}
	err := s.record.RecordPublication(ctx, id[scheduler.TenantID](req.GetTenant()), id[scheduler.TargetID](req.GetTargetId()), p, pauseOf(req.GetPause()))
	if err != nil {
		return nil, err
	}
	return &schedulerv1.RecordPublicationResponse{}, nil
}

var scopes = map[schedulerv1.PauseScope]scheduler.Scope{
	schedulerv1.PauseScope_PAUSE_SCOPE_HOST:         scheduler.ScopeHost,
	schedulerv1.PauseScope_PAUSE_SCOPE_INSTALLATION: scheduler.ScopeInstallation,
	schedulerv1.PauseScope_PAUSE_SCOPE_PROJECT:      scheduler.ScopeProject,
	schedulerv1.PauseScope_PAUSE_SCOPE_TARGET:       scheduler.ScopeTarget,
}

// reasonSuspended is the reason of reviewer and publisher where GitHub gives no token: such a pause ends
// with the suspension.
const reasonSuspended = "suspended"

// pauseOf is a pause that a worker or the publisher found necessary.
func pauseOf(p *schedulerv1.Pause) *scheduler.Pause {
	if p == nil {
		return nil
	}
	cause := scheduler.PauseThrottled
	if p.GetReason() == reasonSuspended {
		cause = scheduler.PauseSuspension
	}
	return &scheduler.Pause{Scope: scopes[p.GetScope()], Cause: cause, Reason: p.GetReason(), Until: p.GetUntil().AsTime().Truncate(time.Microsecond)}
}
