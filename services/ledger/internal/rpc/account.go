package rpc

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	"github.com/fenceline-dev/fenceline/services/ledger/internal/ledger"
)

type banker interface {
	Grant(ctx context.Context, tenant ledger.TenantID, key string, amount ledger.Micros, note string) (ledger.Granted, error)
	Balance(ctx context.Context, tenant ledger.TenantID) (ledger.Account, time.Time, error)
	SetBudget(ctx context.Context, tenant ledger.TenantID, p ledger.Period, limit ledger.Micros) (ledger.Account, time.Time, error)
}

// Accounts serves AccountService.
type Accounts struct {
	ledgerv1.UnimplementedAccountServiceServer
	bank  banker
	books books
}

// NewAccounts returns the AccountService over its store.
func NewAccounts(bank banker, books books) *Accounts {
	return &Accounts{bank: bank, books: books}
}

// GrantCredits adds to what a tenant may spend.
func (s *Accounts) GrantCredits(ctx context.Context, req *ledgerv1.GrantCreditsRequest) (*ledgerv1.GrantCreditsResponse, error) {
	g, err := s.bank.Grant(ctx, ledger.TenantID(id(req.GetTenant())), req.GetIdempotencyKey(),
		ledger.Micros(req.GetAmount().GetMicros()), req.GetReason())
	if err != nil {
		return nil, err
	}
	return &ledgerv1.GrantCreditsResponse{TransferId: g.Transfer.String(), Available: money(g.Available)}, nil
}

// GetBalance reads a tenant's balances.
func (s *Accounts) GetBalance(ctx context.Context, req *ledgerv1.GetBalanceRequest) (*ledgerv1.GetBalanceResponse, error) {
	a, now, err := s.bank.Balance(ctx, ledger.TenantID(id(req.GetTenant())))
	if err != nil {
		return nil, err
	}
	return &ledgerv1.GetBalanceResponse{
		Granted: money(a.Granted), Available: money(a.Available), Reserved: money(a.Reserved),
		Spent: money(a.Spent + a.Overruns), Budget: budget(a.Budget, now),
	}, nil
}

// SetBudget bounds what a tenant may hold and spend in a period.
func (s *Accounts) SetBudget(ctx context.Context, req *ledgerv1.SetBudgetRequest) (*ledgerv1.SetBudgetResponse, error) {
	period := ledger.PeriodNone
	if req.GetLimit() != nil {
		period = periods[req.GetPeriod()]
	}
	a, now, err := s.bank.SetBudget(ctx, ledger.TenantID(id(req.GetTenant())), period, ledger.Micros(req.GetLimit().GetMicros()))
	if err != nil {
		return nil, err
	}
	return &ledgerv1.SetBudgetResponse{Budget: budget(a.Budget, now)}, nil
}

// periods has a budget without a named period run by the month.
var periods = map[ledgerv1.BudgetPeriod]ledger.Period{
	ledgerv1.BudgetPeriod_BUDGET_PERIOD_UNSPECIFIED: ledger.PeriodMonth,
	ledgerv1.BudgetPeriod_BUDGET_PERIOD_DAY:         ledger.PeriodDay,
	ledgerv1.BudgetPeriod_BUDGET_PERIOD_MONTH:       ledger.PeriodMonth,
}

func budget(b ledger.Budget, now time.Time) *ledgerv1.Budget {
	if b.Period == ledger.PeriodNone {
		return nil
	}
	b = b.At(now)
	period := ledgerv1.BudgetPeriod_BUDGET_PERIOD_MONTH
	if b.Period == ledger.PeriodDay {
		period = ledgerv1.BudgetPeriod_BUDGET_PERIOD_DAY
	}
	return &ledgerv1.Budget{Limit: money(b.Limit), Period: period, Used: money(b.Used), EndsAt: timestamppb.New(b.EndsAt(now))}
}
