package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/deploy/local"
	"github.com/fenceline-dev/fenceline/deploy/local/view"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

// walk is one delivery on its way, watched from outside: by the services' read sides and by what the
// simulated GitHub knows to be true.
type walk struct {
	t     *view.Terminal
	stack *local.Stack
	from  *reads
	quiet time.Duration

	rules []string // that the review must find broken
	began time.Time
	steps []Step

	repo     control.Repository
	pull     control.Pull
	hook     control.Delivery
	delivery *ingestv1.Delivery
	page     *schedulerv1.ExplainTargetResponse // target, answer and decisions as last read
	run      *schedulerv1.Run
	runs     []*schedulerv1.Run
	attempts []*reviewerv1.Attempt
	findings []*reviewerv1.Finding
	omitted  []*reviewerv1.Omission
	intents  []*publisherv1.Intent
	moved    []*ledgerv1.Transfer
	receipts []*ledgerv1.Receipt
	balance  *ledgerv1.GetBalanceResponse
	comments []control.Comment
	checks   []control.CheckRun
	reviews  []control.Review
	statuses []control.Status
	requests []control.Request
}

// stages of the walk, in order. Each waits for what it names.
func (w *walk) stages() []func(context.Context) error {
	return []func(context.Context) error{
		w.answered, w.received, w.heard, w.due, w.claimed, w.resolved, w.reserved, w.started, w.finished,
		w.accepted, w.settled, w.receipted, w.intended, w.commented, w.checked, w.published,
	}
}

// open puts the repository and its pull request on the simulated GitHub.
func (w *walk) open(ctx context.Context, s source) error {
	sim := w.stack.GitHub()
	var err error
	if w.repo, err = sim.CreateRepository(ctx, s.create); err != nil {
		return fmt.Errorf("put the repository on the simulated GitHub: %w", err)
	}
	if _, err := sim.CreateInstallation(ctx, control.NewInstallation{Account: s.create.Owner}); err != nil {
		return fmt.Errorf("install the App on the simulated GitHub: %w", err)
	}
	// Ingest lists what a new repository has open. A pull request that is opened meanwhile would be told twice,
	// and reviewed in the listing's trace: rightly so, and no webhook's walk.
	if err := w.await(ctx, "ingest to look at the new repository", func(ctx context.Context) (bool, error) {
		listed, err := sim.Requests(ctx, control.RequestFilter{Class: "pulls.list"})
		return len(listed) > 0, err
	}); err != nil {
		return err
	}
	w.rules, w.began = s.rules, time.Now()
	opened, err := sim.OpenPull(ctx, w.repo.ID, control.OpenPull{Title: s.title, Head: s.head, Base: s.base})
	if err != nil {
		return fmt.Errorf("open the pull request on the simulated GitHub: %w", err)
	}
	w.pull = opened.Pull
	if len(opened.Deliveries) != 1 {
		return fmt.Errorf("opening the pull request raised %d deliveries, not one", len(opened.Deliveries))
	}
	w.hook = opened.Deliveries[0]
	w.happened("opened", "github", w.began, "pull request #%d of %s, %q", w.pull.Number, w.repo.FullName, w.pull.Title)
	w.more("%s (%.12s) into %s (%.12s)", w.pull.HeadRef, w.pull.HeadSHA, w.pull.BaseRef, w.pull.BaseSHA)
	return nil
}

func (w *walk) answered(ctx context.Context) error {
	w.t.Waiting("            … waiting for the webhook's answer")
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	hook, err := w.stack.GitHub().WaitDelivery(ctx, w.hook.GUID, 1)
	if err != nil {
		return fmt.Errorf("waiting for the webhook's answer: %w", err)
	}
	w.hook = hook
	a := hook.Attempts[0]
	if a.StatusCode != 200 {
		return fmt.Errorf("the webhook was answered %d (%s): %s", a.StatusCode, a.Status, strings.TrimSpace(a.Response))
	}
	w.happened("webhook", "github", a.At, "delivery %s signed and sent; ingest answers %d in %s",
		hook.GUID, a.StatusCode, view.Took(time.Duration(a.Duration)))
	return nil
}

func (w *walk) received(ctx context.Context) error {
	err := w.await(ctx, "the receipt of the delivery", func(ctx context.Context) (bool, error) {
		res, err := w.from.deliveries.GetDelivery(ctx, &ingestv1.GetDeliveryRequest{DeliveryId: w.hook.GUID})
		if err != nil || len(res.GetDeliveries()) == 0 {
			return false, err
		}
		w.delivery = res.GetDeliveries()[0]
		return true, nil
	})
	if err != nil {
		return err
	}
	d := w.delivery
	w.happened("receipt", "ingest", timeOf(d.GetReceivedAt()), "%s of %d bytes: %s, %s", d.GetReceiptId(), d.GetBytes(), d.GetDecision(), d.GetReason())
	w.more("tenant %s, trace %s", d.GetTenant(), d.GetTraceId())
	if d.GetTenant() == "" {
		return fmt.Errorf("the delivery was recorded without a tenant: %s, %s", d.GetDecision(), d.GetReason())
	}
	return nil
}

