package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/deploy/local/spans"
	"github.com/fenceline-dev/fenceline/deploy/local/view"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

// gather reads everything once more, when all is at rest, as far as it is there.
func (w *walk) gather(ctx context.Context) error {
	if err := w.look(ctx); err != nil {
		return fmt.Errorf("explain the target: %w", err)
	}
	tenant := w.delivery.GetTenant()
	if err := w.readIntents(ctx); err != nil {
		return fmt.Errorf("read the intents: %w", err)
	}
	target := w.page.GetTarget().GetTargetId()
	runs, err := w.from.targets.ListRuns(ctx, &schedulerv1.ListRunsRequest{Tenant: tenant, TargetId: target})
	if err != nil {
		return fmt.Errorf("read the runs: %w", err)
	}
	w.runs = runs.GetRuns()
	slices.Reverse(w.runs)
	if i := slices.IndexFunc(w.runs, func(r *schedulerv1.Run) bool { return r.GetRunId() == w.run.GetRunId() }); i >= 0 {
		w.run = w.runs[i] // it was read when it was resolved, before it had a result
	}
	attempts, err := w.from.reviews.ListAttempts(ctx, &reviewerv1.ListAttemptsRequest{Tenant: tenant, TargetId: target})
	if err != nil {
		return fmt.Errorf("read the attempts: %w", err)
	}
	w.attempts = attempts.GetAttempts()
	return w.gatherRest(ctx)
}

// gatherRest reads the money and what GitHub has.
func (w *walk) gatherRest(ctx context.Context) error {
	tenant := w.delivery.GetTenant()
	moved, err := w.from.accounts.ListTransfers(ctx, &ledgerv1.ListTransfersRequest{Tenant: tenant})
	if err != nil {
		return fmt.Errorf("read the transfers: %w", err)
	}
	w.moved = moved.GetTransfers()
	slices.SortFunc(w.moved, func(a, b *ledgerv1.Transfer) int { return int(a.GetSequence() - b.GetSequence()) })
	if w.balance, err = w.from.accounts.GetBalance(ctx, &ledgerv1.GetBalanceRequest{Tenant: tenant}); err != nil && len(w.moved) > 0 {
		return fmt.Errorf("read the balance: %w", err)
	}
	if w.comments, err = w.stack.GitHub().Comments(ctx, w.repo.ID, w.pull.Number); err != nil {
		return fmt.Errorf("read the comments: %w", err)
	}
	if w.checks, err = w.stack.GitHub().CheckRuns(ctx, w.repo.ID, ""); err != nil {
		return fmt.Errorf("read the check runs: %w", err)
	}
	if w.reviews, err = w.stack.GitHub().Reviews(ctx, w.repo.ID, w.pull.Number); err != nil {
		return fmt.Errorf("read the reviews: %w", err)
	}
	if w.statuses, err = w.stack.GitHub().Statuses(ctx, w.repo.ID, ""); err != nil {
		return fmt.Errorf("read the commit statuses: %w", err)
	}
	if w.requests, err = w.stack.GitHub().Requests(ctx, control.RequestFilter{}); err != nil {
		return fmt.Errorf("read what GitHub was asked: %w", err)
	}
	return nil
}

// showLedger shows the tenant's statement.
func (w *walk) showLedger() {
	w.t.Title("The ledger's statement of tenant " + w.delivery.GetTenant())
	accounts := map[string]bool{}
	for _, t := range w.moved {
		for _, p := range t.GetPostings() {
			accounts[p.GetAccount()] = true
		}
	}
	names := slices.Sorted(maps.Keys(accounts))
	header := append([]string{"#", "transfer", "attempt"}, names...)
	var rows [][]string
	var right []int
	for i := range names {
		right = append(right, i+3)
	}
	for _, t := range w.moved {
		row := []string{fmt.Sprint(t.GetSequence()), t.GetKind(), shortID(t.GetAttemptId())}
		for _, name := range names {
			row = append(row, posting(t, name))
		}
		rows = append(rows, row)
	}
	w.t.Table(header, rows, right...)
	b := w.balance
	w.t.Line("  balance: %s available, %s reserved, %s spent of %s granted", money(b.GetAvailable()), money(b.GetReserved()), money(b.GetSpent()), money(b.GetGranted()))
	for _, r := range w.receipts {
		for _, end := range r.GetEnds() {
			w.t.Line("  receipt of run %s: %s by epoch %d, total %s", r.GetRunId(), end.GetOutcome(), end.GetEpoch(), money(r.GetTotal()))
		}
		for _, l := range r.GetLines() {
			w.t.Line("    attempt %s: %s, %s reserved, %s settled, %s", shortID(l.GetAttemptId()), l.GetState(), money(l.GetReserved()), money(l.GetSettled()), l.GetOutcome())
		}
	}
}

// posting is what a transfer did to an account, empty where it is not touched.
func posting(t *ledgerv1.Transfer, account string) string {
	for _, p := range t.GetPostings() {
		if p.GetAccount() == account {
			text := posted(t, account)
			if !strings.HasPrefix(text, "-") {
				text = "+" + text
			}
			return text
		}
	}
	return ""
}

// shortID is enough of a UUID to tell rows of one screen apart: its random end.
func shortID(id string) string {
	if len(id) <= 12 {
		return id
	}
	return "…" + id[len(id)-12:]
}

// showDecisions answers why.
func (w *walk) showDecisions() {
	w.t.Title("Why: the decisions on target " + w.page.GetTarget().GetTargetId())
	w.t.Line("  %s", view.Clean(w.page.GetAnswer()))
	w.t.Line("")
	var rows [][]string
	for _, d := range w.page.GetDecisions() {
		rows = append(rows, []string{
			w.since(timeOf(d.GetAt())), d.GetKind(), view.Clean(d.GetReason()),
			fmt.Sprint(d.GetGeneration()), fmt.Sprint(d.GetEpoch()), view.Clean(d.GetDetail()),
		})
	}
	w.t.Table([]string{"when", "decision", "reason", "generation", "epoch", "in words"}, rows, 0, 3, 4)
}

// showTrace draws the one trace.
func (w *walk) showTrace(trace []spans.Span) {
	w.t.Title("The one trace, " + w.delivery.GetTraceId())
	services, from, to := map[string]bool{}, time.Time{}, time.Time{}
	for i, s := range trace {
		services[s.Service] = true
		if i == 0 {
			from = s.Start
		}
		if s.End.After(to) {
			to = s.End
		}
	}
	w.t.Line("  %d spans of %d services in %s; a call and its answering half share a row\n", len(trace), len(services), view.Took(to.Sub(from)))
	w.t.Waterfall(trace)
}
