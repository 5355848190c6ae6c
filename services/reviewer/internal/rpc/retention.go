package rpc

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

type purger interface {
	PurgeLifecycle(ctx context.Context, tenant reviewer.TenantID, target reviewer.TargetID, lifecycle int64) error
}

// PurgeLifecycle removes the attempts and findings of an ended lifecycle, once none is open.
func (s *Reviewer) PurgeLifecycle(ctx context.Context, req *reviewerv1.PurgeLifecycleRequest) (*reviewerv1.PurgeLifecycleResponse, error) {
	trace.SpanFromContext(ctx).SetAttributes(obs.Tenant(req.GetTenant()), obs.TargetID(req.GetTargetId()), obs.Lifecycle(req.GetLifecycle()))
	err := s.purge.PurgeLifecycle(ctx, reviewer.TenantID(id(req.GetTenant())), reviewer.TargetID(id(req.GetTargetId())), req.GetLifecycle())
	if err != nil {
		return nil, err
	}
	return &reviewerv1.PurgeLifecycleResponse{}, nil
}
