package rpc

import (
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
)

// Access says who may call what. Findings are the publisher's to show, and what is kept of a lifecycle the scheduler's to end.
var Access = rpc.Access{
	reviewerv1.ReviewerService_ListAttempts_FullMethodName:   {rpc.Operator},
	reviewerv1.ReviewerService_GetAttempt_FullMethodName:     {rpc.Operator},
	reviewerv1.ReviewerService_ListFindings_FullMethodName:   {"publisher", rpc.Operator},
	reviewerv1.ReviewerService_PurgeLifecycle_FullMethodName: {"scheduler"},

	outboxv1.OutboxService_ListMessages_FullMethodName: {rpc.Operator},
	outboxv1.OutboxService_GetStats_FullMethodName:     {rpc.Operator},
	outboxv1.OutboxService_RetryMessage_FullMethodName: {rpc.Operator},
	outboxv1.ErasureService_EraseTenant_FullMethodName: {"ingest"},
}
