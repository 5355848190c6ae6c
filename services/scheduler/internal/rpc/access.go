package rpc

import (
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

// Access says who may call what. Each service writes what it alone knows; what is decided is read, and stopped, by operators, and
// by ingest for those who ask it.
var Access = rpc.Access{
	schedulerv1.SchedulerService_RecordActivity_FullMethodName:    {"ingest", "publisher"},
	schedulerv1.SchedulerService_RecordIntegration_FullMethodName: {"ingest"},
	schedulerv1.SchedulerService_ClaimTargets_FullMethodName:      {"reviewer"},
	schedulerv1.SchedulerService_ResolveRun_FullMethodName:        {"reviewer"},
	schedulerv1.SchedulerService_RenewLease_FullMethodName:        {"reviewer"},
	schedulerv1.SchedulerService_CommitResult_FullMethodName:      {"reviewer"},
	schedulerv1.SchedulerService_ReleaseTarget_FullMethodName:     {"reviewer"},
	schedulerv1.SchedulerService_CheckCurrent_FullMethodName:      {"publisher"},
	schedulerv1.SchedulerService_RecordPublication_FullMethodName: {"publisher"},

	schedulerv1.TargetService_LookupTarget_FullMethodName:  {"ingest", rpc.Operator},
	schedulerv1.TargetService_ListTargets_FullMethodName:   {"ingest", rpc.Operator},
	schedulerv1.TargetService_GetTarget_FullMethodName:     {rpc.Operator},
	schedulerv1.TargetService_ExplainTarget_FullMethodName: {"ingest", rpc.Operator},
	schedulerv1.TargetService_ListRuns_FullMethodName:      {rpc.Operator},
	schedulerv1.TargetService_GetRun_FullMethodName:        {"ingest", rpc.Operator},
	schedulerv1.TargetService_ListDecisions_FullMethodName: {"ingest", rpc.Operator},
	schedulerv1.TargetService_SetPause_FullMethodName:      {"ingest", rpc.Operator},
	schedulerv1.TargetService_ListPauses_FullMethodName:    {rpc.Operator},

	outboxv1.OutboxService_ListMessages_FullMethodName: {rpc.Operator},
	outboxv1.OutboxService_GetStats_FullMethodName:     {rpc.Operator},
	outboxv1.OutboxService_RetryMessage_FullMethodName: {rpc.Operator},
	outboxv1.ErasureService_EraseTenant_FullMethodName: {"ingest"},
}
