package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	typev1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/type/v1"
)

func (w *walk) reserved(ctx context.Context) error {
	t, err := w.transfer(ctx, "reserve", "the reservation of the attempt's maximum cost")
	if err != nil {
		return err
	}
	w.happened("reservation", "ledger", timeOf(t.GetAt()), "%s held for attempt %s", posted(t, "reserved"), t.GetAttemptId())
	return nil
}

// transfer waits for a transfer of the run.
func (w *walk) transfer(ctx context.Context, kind, what string) (found *ledgerv1.Transfer, err error) {
	err = w.await(ctx, what, func(ctx context.Context) (bool, error) {
		res, err := w.from.accounts.ListTransfers(ctx, &ledgerv1.ListTransfersRequest{Tenant: w.delivery.GetTenant(), RunId: w.run.GetRunId()})
		if err != nil {
			return false, err
		}
		for _, t := range res.GetTransfers() {
			if t.GetKind() == kind {
				found = t
				return true, nil
			}
		}
		return false, w.refused(ctx)
	})
	return found, err
}

// refused notices a run that gets no result while something of it is waited for.
func (w *walk) refused(ctx context.Context) error {
	if err := w.look(ctx); err != nil {
		return err
	}
	return w.ended()
}

func (w *walk) attempt(ctx context.Context, what string, yes func(*reviewerv1.Attempt) bool) (found *reviewerv1.Attempt, err error) {
	err = w.await(ctx, what, func(ctx context.Context) (bool, error) {
		res, err := w.from.reviews.ListAttempts(ctx, &reviewerv1.ListAttemptsRequest{Tenant: w.delivery.GetTenant(), RunId: w.run.GetRunId()})
		if err != nil {
			return false, err
		}
		w.attempts = res.GetAttempts()
		for _, a := range w.attempts {
			if yes(a) {
				found = a
				return true, nil
			}
		}
		return false, w.refused(ctx)
	})
	return found, err
}

func (w *walk) started(ctx context.Context) error {
	a, err := w.attempt(ctx, "the start of the attempt", func(a *reviewerv1.Attempt) bool { return a.GetStartedAt() != nil })
	if err != nil {
		return err
	}
	w.happened("attempt", "reviewer", timeOf(a.GetStartedAt()), "attempt %d of the run started, engine %s", a.GetNumber(), a.GetEngine())
	return nil
}

func (w *walk) finished(ctx context.Context) error {
	a, err := w.attempt(ctx, "the engine's result", func(a *reviewerv1.Attempt) bool {
		return a.GetState() == reviewerv1.AttemptState_ATTEMPT_STATE_FINISHED
	})
	if err != nil {
		return err
	}
	if err := w.readFindings(ctx, a.GetAttemptId()); err != nil {
		return err
	}
	w.happened("result", "reviewer", timeOf(a.GetEndedAt()), "%s in %d bytes of diff, measured cost %s", count(len(w.findings), "finding"), a.GetDiffBytes(), money(a.GetCost()))
	for _, rule := range w.rules {
		if !slices.ContainsFunc(w.findings, func(f *reviewerv1.Finding) bool { return f.GetRule() == rule }) {
			return fmt.Errorf("the engine did not find what breaks the rule %s in the made repository", rule)
		}
	}
	return nil
}

func (w *walk) readFindings(ctx context.Context, attempt string) error {
	req := &reviewerv1.ListFindingsRequest{Tenant: w.delivery.GetTenant(), AttemptId: attempt, PageSize: 1000}
	for {
		res, err := w.from.reviews.ListFindings(ctx, req)
		if err != nil {
			return fmt.Errorf("read the findings of attempt %s: %w", attempt, err)
		}
		w.findings, w.omitted = append(w.findings, res.GetFindings()...), append(w.omitted, res.GetOmissions()...)
		if req.PageToken = res.GetNextPageToken(); req.GetPageToken() == "" {
			return nil
		}
	}
}

func (w *walk) accepted(ctx context.Context) error {
	if err := w.decided(ctx, "the fenced result at the scheduler", "accepted", "reused"); err != nil {
		return err
	}
	d := w.decision("accepted", "reused")
	w.happened("epoch", "scheduler", timeOf(d.GetAt()), "fence held, result %s: epoch %d says what the page should show", d.GetKind(), d.GetEpoch())
	return nil
}

func (w *walk) settled(ctx context.Context) error {
	t, err := w.transfer(ctx, "settle", "the settlement")
	if err != nil {
		return err
	}
	w.happened("settlement", "ledger", timeOf(t.GetAt()), "%s spent, %s back", posted(t, "spent"), posted(t, "available"))
	return nil
}

