package rpc

import (
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
)

// Access says who may call what. What a page says comes from the scheduler alone; an answer to a command, and
// which surfaces a project has, from ingest alone.
var Access = rpc.Access{
	publisherv1.PublisherService_PublishEpoch_FullMethodName:     {"scheduler"},
	publisherv1.PublisherService_PublishProgress_FullMethodName:  {"scheduler"},
	publisherv1.PublisherService_PublishReply_FullMethodName:     {"ingest"},
	publisherv1.PublisherService_ConfigureProject_FullMethodName: {"ingest"},
	publisherv1.PublisherService_PurgeLifecycle_FullMethodName:   {"scheduler"},

	publisherv1.IntentService_ListIntents_FullMethodName: {rpc.Operator},
	publisherv1.IntentService_GetIntent_FullMethodName:   {rpc.Operator},
	publisherv1.IntentService_RetryIntent_FullMethodName: {rpc.Operator},
	publisherv1.IntentService_PreviewRun_FullMethodName:  {"ingest", rpc.Operator},

	outboxv1.OutboxService_ListMessages_FullMethodName: {rpc.Operator},
	outboxv1.OutboxService_GetStats_FullMethodName:     {rpc.Operator},
	outboxv1.OutboxService_RetryMessage_FullMethodName: {rpc.Operator},
	outboxv1.ErasureService_EraseTenant_FullMethodName: {"ingest"},
}
