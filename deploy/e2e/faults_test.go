package e2e

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/pkg/redistest"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

// TestLostAnswersOfEveryCallOnThePath does every call between two services once without its answer: what
// has taken effect takes effect once.
func TestLostAnswersOfEveryCallOnThePath(t *testing.T) {
	w := newWorld(t)
	for service, methods := range map[string][]string{
		"scheduler": {
			schedulerv1.SchedulerService_RecordActivity_FullMethodName, schedulerv1.SchedulerService_ResolveRun_FullMethodName,
			schedulerv1.SchedulerService_RenewLease_FullMethodName, schedulerv1.SchedulerService_CommitResult_FullMethodName,
			schedulerv1.SchedulerService_CheckCurrent_FullMethodName, schedulerv1.SchedulerService_RecordPublication_FullMethodName,
		},
		"ledger": {
			ledgerv1.LedgerService_Reserve_FullMethodName, ledgerv1.LedgerService_Settle_FullMethodName, ledgerv1.LedgerService_IssueReceipt_FullMethodName,
		},
		"reviewer":  {reviewerv1.ReviewerService_ListFindings_FullMethodName},
		"publisher": {publisherv1.PublisherService_PublishEpoch_FullMethodName},
	} {
		for _, m := range methods {
			w.proxies[service].fault(m, loseAnswers(1))
		}
	}
	w.up()
	w.repository()
	opened := w.open(control.Send)
	at := w.atRest()
	w.oneReview(at, opened.Pull.Number, opened.Pull.HeadSHA)
	if got := w.started(at); got != 1 {
		t.Errorf("%d engine calls, want 1", got)
	}
	if kinds := w.transfers(at.GetTenant()); kinds["settle"] != 1 {
		t.Errorf("transfers %v, want one settlement", kinds)
	}
}

// TestLostAnswerOfAClaim loses the answer that gave a target out: nobody works on it until the lease has
// lapsed, then it is reviewed.
func TestLostAnswerOfAClaim(t *testing.T) {
	w := newWorld(t)
	w.env["scheduler"]["SCHEDULER_LEASE"] = "1s"
	lost := false
	w.proxies["scheduler"].fault(schedulerv1.SchedulerService_ClaimTargets_FullMethodName, loseFirstFull(&lost))
	w.up()
	w.repository()
	opened := w.open(control.Send)
	at := w.atRest()
	w.oneReview(at, opened.Pull.Number, opened.Pull.HeadSHA)
	w.explained(at, "lapsed", "accepted")
}

// TestSameDeliveryManyTimes sends one delivery ten times at once, and later again.
func TestSameDeliveryManyTimes(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Hold)
	guid := opened.Deliveries[0].GUID
	for range 2 {
		if _, err := w.ctl.SendDelivery(t.Context(), guid, control.Resend{Copies: 10}); err != nil {
			t.Fatal(err)
		}
	}
	d, err := w.ctl.WaitDelivery(t.Context(), guid, 20)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range d.Attempts {
		if a.StatusCode != 200 {
			t.Errorf("an attempt was answered %d: %s", a.StatusCode, a.Response)
		}
	}
	at := w.atRest()
	w.oneReview(at, opened.Pull.Number, opened.Pull.HeadSHA)
	if at.GetGeneration() != 1 {
		t.Errorf("generation %d after one delivery", at.GetGeneration())
	}
}

// TestDispatcherDiesAfterSendingAndBeforeMarking kills ingest when the scheduler has recorded the
// activity and ingest has not heard of it: it is sent again, and recorded once.
func TestDispatcherDiesAfterSendingAndBeforeMarking(t *testing.T) {
	w := newWorld(t)
	sent := make(chan struct{})
	method := schedulerv1.SchedulerService_RecordActivity_FullMethodName
	w.proxies["scheduler"].fault(method, afterSend(sent))
	w.up()
	w.repository()
	opened := w.open(control.Send)
	wait(t, "the activity is recorded", sent)
	w.crash("ingest")
	w.proxies["scheduler"].fault(method, nil)
	w.up("ingest")
	at := w.atRest()
	w.oneReview(at, opened.Pull.Number, opened.Pull.HeadSHA)
	eventually(t, "the activity is sent again", func() error {
		if n := w.proxies["scheduler"].count(method); n < 2 {
			return fmt.Errorf("sent %d times", n)
		}
		return nil
	})
	if at.GetGeneration() != 1 {
		t.Errorf("generation %d after one activity", at.GetGeneration())
	}
}

