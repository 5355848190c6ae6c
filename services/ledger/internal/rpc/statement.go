package rpc

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	"github.com/fenceline-dev/fenceline/services/ledger/internal/ledger"
)

type books interface {
	Transfers(ctx context.Context, tenant ledger.TenantID, run *ledger.RunID, before int64, limit int) ([]ledger.Transfer, error)
	Receipts(ctx context.Context, tenant ledger.TenantID, run *ledger.RunID, before ledger.ReceiptCursor, limit int) ([]ledger.Receipt, ledger.ReceiptCursor, error)
}

// ListTransfers reads the tenant's statement, newest first.
func (s *Accounts) ListTransfers(ctx context.Context, req *ledgerv1.ListTransfersRequest) (*ledgerv1.ListTransfersResponse, error) {
	before, ok, err := rpc.PageCursor[int64](req, req.GetPageToken())
	if err != nil {
		return nil, err
	}
	if !ok {
		before = math.MaxInt64
	}
	size := rpc.PageSize(req.GetPageSize())
	transfers, err := s.books.Transfers(ctx, ledger.TenantID(id(req.GetTenant())), runOf(req.GetRunId()), before, size)
	if err != nil {
		return nil, err
	}
	resp := &ledgerv1.ListTransfersResponse{}
	for _, t := range transfers {
		resp.Transfers = append(resp.Transfers, transfer(t))
	}
	if len(transfers) == size {
		resp.NextPageToken, err = rpc.PageToken(req, transfers[size-1].Sequence)
	}
	return resp, err
}

func transfer(t ledger.Transfer) *ledgerv1.Transfer {
	out := &ledgerv1.Transfer{
		TransferId: t.ID.String(), Sequence: t.Sequence, Kind: string(t.Kind), Note: t.Note,
		Estimate: t.Estimate, At: timestamppb.New(t.At),
	}
	if t.Attempt != nil {
		out.AttemptId = t.Attempt.String()
	}
	if t.Run != nil {
		out.RunId = t.Run.String()
	}
	for _, p := range []struct {
		account string
		amount  ledger.Micros
	}{{"grants", t.Grants}, {"available", t.Available}, {"reserved", t.Reserved}, {"spent", t.Spent}, {"overruns", t.Overruns}} {
		if p.amount != 0 {
			out.Postings = append(out.Postings, &ledgerv1.Posting{Account: p.account, Amount: money(p.amount)})
		}
	}
	return out
}

// newest is above every receipt: where the first page begins.
var newest = ledger.ReceiptCursor{CreatedAt: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), Run: ledger.RunID(uuid.Max)}

// ListReceipts reads receipts, newest first.
func (s *Accounts) ListReceipts(ctx context.Context, req *ledgerv1.ListReceiptsRequest) (*ledgerv1.ListReceiptsResponse, error) {
	before, ok, err := rpc.PageCursor[ledger.ReceiptCursor](req, req.GetPageToken())
	if err != nil {
		return nil, err
	}
	if !ok {
		before = newest
	}
	size := rpc.PageSize(req.GetPageSize())
	receipts, last, err := s.books.Receipts(ctx, ledger.TenantID(id(req.GetTenant())), runOf(req.GetRunId()), before, size)
	if err != nil {
		return nil, err
	}
	resp := &ledgerv1.ListReceiptsResponse{}
	for _, r := range receipts {
		resp.Receipts = append(resp.Receipts, receipt(r))
	}
	if len(receipts) == size {
		resp.NextPageToken, err = rpc.PageToken(req, last)
	}
	return resp, err
}

func receipt(r ledger.Receipt) *ledgerv1.Receipt {
	out := &ledgerv1.Receipt{RunId: r.Run.String(), Total: money(r.Total()), Complete: r.Complete()}
	if r.Target != (ledger.TargetID{}) {
		out.TargetId = r.Target.String()
	}
	if !r.IssuedAt.IsZero() {
		out.IssuedAt = timestamppb.New(r.IssuedAt)
	}
	for _, e := range r.Ends {
		end := &ledgerv1.ReceiptEnd{Epoch: e.Epoch, Outcome: e.Outcome, At: timestamppb.New(e.At)}
		if e.Attempt != nil {
			end.AttemptId = e.Attempt.String()
		}
		out.Ends = append(out.Ends, end)
	}
	for _, l := range r.Lines {
		out.Lines = append(out.Lines, &ledgerv1.ReceiptLine{
			AttemptId: l.Attempt.String(), State: string(l.State), Reserved: money(l.Amount),
			Settled: money(l.Settled + l.Overrun), Estimate: l.Estimate, Outcome: l.Outcome,
		})
	}
	return out
}

func runOf(s string) *ledger.RunID {
	if s == "" {
		return nil
	}
	run := ledger.RunID(id(s))
	return &run
}
