package store

import (
	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	typev1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/type/v1"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// Destinations are where this store's messages go.
var Destinations = []string{
	ledgerv1.LedgerService_Settle_FullMethodName,
	ledgerv1.LedgerService_Void_FullMethodName,
}

// messages turns a transition's effects into what leaves through the outbox.
func messages(tenant reviewer.TenantID, effects ...reviewer.Effects) []outbox.Message {
	var msgs []outbox.Message
	for _, e := range effects {
		if s := e.Settle; s != nil {
			msgs = append(msgs, outbox.Message{
				Destination: ledgerv1.LedgerService_Settle_FullMethodName, Key: s.Key(), Tenant: uuid.UUID(tenant),
				Request: &ledgerv1.SettleRequest{
					Tenant: tenant.String(), AttemptId: s.Attempt.String(), RunId: s.Run.String(),
					Amount: &typev1.Money{Micros: int64(s.Amount)}, Estimate: s.Estimate, Outcome: s.Outcome,
				},
			})
		}
		if v := e.Void; v != nil {
			msgs = append(msgs, outbox.Message{
				Destination: ledgerv1.LedgerService_Void_FullMethodName, Key: v.Key(), Tenant: uuid.UUID(tenant),
				Request: &ledgerv1.VoidRequest{
					Tenant: tenant.String(), AttemptId: v.Attempt.String(), RunId: v.Run.String(), Reason: v.Reason,
				},
			})
		}
	}
	return msgs
}