// TestWorkerKilledAfterTheEngineReturned kills the reviewer between its finished attempt and the commit
// of its result: the next claim adopts the attempt. One engine call, one comment, one settlement.
func TestWorkerKilledAfterTheEngineReturned(t *testing.T) {
	w := newWorld(t)
	w.env["scheduler"]["SCHEDULER_LEASE"] = "2s"
	held := newGate()
	commit := schedulerv1.SchedulerService_CommitResult_FullMethodName
	w.proxies["scheduler"].fault(commit, held.before)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	wait(t, "the result is about to be committed", held.reached)
	w.crash("reviewer")
	w.proxies["scheduler"].fault(commit, nil)
	w.up("reviewer")
	at := w.atRest()
	w.oneReview(at, opened.Pull.Number, opened.Pull.HeadSHA)
	if got := w.started(at); got != 1 {
		t.Errorf("%d engine calls, want 1: the finished attempt is adopted", got)
	}
	if kinds := w.transfers(at.GetTenant()); kinds["reserve"] != 1 || kinds["settle"] != 1 {
		t.Errorf("transfers %v, want one reservation and one settlement", kinds)
	}
	w.explained(at, "lapsed", "accepted")
}

// TestWorkerPausedPastItsLease stops a worker with its finished result until another has taken over; what
// it commits then is fenced, settled and not published a second time.
func TestWorkerPausedPastItsLease(t *testing.T) {
	w := newWorld(t)
	w.env["scheduler"]["SCHEDULER_LEASE"] = "2s"
	held := newGate()
	commit := schedulerv1.SchedulerService_CommitResult_FullMethodName
	w.proxies["scheduler"].fault(commit, held.before)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	wait(t, "the result is about to be committed", held.reached)
	paused := w.procs["reviewer"]
	paused.signal(t, syscall.SIGSTOP)
	w.proxies["scheduler"].fault(commit, nil)
	w.up("reviewer") // another replica
	w.atRest()
	paused.signal(t, syscall.SIGCONT)
	held.release() // the paused worker's commit arrives now
	eventually(t, "the late commit was answered", func() error {
		if n := w.proxies["scheduler"].count(commit); n < 2 {
			return fmt.Errorf("%d commits", n)
		}
		return nil
	})
	at := w.atRest()
	w.oneReview(at, opened.Pull.Number, opened.Pull.HeadSHA)
	if kinds := w.transfers(at.GetTenant()); kinds["settle"] != 1 {
		t.Errorf("transfers %v, want one settlement", kinds)
	}
	if at.GetEpoch() != 1 {
		t.Errorf("epoch %d: the late commit changed the page", at.GetEpoch())
	}
}

// TestPushDuringTheEngine moves the head while a result is on its way: the old one is settled and never
// shown, the new one is.
func TestPushDuringTheEngine(t *testing.T) {
	w := newWorld(t)
	held := newGate()
	commit := schedulerv1.SchedulerService_CommitResult_FullMethodName
	w.proxies["scheduler"].fault(commit, held.before)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	wait(t, "the result is about to be committed", held.reached)
	pushed := w.push("change", map[string]string{"notes.txt": conflicted + "more\n"}, control.Send)
	eventually(t, "the push is heard", func() error {
		at, err := w.target()
		if err == nil && at.GetGeneration() < 2 {
			err = errors.New("not yet")
		}
		return err
	})
	w.proxies["scheduler"].fault(commit, nil)
	held.release()
	at := w.atRest()
	p := w.oneReview(at, opened.Pull.Number, pushed.After)
	for _, v := range p.comments[0].History {
		if strings.Contains(v.Body, opened.Pull.HeadSHA[:7]) && !strings.Contains(v.Body, pushed.After[:7]) {
			t.Errorf("the old head was shown:\n%s", v.Body)
		}
	}
	for _, c := range w.page(opened.Pull.Number, opened.Pull.HeadSHA).checks {
		if c.Status != "completed" || c.Conclusion != "neutral" || !strings.Contains(c.Summary, pushed.After[:7]) {
			t.Errorf("the old head's check run does not say what took its place: %+v", c)
		}
	}
}

// TestClosedArrivesAfterReopened delivers a close after the reopening that followed it: the read decides.
func TestClosedArrivesAfterReopened(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Hold)
	closed := w.act(opened.Pull.Number, control.Close)
	reopened := w.act(opened.Pull.Number, control.Reopen)
	for _, d := range []control.Delivery{opened.Deliveries[0], reopened, closed} {
		if _, err := w.ctl.SendDelivery(t.Context(), d.GUID, control.Resend{}); err != nil {
			t.Fatal(err)
		}
	}
	at := w.atRest()
	w.oneReview(at, opened.Pull.Number, opened.Pull.HeadSHA)
	if at.GetState() != schedulerv1.PullRequestState_PULL_REQUEST_STATE_OPEN {
		t.Errorf("state %v, want open", at.GetState())
	}
}

