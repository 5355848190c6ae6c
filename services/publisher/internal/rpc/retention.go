package rpc

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

type purger interface {
	PurgeLifecycle(ctx context.Context, tenant publisher.Tenant, target publisher.TargetID, lifecycle int64) error
}

// PurgeLifecycle ends what an ended lifecycle has open, and removes its epochs and intents.
func (s *Publisher) PurgeLifecycle(ctx context.Context, req *publisherv1.PurgeLifecycleRequest) (*publisherv1.PurgeLifecycleResponse, error) {
	trace.SpanFromContext(ctx).SetAttributes(obs.Tenant(req.GetTenant()), obs.TargetID(req.GetTargetId()), obs.Lifecycle(req.GetLifecycle()))
	err := s.purge.PurgeLifecycle(ctx, publisher.Tenant(id(req.GetTenant())), publisher.TargetID(id(req.GetTargetId())), req.GetLifecycle())
	if err != nil {
		return nil, err
	}
	return &publisherv1.PurgeLifecycleResponse{}, nil
}
