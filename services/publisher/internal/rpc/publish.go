// Package rpc serves the publisher over gRPC: it translates between proto and domain, nothing more.
package rpc

import (
	"context"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

type recorder interface {
	PublishEpoch(ctx context.Context, e publisher.Epoch) (intents int, err error)
	ConfigureProject(ctx context.Context, c publisher.Configuration) error
}

// Publisher serves PublisherService.
type Publisher struct {
	publisherv1.UnimplementedPublisherServiceServer
	store recorder
	purge purger
}

// NewPublisher returns the PublisherService over its store.
func NewPublisher(store recorder, purge purger) *Publisher {
	return &Publisher{store: store, purge: purge}
}

var kinds = map[publisherv1.EpochKind]publisher.Kind{
	publisherv1.EpochKind_EPOCH_KIND_RESULT:      publisher.KindResult,
	publisherv1.EpochKind_EPOCH_KIND_SUPERSEDED:  publisher.KindSuperseded,
	publisherv1.EpochKind_EPOCH_KIND_SKIPPED:     publisher.KindSkipped,
	publisherv1.EpochKind_EPOCH_KIND_REFUSED:     publisher.KindRefused,
	publisherv1.EpochKind_EPOCH_KIND_OVER_BUDGET: publisher.KindOverBudget,
}

// PublishEpoch records the intents of one epoch.
func (s *Publisher) PublishEpoch(ctx context.Context, req *publisherv1.PublishEpochRequest) (*publisherv1.PublishEpochResponse, error) {
	e := epoch(req)
	e.Traceparent = obs.Inject(ctx)
	trace.SpanFromContext(ctx).SetAttributes(obs.Tenant(req.GetTenant()), obs.TargetID(req.GetTargetId()),
		obs.Lifecycle(e.At.Lifecycle), obs.Epoch(e.At.Epoch), obs.RunID(req.GetRun().GetRunId()))
	if err := e.Validate(); err != nil {
		return nil, err
	}
	n, err := s.store.PublishEpoch(ctx, e)
	if err != nil {
		return nil, err
	}
	return &publisherv1.PublishEpochResponse{Intents: int32(n)}, nil
}

func epoch(req *publisherv1.PublishEpochRequest) publisher.Epoch {
	return publisher.Epoch{
		Tenant: publisher.Tenant(id(req.GetTenant())), Target: publisher.TargetID(id(req.GetTargetId())),
		At:   publisher.Position{Lifecycle: req.GetLifecycle(), Epoch: req.GetEpoch()},
		Kind: kinds[req.GetKind()], PR: pullRequest(req.GetPullRequest()),
		Run: run(req.GetRun()), Reason: req.GetReason(), Detail: req.GetDetail(), NewerHead: req.GetNewerHeadSha(),
	}
}

var progressKinds = map[publisherv1.ProgressState]publisher.Kind{
	publisherv1.ProgressState_PROGRESS_STATE_QUEUED:      publisher.KindQueued,
	publisherv1.ProgressState_PROGRESS_STATE_IN_PROGRESS: publisher.KindInProgress,
}

// PublishProgress records how far a run is that has no result yet.
func (s *Publisher) PublishProgress(ctx context.Context, req *publisherv1.PublishProgressRequest) (*publisherv1.PublishProgressResponse, error) {
	kind := progressKinds[req.GetState()]
	e := publisher.Epoch{
		Tenant: publisher.Tenant(id(req.GetTenant())), Target: publisher.TargetID(id(req.GetTargetId())), Kind: kind,
		At: publisher.Position{Lifecycle: req.GetLifecycle(), Epoch: req.GetEpoch(), Step: publisher.ProgressStep(req.GetGeneration(), kind)},
		PR: pullRequest(req.GetPullRequest()), Run: run(req.GetRun()), Traceparent: obs.Inject(ctx),
	}
	trace.SpanFromContext(ctx).SetAttributes(obs.Tenant(req.GetTenant()), obs.TargetID(req.GetTargetId()),
		obs.Lifecycle(e.At.Lifecycle), obs.Epoch(e.At.Epoch), obs.RunID(req.GetRun().GetRunId()))
	if err := e.Validate(); err != nil {
		return nil, err
	}
	if _, err := s.store.PublishEpoch(ctx, e); err != nil {
		return nil, err
	}
	return &publisherv1.PublishProgressResponse{}, nil
}

var projectSurfaces = map[publisherv1.ProjectSurface]publisher.SurfaceKind{
	publisherv1.ProjectSurface_PROJECT_SURFACE_SUMMARY:       publisher.SurfaceSummary,
	publisherv1.ProjectSurface_PROJECT_SURFACE_REVIEW:        publisher.SurfaceReview,
	publisherv1.ProjectSurface_PROJECT_SURFACE_CHECK_RUN:     publisher.SurfaceCheckRun,
	publisherv1.ProjectSurface_PROJECT_SURFACE_COMMIT_STATUS: publisher.SurfaceStatus,
}

// ConfigureProject keeps which surfaces a project's results are shown on.
func (s *Publisher) ConfigureProject(ctx context.Context, req *publisherv1.ConfigureProjectRequest) (*publisherv1.ConfigureProjectResponse, error) {
	trace.SpanFromContext(ctx).SetAttributes(obs.Tenant(req.GetTenant()))
	c := publisher.Configuration{
		Tenant: publisher.Tenant(id(req.GetTenant())), Project: publisher.ProjectID(id(req.GetProjectId())), Version: req.GetVersion(),
	}
	for _, surface := range req.GetSurfaces() {
		c.Surfaces = append(c.Surfaces, projectSurfaces[surface])
	}
	if err := s.store.ConfigureProject(ctx, c); err != nil {
		return nil, err
	}
	return &publisherv1.ConfigureProjectResponse{}, nil
}

func run(r *publisherv1.Run) *publisher.Run {
	if r == nil {
		return nil
	}
	return &publisher.Run{
		ID: publisher.RunID(id(r.GetRunId())), BaseRef: r.GetBaseRef(), BaseSHA: r.GetBaseSha(), HeadSHA: r.GetHeadSha(),
		MergeBaseSHA: r.GetMergeBaseSha(), Ordinal: r.GetOrdinal(), Attempt: publisher.AttemptID(id(r.GetAttemptId())),
		Clean: r.GetClean(), Errors: r.GetErrors(), Warnings: r.GetWarnings(), Infos: r.GetInfos(),
		Engine: r.GetEngine(), CostMicros: r.GetCost().GetMicros(),
	}
}

// id reads a UUID that the proto's rules have checked; the zero id where it is empty.
func id(s string) uuid.UUID {
	u, _ := uuid.Parse(s) // checked by the validator, or empty
	return u
}