// TestReturnToAReviewedHead goes from A to B and back: A is published again, and its engine not called
// again.
func TestReturnToAReviewedHead(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	a := opened.Pull.HeadSHA
	w.oneReview(w.atRest(), opened.Pull.Number, a)
	b := w.push("change", map[string]string{"notes.txt": conflicted + "more\n"}, control.Send)
	eventually(t, "B is shown", func() error { return w.shows(b.After) })
	w.oneReview(w.atRest(), opened.Pull.Number, b.After)
	if _, err := w.ctl.Push(t.Context(), w.repo.ID, control.Push{Branch: "change", SHA: a, Force: true}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "A is shown again", func() error { return w.shows(a) })
	at := w.atRest()
	w.oneReview(at, opened.Pull.Number, a)
	if got := w.started(at); got != 2 {
		t.Errorf("%d engine calls, want 2: A's result is reused", got)
	}
	w.explained(at, "accepted", "accepted", "reused")
}

// TestRedisAwayForTheWholeWalk has no doorbell at all: the scan finds the work.
func TestRedisAwayForTheWholeWalk(t *testing.T) {
	w := newWorld(t)
	server := redistest.Server(t)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	w.redis = server.Addr()
	w.up()
	w.repository()
	opened := w.open(control.Send)
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
}

// TestPublisherKilledAfterThePost kills the publisher when GitHub has the comment and the publisher has
// not heard of it: it finds the comment by its marker.
func TestPublisherKilledAfterThePost(t *testing.T) {
	w := newWorld(t)
	w.fault(control.Fault{Class: "comments.create", Times: 1, Lose: control.LoseHang})
	w.up()
	w.repository()
	opened := w.open(control.Send)
	eventually(t, "the comment is posted", func() error {
		if n := len(w.page(opened.Pull.Number, opened.Pull.HeadSHA).comments); n != 1 {
			return fmt.Errorf("%d comments", n)
		}
		return nil
	})
	w.crash("publisher")
	w.up("publisher")
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
	w.writes("comments.create", 1)
}

// TestLostAnswersOfThePosts loses GitHub's answers to the comment and to the check run.
func TestLostAnswersOfThePosts(t *testing.T) {
	w := newWorld(t)
	w.fault(control.Fault{Class: "comments.create", Times: 1, Lose: control.LoseClose})
	w.fault(control.Fault{Class: "checks.create", Times: 1, Lose: control.LoseClose})
	w.up()
	w.repository()
	opened := w.open(control.Send)
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
	w.writes("comments.create", 1)
	w.writes("checks.create", 1)
}

// TestReadsThatLag lets GitHub answer with the old head after a push: the hint is believed, and only the
// new head is reviewed.
func TestReadsThatLag(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
	w.fault(control.Fault{Class: "pulls.get", Times: 2, Stale: &control.StaleFault{Age: control.Duration(time.Hour)}})
	pushed := w.push("change", map[string]string{"notes.txt": conflicted + "more\n"}, control.Send)
	eventually(t, "the new head is shown", func() error { return w.shows(pushed.After) })
	at := w.atRest()
	w.oneReview(at, opened.Pull.Number, pushed.After)
	if got := w.started(at); got != 2 {
		t.Errorf("%d engine calls, want 2", got)
	}
}

// TestEveryServiceKilledInTurn crashes and restarts each service once while a pull request is on its way.
func TestEveryServiceKilledInTurn(t *testing.T) {
	w := newWorld(t)
	w.env["scheduler"]["SCHEDULER_LEASE"] = "2s"
	w.up()
	w.repository()
	opened := w.open(control.Send)
	if d, err := w.ctl.WaitDelivery(t.Context(), opened.Deliveries[0].GUID, 1); err != nil || !d.Answered() {
		t.Fatalf("the delivery was not taken: %+v, %v", d, err)
	}
	for _, s := range services {
		w.crash(s)
		w.up(s)
	}
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
}

func (w *world) fault(f control.Fault) {
	w.Helper()
	if _, err := w.ctl.AddFault(w.Context(), f); err != nil {
		w.Fatal(err)
	}
}

// writes checks how often a write reached GitHub.
func (w *world) writes(class string, want int) {
	w.Helper()
	seen, err := w.ctl.Requests(w.Context(), control.RequestFilter{Class: class})
	if err != nil {
		w.Fatal(err)
	}
	if len(seen) != want {
		w.Errorf("%d requests of %s, want %d", len(seen), class, want)
	}
}

func (w *world) act(number int, action control.PullAction) control.Delivery {
	w.Helper()
	done, err := w.ctl.Act(w.Context(), w.repo.ID, number, control.Act{Action: action, Options: control.Options{Webhook: control.Hold}})
	if err != nil {
		w.Fatal(err)
	}
	return done.Deliveries[0]
}

// shows says why the page does not show the head's result.
func (w *world) shows(sha string) error {
	at, err := w.target()
	if err == nil && (at.GetHeadSha() != sha || at.GetPage() != "result" || at.GetDelivery() != "delivered") {
		err = fmt.Errorf("page %s of %s is %s", at.GetPage(), at.GetHeadSha(), at.GetDelivery())
	}
	return err
}