func (w *walk) intended(ctx context.Context) error {
	err := w.await(ctx, "the publisher's intents", func(ctx context.Context) (bool, error) {
		err := w.readIntents(ctx) // what is said before there is a result may come first, or last
		return slices.ContainsFunc(w.intents, func(i *publisherv1.Intent) bool { return i.GetKind() == "result" }), err
	})
	if err != nil {
		return err
	}
	for _, i := range w.intents {
		w.happened("intent", "publisher", timeOf(i.GetCreatedAt()), "%s", i.GetKey())
	}
	return nil
}

func (w *walk) readIntents(ctx context.Context) error {
	res, err := w.from.intents.ListIntents(ctx, &publisherv1.ListIntentsRequest{
		Tenant: w.delivery.GetTenant(), TargetId: w.page.GetTarget().GetTargetId(),
	})
	w.intents = res.GetIntents()
	slices.SortStableFunc(w.intents, func(a, b *publisherv1.Intent) int { return timeOf(a.GetCreatedAt()).Compare(timeOf(b.GetCreatedAt())) })
	return err
}

func (w *walk) commented(ctx context.Context) error {
	err := w.await(ctx, "the comment on GitHub", func(ctx context.Context) (bool, error) {
		var err error
		w.comments, err = w.stack.GitHub().Comments(ctx, w.repo.ID, w.pull.Number)
		return len(w.comments) > 0, err
	})
	if err != nil {
		return err
	}
	c := w.comments[0]
	w.happened("comment", "github", c.CreatedAt, "%s by %s", c.HTMLURL, c.Author.Login)
	return nil
}

func (w *walk) checked(ctx context.Context) error {
	var check control.CheckRun
	err := w.await(ctx, "the conclusion of the check run", func(ctx context.Context) (bool, error) {
		var err error
		w.checks, err = w.stack.GitHub().CheckRuns(ctx, w.repo.ID, w.pull.HeadSHA)
		for _, c := range w.checks {
			if c.Status == "completed" {
				check = c
			}
		}
		return check.ID != 0, err
	})
	if err != nil {
		return err
	}
	at := time.Now()
	if check.CompletedAt != nil {
		at = *check.CompletedAt
	}
	w.happened("check run", "github", at, "%s on %.12s: %s, %q", check.Name, check.HeadSHA, check.Conclusion, check.Title)
	return nil
}

func (w *walk) published(ctx context.Context) error {
	err := w.await(ctx, "the scheduler to hear that the page is delivered", func(ctx context.Context) (bool, error) {
		if err := w.look(ctx); err != nil {
			return false, err
		}
		if d := w.decision("not_published"); d != nil {
			return false, fmt.Errorf("the page was not published: %s, %s", d.GetReason(), d.GetDetail())
		}
		return w.decision("published") != nil, nil
	})
	if err != nil {
		return err
	}
	d := w.decision("published")
	w.happened("published", "scheduler", timeOf(d.GetAt()), "epoch %d is delivered", d.GetEpoch())
	return nil
}

func (w *walk) receipted(ctx context.Context) error {
	err := w.await(ctx, "the credit receipt", func(ctx context.Context) (bool, error) {
		res, err := w.from.accounts.ListReceipts(ctx, &ledgerv1.ListReceiptsRequest{Tenant: w.delivery.GetTenant(), RunId: w.run.GetRunId()})
		w.receipts = res.GetReceipts()
		return len(w.receipts) > 0 && w.receipts[0].GetComplete(), err
	})
	if err != nil {
		return err
	}
	r := w.receipts[0]
	w.happened("credit", "ledger", timeOf(r.GetIssuedAt()), "receipt of the run complete: %s, %s", money(r.GetTotal()), count(len(r.GetLines()), "attempt"))
	return nil
}

// posted is what a transfer moved into one account.
func posted(t *ledgerv1.Transfer, account string) string {
	var sum int64
	for _, p := range t.GetPostings() {
		if p.GetAccount() == account {
			sum += p.GetAmount().GetMicros()
		}
	}
	return money(&typev1.Money{Micros: sum})
}

// money writes micro-units as units, with the digits that there are.
func money(m *typev1.Money) string {
	micros, sign := m.GetMicros(), ""
	if micros < 0 {
		micros, sign = -micros, "-"
	}
	return fmt.Sprintf("%s%d.%06d", sign, micros/1_000_000, micros%1_000_000)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
