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
	pr := req.GetPullRequest()
	return publisher.Epoch{
		Tenant: publisher.Tenant(id(req.GetTenant())), Target: publisher.TargetID(id(req.GetTargetId())),
		At:   publisher.Position{Lifecycle: req.GetLifecycle(), Epoch: req.GetEpoch()},
		Kind: kinds[req.GetKind()],
		PR: publisher.PullRequest{
			Project: publisher.ProjectID(id(pr.GetProjectId())), Host: pr.GetHost(), Installation: pr.GetInstallationId(),
			Repository: pr.GetRepositoryId(), Name: pr.GetRepository(), Number: pr.GetNumber(),
		},
		Run: run(req.GetRun()), Reason: req.GetReason(), Detail: req.GetDetail(), NewerHead: req.GetNewerHeadSha(),
	}
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
