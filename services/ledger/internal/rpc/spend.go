// Package rpc serves the ledger over gRPC: it translates between proto and domain, nothing more.
package rpc

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	typev1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/type/v1"
	"github.com/fenceline-dev/fenceline/services/ledger/internal/ledger"
)

type spender interface {
	Reserve(ctx context.Context, tenant ledger.TenantID, ask ledger.ReserveAsk) (ledger.Change, error)
	Settle(ctx context.Context, tenant ledger.TenantID, ask ledger.SettleAsk) (ledger.Change, error)
	Void(ctx context.Context, tenant ledger.TenantID, ask ledger.VoidAsk) error
}

type receiptIssuer interface {
	IssueReceipt(ctx context.Context, tenant ledger.TenantID, run ledger.RunID, target ledger.TargetID, end ledger.ReceiptEnd) error
}

type purger interface {
	PurgeRuns(ctx context.Context, tenant ledger.TenantID, runs []ledger.RunID) error
}

// Ledger serves LedgerService.
type Ledger struct {
	ledgerv1.UnimplementedLedgerServiceServer
	spend    spender
	receipts receiptIssuer
	purge    purger
}

// NewLedger returns the LedgerService over its store.
func NewLedger(spend spender, receipts receiptIssuer, purge purger) *Ledger {
	return &Ledger{spend: spend, receipts: receipts, purge: purge}
}

// Reserve holds an attempt's maximum cost.
func (l *Ledger) Reserve(ctx context.Context, req *ledgerv1.ReserveRequest) (*ledgerv1.ReserveResponse, error) {
	tenant, ask := ledger.TenantID(id(req.GetTenant())), ledger.ReserveAsk{
		Attempt: ledger.AttemptID(id(req.GetAttemptId())), Run: ledger.RunID(id(req.GetRunId())),
		Amount: ledger.Micros(req.GetAmount().GetMicros()), Engine: req.GetEngine(),
	}
	note(ctx, req.GetTenant(), req.GetRunId(), req.GetAttemptId())
	c, err := l.spend.Reserve(ctx, tenant, ask)
	if refused, ok := errors.AsType[*ledger.OverBudgetError](err); ok {
		return nil, overBudget(refused, req.GetTenant())
	}
	if err != nil {
		return nil, err
	}
	return &ledgerv1.ReserveResponse{Reserved: money(c.Reservation.Amount), Available: money(c.Account.Available)}, nil
}

// Settle moves what an attempt cost from held to spent.
func (l *Ledger) Settle(ctx context.Context, req *ledgerv1.SettleRequest) (*ledgerv1.SettleResponse, error) {
	note(ctx, req.GetTenant(), req.GetRunId(), req.GetAttemptId())
	c, err := l.spend.Settle(ctx, ledger.TenantID(id(req.GetTenant())), ledger.SettleAsk{
		Attempt: ledger.AttemptID(id(req.GetAttemptId())), Run: ledger.RunID(id(req.GetRunId())),
		Amount: ledger.Micros(req.GetAmount().GetMicros()), Estimate: req.GetEstimate(), Outcome: req.GetOutcome(),
	})
	if err != nil {
		return nil, err
	}
	return &ledgerv1.SettleResponse{Settled: money(c.Reservation.Settled)}, nil
}

// Void frees what was held for an attempt that never started.
func (l *Ledger) Void(ctx context.Context, req *ledgerv1.VoidRequest) (*ledgerv1.VoidResponse, error) {
	note(ctx, req.GetTenant(), req.GetRunId(), req.GetAttemptId())
	err := l.spend.Void(ctx, ledger.TenantID(id(req.GetTenant())), ledger.VoidAsk{
		Attempt: ledger.AttemptID(id(req.GetAttemptId())), Run: ledger.RunID(id(req.GetRunId())), Reason: req.GetReason(),
	})
	if err != nil {
		return nil, err
	}
	return &ledgerv1.VoidResponse{}, nil
}

// IssueReceipt records how a run ended.
func (l *Ledger) IssueReceipt(ctx context.Context, req *ledgerv1.IssueReceiptRequest) (*ledgerv1.IssueReceiptResponse, error) {
	note(ctx, req.GetTenant(), req.GetRunId(), req.GetAttemptId())
	end := ledger.ReceiptEnd{Epoch: req.GetEpoch(), Outcome: req.GetOutcome()}
	if req.GetAttemptId() != "" {
		attempt := ledger.AttemptID(id(req.GetAttemptId()))
		end.Attempt = &attempt
	}
	err := l.receipts.IssueReceipt(ctx, ledger.TenantID(id(req.GetTenant())), ledger.RunID(id(req.GetRunId())),
		ledger.TargetID(id(req.GetTargetId())), end)
	if err != nil {
		return nil, err
	}
	return &ledgerv1.IssueReceiptResponse{}, nil
}

// PurgeLifecycle folds what the runs of an ended lifecycle moved, once they hold nothing.
func (l *Ledger) PurgeLifecycle(ctx context.Context, req *ledgerv1.PurgeLifecycleRequest) (*ledgerv1.PurgeLifecycleResponse, error) {
	trace.SpanFromContext(ctx).SetAttributes(obs.Tenant(req.GetTenant()), obs.TargetID(req.GetTargetId()), obs.Lifecycle(req.GetLifecycle()))
	runs := make([]ledger.RunID, len(req.GetRunIds()))
	for i, run := range req.GetRunIds() {
		runs[i] = ledger.RunID(id(run))
	}
	if err := l.purge.PurgeRuns(ctx, ledger.TenantID(id(req.GetTenant())), runs); err != nil {
		return nil, err
	}
	return &ledgerv1.PurgeLifecycleResponse{}, nil
}

// id reads a UUID that the proto's rules have checked; the zero id where it is empty.
func id(s string) uuid.UUID {
	u, _ := uuid.Parse(s) // checked by the validator, or empty
	return u
}

func money(m ledger.Micros) *typev1.Money { return &typev1.Money{Micros: int64(m)} }

// note puts the ids that a call knows on its span.
func note(ctx context.Context, tenant, run, attempt string) {
	trace.SpanFromContext(ctx).SetAttributes(obs.Tenant(tenant), obs.RunID(run), obs.AttemptID(attempt))
}
