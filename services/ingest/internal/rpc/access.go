package rpc

import (
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

// Access says who may call what. Who asks for a review is a tenant's client or an operator; the rest is for operators, and a
// tenant's client may see its own deliveries and projects.
var Access = rpc.Access{
	ingestv1.IngestService_RequestReview_FullMethodName:    {rpc.Operator, rpc.Client},
	ingestv1.IngestService_GetReviewRequest_FullMethodName: {rpc.Operator, rpc.Client},

	ingestv1.DeliveryService_ListDeliveries_FullMethodName: {rpc.Operator, rpc.Client},
	ingestv1.DeliveryService_GetDelivery_FullMethodName:    {rpc.Operator, rpc.Client},
	ingestv1.DeliveryService_ReplayDelivery_FullMethodName: {rpc.Operator},

	ingestv1.IntegrationService_BindInstallation_FullMethodName:  {rpc.Operator},
	ingestv1.IntegrationService_EnrollProject_FullMethodName:     {rpc.Operator},
	ingestv1.IntegrationService_ListInstallations_FullMethodName: {rpc.Operator},
	ingestv1.IntegrationService_ListProjects_FullMethodName:      {rpc.Operator, rpc.Client},

	outboxv1.OutboxService_ListMessages_FullMethodName: {rpc.Operator},
	outboxv1.OutboxService_GetStats_FullMethodName:     {rpc.Operator},
	outboxv1.OutboxService_RetryMessage_FullMethodName: {rpc.Operator},
}
