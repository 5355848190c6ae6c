package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	schedulerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/scheduler/v1"
)

// change pushes a head that differs from every other.
func (w *world) change(n int, webhook control.WebhookMode) control.Pushed {
	w.Helper()
	return w.push("change", map[string]string{"notes.txt": fmt.Sprintf("%sversion %d\n", conflicted, n)}, webhook)
}

// heard waits until the scheduler has the generation.
func (w *world) heard(generation int64) {
	w.Helper()
	eventually(w.T, fmt.Sprintf("generation %d", generation), func() error {
		at, err := w.target()
		if err == nil && at.GetGeneration() < generation {
			err = errors.New("not yet")
		}
		return err
	})
}

// TestTenPushesWithinTheQuietWindow pays for one review, of the last of them.
func TestTenPushesWithinTheQuietWindow(t *testing.T) {
	w := newWorld(t)
	w.env["scheduler"]["SCHEDULER_QUIET"] = "1500ms"
	w.env["scheduler"]["SCHEDULER_MAX_WAIT"] = "1m"
	w.up()
	w.repository()
	opened := w.open(control.Send)
	var last control.Pushed
	for n := range 10 {
		last = w.change(n, control.Send)
	}
	eventually(t, "the last head is shown", func() error { return w.shows(last.After) })
	at := w.atRest()
	w.oneReview(at, opened.Pull.Number, last.After)
	if got := w.started(at); got != 1 {
		t.Errorf("%d engine calls for ten pushes in a row, want 1", got)
	}
	w.handled("comments.create", 1)
}

