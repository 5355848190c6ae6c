package outbox

import (
	"context"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

// Eraser erases what a service keeps of a tenant; see ErasureService. Its error is purge.Unfinished where
// there is more to remove.
type Eraser interface {
	EraseTenant(ctx context.Context, tenant uuid.UUID) (removed int64, err error)
}

type erasure struct {
	outboxv1.UnimplementedErasureServiceServer
	eraser Eraser
}

// NewErasure serves the erasure that a service's store does.
func NewErasure(e Eraser) outboxv1.ErasureServiceServer { return &erasure{eraser: e} }

// EraseTenant removes the tenant's content.
func (e *erasure) EraseTenant(ctx context.Context, req *outboxv1.EraseTenantRequest) (*outboxv1.EraseTenantResponse, error) {
	trace.SpanFromContext(ctx).SetAttributes(obs.Tenant(req.GetTenant()))
	tenant, err := uuid.Parse(req.GetTenant())
	if err != nil {
		return nil, err // ruled out by the proto's rules
	}
	removed, err := e.eraser.EraseTenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return &outboxv1.EraseTenantResponse{Removed: removed}, nil
}
