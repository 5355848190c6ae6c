package rpc

import (
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

// Access says who may call what. Only the reviewer spends, only the scheduler closes what a run took, and only operators grant. A
// tenant's client may see its own statement.
var Access = rpc.Access{
	ledgerv1.LedgerService_Reserve_FullMethodName:        {"reviewer"},
	ledgerv1.LedgerService_Settle_FullMethodName:         {"reviewer"},
	ledgerv1.LedgerService_Void_FullMethodName:           {"reviewer"},
	ledgerv1.LedgerService_IssueReceipt_FullMethodName:   {"scheduler"},
	ledgerv1.LedgerService_PurgeLifecycle_FullMethodName: {"scheduler"},

	ledgerv1.AccountService_GrantCredits_FullMethodName:  {rpc.Operator},
	ledgerv1.AccountService_GetBalance_FullMethodName:    {rpc.Operator, rpc.Client},
	ledgerv1.AccountService_ListTransfers_FullMethodName: {rpc.Operator, rpc.Client},
	ledgerv1.AccountService_ListReceipts_FullMethodName:  {rpc.Operator, rpc.Client},
	ledgerv1.AccountService_SetBudget_FullMethodName:     {rpc.Operator},

	outboxv1.OutboxService_ListMessages_FullMethodName: {rpc.Operator},
	outboxv1.OutboxService_GetStats_FullMethodName:     {rpc.Operator},
	outboxv1.OutboxService_RetryMessage_FullMethodName: {rpc.Operator},
	outboxv1.ErasureService_EraseTenant_FullMethodName: {"ingest"},
}