func (w *walk) heard(ctx context.Context) error {
	if err := w.decided(ctx, "the activity at the scheduler", "due", "coalesced"); err != nil {
		return err
	}
	d := w.decision("due", "coalesced")
	t := w.page.GetTarget()
	w.happened("activity", "scheduler", timeOf(d.GetAt()), "target %s, generation %d, due in %s", t.GetTargetId(), d.GetGeneration(), view.Took(w.quiet))
	return nil
}

func (w *walk) due(ctx context.Context) error {
	at := timeOf(w.decision("due", "coalesced").GetAt())
	if at.IsZero() {
		at = time.Now()
	}
	at = at.Add(w.quiet)
	err := w.await(ctx, "the quiet window to pass", func(context.Context) (bool, error) { return time.Now().After(at), nil })
	if err != nil {
		return err
	}
	w.happened("due", "scheduler", at, "nothing more was heard for %s: the doorbell rings", view.Took(w.quiet))
	return nil
}

func (w *walk) claimed(ctx context.Context) error {
	var claim string
	err := w.await(ctx, "a worker's claim", func(ctx context.Context) (bool, error) {
		if err := w.look(ctx); err != nil {
			return false, err
		}
		for _, d := range w.page.GetDecisions() {
			if d.GetClaimId() != "" {
				claim = d.GetClaimId()
			}
		}
		return claim != "" || w.page.GetTarget().GetClaimed(), nil
	})
	if err != nil {
		return err
	}
	t := w.page.GetTarget()
	if t.GetClaimed() {
		w.happened("claim", "reviewer", time.Now(), "worker %s holds the target, by a lease until %s", t.GetWorker(), clock(timeOf(t.GetLeaseUntil())))
		return nil
	}
	w.happened("claim", "reviewer", time.Now(), "claim %s, which has ended by now", claim)
	return nil
}

func (w *walk) resolved(ctx context.Context) error {
	if err := w.decided(ctx, "the run", "review", "reused"); err != nil {
		return err
	}
	d := w.decision("review", "reused")
	res, err := w.from.targets.GetRun(ctx, &schedulerv1.GetRunRequest{Tenant: w.delivery.GetTenant(), RunId: d.GetRunId()})
	if err != nil {
		return fmt.Errorf("read run %s: %w", d.GetRunId(), err)
	}
	w.run = res.GetRun()
	w.happened("run", "scheduler", timeOf(d.GetAt()), "%s, fence held", w.run.GetRunId())
	w.more("compares %.12s…%.12s, merge base %.12s", w.run.GetBaseSha(), w.run.GetHeadSha(), w.run.GetMergeBaseSha())
	return nil
}

// clock is a time of day, a dash where it is not told.
func clock(at time.Time) string {
	if at.IsZero() {
		return "—"
	}
	return at.Format("15:04:05 MST")
}

// look reads target and decisions.
func (w *walk) look(ctx context.Context) error {
	page, err := w.from.targets.ExplainTarget(ctx, &schedulerv1.ExplainTargetRequest{
		Which: &schedulerv1.ExplainTargetRequest_Query{Query: w.pull.HTMLURL},
	})
	if err == nil {
		w.page = page
	}
	return err
}

// decision is the latest of these kinds, nil where there is none.
func (w *walk) decision(kinds ...string) *schedulerv1.Decision {
	var found *schedulerv1.Decision
	for _, d := range w.page.GetDecisions() {
		for _, k := range kinds {
			if d.GetKind() == k {
				found = d
			}
		}
	}
	return found
}

// decided waits for a decision of these kinds, or for one after which none will come.
func (w *walk) decided(ctx context.Context, what string, kinds ...string) error {
	return w.await(ctx, what, func(ctx context.Context) (bool, error) {
		if err := w.look(ctx); err != nil {
			return false, err
		}
		return w.decision(kinds...) != nil, w.ended()
	})
}

// ended is an error once it was decided that there is nothing to show a result of.
func (w *walk) ended() error {
	if d := w.decision("skipped", "refused", "over_budget"); d != nil {
		return &endError{strings.TrimSuffix(fmt.Sprintf("decision %s, reason %s: %s", d.GetKind(), d.GetReason(), d.GetDetail()), ": ")}
	}
	return nil
}
