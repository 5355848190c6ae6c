package e2e

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	ingestv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ingest/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

// rests sets how long a target must rest before its lifecycle ends, and starts the scheduler anew.
func (w *world) rests(retention string) {
	w.Helper()
	w.env["scheduler"]["SCHEDULER_RETENTION_LIFECYCLE"] = retention
	w.env["scheduler"]["SCHEDULER_PURGE_EVERY"] = "200ms"
	w.crash("scheduler")
	w.up("scheduler")
}

// replay records the activity of the first delivery that had any again, as an operator.
func (w *world) replay(key string) {
	w.Helper()
	deliveries := ingestv1.NewDeliveryServiceClient(w.conn("ingest"))
	list, err := deliveries.ListDeliveries(w.Context(), &ingestv1.ListDeliveriesRequest{Decision: "trigger_review"})
	if err != nil || len(list.GetDeliveries()) == 0 {
		w.Fatalf("%d deliveries, %v", len(list.GetDeliveries()), err)
	}
	_, err = deliveries.ReplayDelivery(w.Context(), &ingestv1.ReplayDeliveryRequest{
		ReceiptId: list.GetDeliveries()[0].GetReceiptId(), IdempotencyKey: key,
	})
	if err != nil {
		w.Fatal(err)
	}
}

// reviewedAt waits until the target rests with a result of the lifecycle and generation.
func (w *world) reviewedAt(lifecycle, generation int64) *schedulerv1.Target {
	w.Helper()
	var at *schedulerv1.Target
	eventually(w.T, fmt.Sprintf("a review in lifecycle %d", lifecycle), func() error {
		t, err := w.target()
		switch {
		case err != nil:
			return err
		case t.GetLifecycle() != lifecycle || t.GetGeneration() != generation || t.GetResolvedGeneration() != generation:
			return fmt.Errorf("%v", t)
		case t.GetDueAt() != nil || t.GetClaimed() || t.GetPage() != "result" || t.GetDelivery() != "delivered":
			return fmt.Errorf("%v", t)
		}
		at = t
		return nil
	})
	return at
}

// TestTheSameRevisionInTheNextLifecycle reviews a pull request, asks again within its lifecycle, lets the
// lifecycle end, and asks once more: the result is reused as long as it is kept, and then the same revision is
// reviewed and paid anew, shown in the one comment that was there.
func TestTheSameRevisionInTheNextLifecycle(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	first := w.atRest()
	before := w.oneReview(first, opened.Pull.Number, opened.Pull.HeadSHA)

	w.replay("within")
	again := w.reviewedAt(1, 2)
	if got := w.started(again); got != 1 || again.GetRunId() != first.GetRunId() {
		t.Fatalf("%d engine calls for run %s, want the result of %s reused", got, again.GetRunId(), first.GetRunId())
	}
	spent := w.settled(again.GetTenant()).GetSpent().GetMicros()

	w.rests("1s")
	eventually(t, "the lifecycle and all that is kept of it end", func() error {
		at, err := w.target()
		if err != nil {
			return err
		}
		kept := w.count(`SELECT (SELECT count(*) FROM scheduler.runs) + (SELECT count(*) FROM reviewer.attempts) + (SELECT count(*) FROM reviewer.findings)
			+ (SELECT count(*) FROM publisher.epochs) + (SELECT count(*) FROM publisher.intents)
			+ (SELECT count(*) FROM ledger.reservations) + (SELECT count(*) FROM ledger.receipts) + (SELECT count(*) FROM ledger.receipt_ends)`)
		if at.GetLifecycle() != 2 || kept != 0 {
			return fmt.Errorf("lifecycle %d, %d rows are kept", at.GetLifecycle(), kept)
		}
		return nil
	})
	if kinds := w.transfers(again.GetTenant()); kinds["opening"] != 1 || kinds["grant"] != 1 || len(kinds) != 2 {
		t.Errorf("transfers %v, want the grant, and one opening transfer for the rest", kinds)
	}
	if got := w.settled(again.GetTenant()).GetSpent().GetMicros(); got != spent {
		t.Errorf("%d spent, was %d", got, spent)
	}
	w.atPeace()
	w.rests("0s") // rest as long as it takes, from now on

	w.replay("after")
	next := w.reviewedAt(2, 3)
	if next.GetRunId() == first.GetRunId() || next.GetEpoch() <= again.GetEpoch() {
		t.Fatalf("run %s and epoch %d, want others than %s and %d", next.GetRunId(), next.GetEpoch(), first.GetRunId(), again.GetEpoch())
	}
	if got := w.started(next); got != 1 {
		t.Errorf("%d engine calls in the next lifecycle, want 1", got)
	}
	if got := w.settled(next.GetTenant()).GetSpent().GetMicros(); got != 2*spent {
		t.Errorf("%d spent, want %d: the revision was reviewed twice", got, 2*spent)
	}
	w.atPeace()
	after, err := onlyComment(w.page(opened.Pull.Number, opened.Pull.HeadSHA))
	if err != nil || after.ID != before.comments[0].ID || len(after.History) < 2 {
		t.Errorf("comment %d with %d versions, %v; want %d edited", after.ID, len(after.History), err, before.comments[0].ID)
	}
	w.handled("comments.create", 1)
}

// TestReplayAfterThePurge sends a captured delivery again after its receipt and its message are past retention: it is
// taken, and reviewed by nobody.
func TestReplayAfterThePurge(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	at := w.atRest()
	w.oneReview(at, opened.Pull.Number, opened.Pull.HeadSHA)
	w.exec(`DELETE FROM ingest.deliveries`)
	w.exec(`DELETE FROM ingest.outbox`)
	if _, err := w.ctl.SendDelivery(t.Context(), opened.Deliveries[0].GUID, control.Resend{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the delivery is told again", func() error {
		return w.some(`SELECT count(*) FROM ingest.outbox WHERE destination LIKE '%/RecordActivity' AND dispatched_at IS NOT NULL`)
	})
	again := w.atRest()
	w.oneReview(again, opened.Pull.Number, opened.Pull.HeadSHA)
	if again.GetGeneration() != at.GetGeneration() || again.GetEpoch() != at.GetEpoch() || w.started(again) != 1 {
		t.Errorf("generation %d, epoch %d, %d engine calls; were %d, %d and 1", again.GetGeneration(), again.GetEpoch(), w.started(again), at.GetGeneration(), at.GetEpoch())
	}
}

func onlyComment(p page) (control.Comment, error) {
	if len(p.comments) != 1 {
		return control.Comment{}, errors.New("more or less than one comment")
	}
	return p.comments[0], nil
}