// TestPushesDeliveredInReverse delivers three pushes, the last one first: the head that is there is shown.
func TestPushesDeliveredInReverse(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
	var pushes []control.Pushed
	for n := range 3 {
		pushes = append(pushes, w.change(n, control.Hold))
	}
	for _, p := range slices.Backward(pushes) {
		d := p.Deliveries[slices.IndexFunc(p.Deliveries, func(d control.Delivery) bool { return d.Event == "pull_request" })]
		if _, err := w.ctl.SendDelivery(t.Context(), d.GUID, control.Resend{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the last head is shown", func() error { return w.shows(pushes[2].After) })
	w.oneReview(w.atRest(), opened.Pull.Number, pushes[2].After)
}

// TestBackAndForthBeforeAnybodyLooks pushes B and goes back to A within the quiet window.
func TestBackAndForthBeforeAnybodyLooks(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	a := opened.Pull.HeadSHA
	w.oneReview(w.atRest(), opened.Pull.Number, a)
	w.change(1, control.Send)
	if _, err := w.ctl.Push(t.Context(), w.repo.ID, control.Push{Branch: "change", SHA: a, Force: true}); err != nil {
		t.Fatal(err)
	}
	w.heard(2)
	eventually(t, "A is shown", func() error { return w.shows(a) })
	w.oneReview(w.atRest(), opened.Pull.Number, a)
}

// TestPushBetweenAcceptAndPublish moves the head when a result is accepted and not published yet: it is
// never shown.
func TestPushBetweenAcceptAndPublish(t *testing.T) {
	w := newWorld(t)
	held := newGate()
	w.proxies["publisher"].fault(publishEpoch, held.before)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	wait(t, "an epoch is to be published", held.reached)
	pushed := w.change(1, control.Send)
	w.heard(2)
	w.proxies["publisher"].fault(publishEpoch, nil)
	held.release()
	eventually(t, "the new head is shown", func() error { return w.shows(pushed.After) })
	p := w.oneReview(w.atRest(), opened.Pull.Number, pushed.After)
	if strings.Contains(p.comments[0].History[0].Body, opened.Pull.HeadSHA[:7]) {
		t.Errorf("the old head was shown:\n%s", p.comments[0].History[0].Body)
	}
}

// TestPushBetweenCheckAndPost moves the head when the publisher has asked and read everything and its
// post is on the way: what is posted is corrected.
func TestPushBetweenCheckAndPost(t *testing.T) {
	w := newWorld(t)
	w.fault(control.Fault{Class: "comments.create", Times: 1, Delay: control.Duration(time.Second)})
	w.up()
	w.repository()
	opened := w.open(control.Send)
	w.called("comments.create")
	pushed := w.change(1, control.Send)
	eventually(t, "the new head is shown", func() error { return w.shows(pushed.After) })
	w.oneReview(w.atRest(), opened.Pull.Number, pushed.After)
	w.handled("comments.create", 1)
}

// called waits until GitHub has seen a call.
func (w *world) called(class string) {
	w.Helper()
	eventually(w.T, "a call of "+class, func() error {
		seen, err := w.ctl.Requests(w.Context(), control.RequestFilter{Class: class})
		if err == nil && len(seen) == 0 {
			err = errors.New("none")
		}
		return err
	})
}

// TestClosedWhilePublishing closes the pull request when its result is accepted and not published:
// nothing is posted. Reopened, it is shown without another engine call.
func TestClosedWhilePublishing(t *testing.T) {
	w := newWorld(t)
	held := newGate()
	w.proxies["publisher"].fault(publishEpoch, held.before)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	wait(t, "an epoch is to be published", held.reached)
	n := opened.Pull.Number
	if _, err := w.ctl.Act(t.Context(), w.repo.ID, n, control.Act{Action: control.Close}); err != nil {
		t.Fatal(err)
	}
	w.heard(2)
	w.proxies["publisher"].fault(publishEpoch, nil)
	held.release()
	at := w.ended()
	w.atPeace()
	p := w.page(n, opened.Pull.HeadSHA)
	if len(p.comments) != 0 || at.GetState() != schedulerv1.PullRequestState_PULL_REQUEST_STATE_CLOSED {
		t.Fatalf("closed: %d comments, %v", len(p.comments), at)
	}
	for _, c := range p.checks { // what it waited for did not come
		if c.Status != "completed" || c.Conclusion != "neutral" {
			t.Errorf("closed: the check run is %s, %s", c.Status, c.Conclusion)
		}
	}
	if _, err := w.ctl.Act(t.Context(), w.repo.ID, n, control.Act{Action: control.Reopen}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the head is shown", func() error { return w.shows(opened.Pull.HeadSHA) })
	at = w.atRest()
	w.oneReview(at, n, opened.Pull.HeadSHA)
	if got := w.started(at); got != 1 {
		t.Errorf("%d engine calls, want 1", got)
	}
}

// TestClosedByMergeLeavesTheComment merges: what was posted stays as it is.
func TestClosedByMergeLeavesTheComment(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	n := opened.Pull.Number
	before := w.oneReview(w.atRest(), n, opened.Pull.HeadSHA)
	if _, err := w.ctl.Act(t.Context(), w.repo.ID, n, control.Act{Action: control.Merge}); err != nil {
		t.Fatal(err)
	}
	w.heard(2)
	w.atRest()
	w.atPeace()
	if after := w.page(n, opened.Pull.HeadSHA); len(after.comments) != 1 || after.comments[0].Body != before.comments[0].Body {
		t.Errorf("the comment changed: %+v", after.comments)
	}
}

// TestRetargeted moves the pull request to another base: another comparison, shown in the same comment.
func TestRetargeted(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	w.push("release", map[string]string{"VERSION": "1\n"}, control.None)
	opened := w.open(control.Send)
	n := opened.Pull.Number
	first := w.atRest()
	w.oneReview(first, n, opened.Pull.HeadSHA)
	if _, err := w.ctl.Act(t.Context(), w.repo.ID, n, control.Act{Action: control.Retarget, Base: "release"}); err != nil {
		t.Fatal(err)
	}
	w.heard(2)
	at := w.atRest()
	if at.GetBaseRef() != "release" || at.GetEpoch() <= first.GetEpoch() {
		t.Errorf("base %s, epoch %d after %d", at.GetBaseRef(), at.GetEpoch(), first.GetEpoch())
	}
	w.atPeace()
	if p := w.page(n, opened.Pull.HeadSHA); len(p.comments) != 1 || !strings.Contains(p.comments[0].Body, "`release`") {
		t.Errorf("the comment does not name the base: %+v", p.comments)
	}
}
