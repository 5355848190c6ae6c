package rpc

import (
	"errors"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	"github.com/fenceline-dev/fenceline/services/ledger/internal/ledger"
)

// Errors maps the domain's sentinels to their codes and stable reasons.
var Errors = []rpc.Map{
	{Err: ledger.ErrAttemptClosed, Code: codes.FailedPrecondition, Reason: "ATTEMPT_CLOSED"},
	{Err: ledger.ErrAmountMismatch, Code: codes.AlreadyExists, Reason: "RESERVATION_CONFLICT"},
	{Err: ledger.ErrInvalidAmount, Code: codes.InvalidArgument, Reason: "INVALID_AMOUNT"},
	{Err: ledger.ErrGrantConflict, Code: codes.AlreadyExists, Reason: "IDEMPOTENCY_KEY_CONFLICT"},
}

// overBudget answers a refused Reserve with what was short and when to try again.
func overBudget(refused *ledger.OverBudgetError, tenant string) error {
	subject := "available funds are"
	if errors.Is(refused, ledger.ErrBudgetExhausted) {
		subject = "budget for this period is"
	}
	return rpc.Error(codes.ResourceExhausted, "OVER_BUDGET", refused.Error(),
		&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
			Subject:     "tenant:" + tenant,
			Description: fmt.Sprintf("the tenant's %s used up: grant credits or raise the budget", subject),
		}}},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(refused.RetryAfter)})
}
