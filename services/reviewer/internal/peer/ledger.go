package peer

import (
	"context"

	"google.golang.org/grpc"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	typev1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/type/v1"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// Ledger holds what attempts may cost.
type Ledger struct {
	client ledgerv1.LedgerServiceClient
}

// NewLedger returns the ledger behind the connection.
func NewLedger(conn grpc.ClientConnInterface) *Ledger {
	return &Ledger{client: ledgerv1.NewLedgerServiceClient(conn)}
}

// Reserve holds an attempt's maximum cost. It refuses with an OverBudgetError; on ErrAway the money
// may be held.
func (l *Ledger) Reserve(ctx context.Context, a reviewer.Attempt) error {
	_, err := l.client.Reserve(ctx, &ledgerv1.ReserveRequest{
		Tenant: a.Tenant.String(), AttemptId: a.ID.String(), RunId: a.Run.String(),
		Amount: &typev1.Money{Micros: int64(a.Reserved)}, Engine: a.Engine,
	})
	if err == nil {
		return nil
	}
	if rpc.Reason(err) == reasonOverBudget {
		after, _ := rpc.RetryAfter(err)
		return &reviewer.OverBudgetError{RetryAfter: after}
	}
	return failure("reserve", err)
}
