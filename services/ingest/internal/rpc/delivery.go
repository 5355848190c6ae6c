package rpc

import (
	"context"
	"encoding/hex"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

type receipts interface {
	Deliveries(ctx context.Context, f ingest.DeliveryFilter, limit int) ([]ingest.Receipt, error)
	Delivery(ctx context.Context, tenant *ingest.TenantID, id string) ([]ingest.Receipt, error)
	Replay(ctx context.Context, id ingest.ReceiptID, key string) (replay int32, activity string, err error)
}

// Deliveries serves DeliveryService.
type Deliveries struct {
	ingestv1.UnimplementedDeliveryServiceServer
	store receipts
}

// NewDeliveries returns the DeliveryService over its store.
func NewDeliveries(store receipts) *Deliveries { return &Deliveries{store: store} }

// ListDeliveries lists receipts, newest first.
func (d *Deliveries) ListDeliveries(ctx context.Context, req *ingestv1.ListDeliveriesRequest) (*ingestv1.ListDeliveriesResponse, error) {
	before, ok, err := rpc.PageCursor[uuid.UUID](req, req.GetPageToken())
	if err != nil {
		return nil, err
	}
	if !ok {
		before = uuid.Max
	}
	size := rpc.PageSize(req.GetPageSize())
	found, err := d.store.Deliveries(ctx, ingest.DeliveryFilter{
		Tenant: tenantOf(req.GetTenant()), DeliveryID: req.GetDeliveryId(), Event: req.GetEvent(),
		Decision: req.GetDecision(), RepositoryID: req.GetRepositoryId(), Before: ingest.ReceiptID(before),
	}, size)
	if err != nil {
		return nil, err
	}
	resp := &ingestv1.ListDeliveriesResponse{Deliveries: deliveries(found)}
	if len(found) == size {
		resp.NextPageToken, err = rpc.PageToken(req, uuid.UUID(found[size-1].ID))
	}
	return resp, err
}

// GetDelivery finds receipts by GitHub's delivery id, or one by its own.
func (d *Deliveries) GetDelivery(ctx context.Context, req *ingestv1.GetDeliveryRequest) (*ingestv1.GetDeliveryResponse, error) {
	found, err := d.store.Delivery(ctx, tenantOf(req.GetTenant()), req.GetDeliveryId())
	if err != nil {
		return nil, err
	}
	return &ingestv1.GetDeliveryResponse{Deliveries: deliveries(found)}, nil
}

// ReplayDelivery makes new activity out of a receipt.
func (d *Deliveries) ReplayDelivery(ctx context.Context, req *ingestv1.ReplayDeliveryRequest) (*ingestv1.ReplayDeliveryResponse, error) {
	replay, activity, err := d.store.Replay(ctx, ingest.ReceiptID(id(req.GetReceiptId())), req.GetIdempotencyKey())
	if err != nil {
		return nil, err
	}
	return &ingestv1.ReplayDeliveryResponse{Replay: replay, ActivityId: activity}, nil
}

func deliveries(found []ingest.Receipt) []*ingestv1.Delivery {
	out := make([]*ingestv1.Delivery, len(found))
	for i, r := range found {
		out[i] = &ingestv1.Delivery{
			ReceiptId: r.ID.String(), Host: r.Source.Host, HookSource: r.Source.Hook, DeliveryId: r.Source.DeliveryID,
			Event: r.Event, Action: r.Action, Decision: string(r.Decision.Kind), Reason: r.Decision.Reason,
			InstallationId: r.InstallationID, RepositoryId: r.RepositoryID, Repository: r.Repository, Number: r.Number,
			Bytes: r.Bytes, Sha256: hex.EncodeToString(r.Digest[:]), Replays: r.Replays, Duplicates: r.Duplicates,
			TraceId: traceID(r.TraceParent), ReceivedAt: stamp(r.ReceivedAt),
		}
		if r.Tenant != nil {
			out[i].Tenant = r.Tenant.String()
		}
	}
	return out
}

func traceID(traceparent string) string {
	return obs.TraceID(obs.Extract(context.Background(), traceparent))
}
