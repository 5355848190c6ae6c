package worker

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// summaryOf is what the epoch's comment says.
func summaryOf(e publisher.Epoch) string {
	return publisher.Work{Epoch: e}.Render(keys, publisher.Ref{Kind: publisher.SurfaceSummary}, publisher.Input{}).Body
}

// TestSecondCommentLivesForLessThanAMinute: the lookup after the grace did not show what was written, as GitHub's
// lists lag.
func TestSecondCommentLivesForLessThanAMinute(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	var lost atomic.Bool
	r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
		if done || req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/issues/5/comments") || lost.Swap(true) {
			return false
		}
		return drop(w)
	})
	r.publish(e)
	s := r.sender(r.store)
	r.settle(s)
	r.pass(20 * time.Second)
	r.settle(s)
	r.page(e)
	kept := r.gh.ours("5")[0].ID
	r.gh.place(botID, summaryOf(e)) // now it shows up
	r.pass(20 * time.Second)
	r.settle(s)
	r.page(e)
	if got := r.gh.ours("5")[0].ID; got != kept {
		t.Errorf("comment %d is left, want %d, which is stored", got, kept)
	}
	for range 3 { // no look is left after ten minutes
		r.pass(10 * time.Minute)
		r.settle(s)
	}
	if n := pgtest.Query[int](t, r.db, `SELECT count(*) FROM publisher.surfaces WHERE check_at IS NOT NULL`); n != 0 {
		t.Errorf("%d surfaces are looked at for ever", n)
	}
	if n := pgtest.Query[int](t, r.db, `SELECT count(*) FROM publisher.senders WHERE due_at IS NOT NULL`); n != 0 {
		t.Error("the sender is due")
	}
	if n := r.told("publication:"); n != 1 {
		t.Errorf("%d publications told, want 1", n)
	}
}

// TestAnOlderEpochThatLandedLateIsWrittenOver once the page is looked at, if what was delivered is current still.
func TestAnOlderEpochThatLandedLateIsWrittenOver(t *testing.T) {
	t.Parallel()
	for _, standing := range []publisher.Standing{publisher.Current, publisher.Superseded, publisher.Waiting} {
		r := newRig(t)
		target := publisher.TargetID(mint())
		first, second := r.epoch(target, 5, 1, "bbbb"), r.epoch(target, 5, 2, "cccc")
		s := r.sender(r.store)
		r.publish(first)
		r.settle(s)
		r.publish(second)
		r.settle(s)
		r.page(second)
		r.gh.mu.Lock()
		for id, c := range r.gh.comments {
			c.Body = summaryOf(first)
			r.gh.comments[id] = c
		}
		r.gh.mu.Unlock()
		r.sched.says = func(publisher.Epoch) publisher.Currency { return publisher.Currency{Standing: standing} }
		r.pass(11 * time.Minute)
		r.settle(s)
		want := first
		if standing == publisher.Current {
			want = second
		}
		r.page(want)
	}
}

// TestDuplicateReviewAndCheckRun lose their markers, since GitHub deletes neither.
func TestDuplicateReviewAndCheckRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.shows(s, e, "a")
	r.gh.mu.Lock()
	again := r.gh.reviews[0]
	r.gh.next++
	again.ID = r.gh.next
	r.gh.reviews = append(r.gh.reviews, again)
	r.gh.next++
	double := r.gh.remarks[0]
	double.ID, double.Review = r.gh.next, again.ID
	r.gh.remarks = append(r.gh.remarks, double)
	for _, c := range r.gh.checks {
		body := map[string]any{}
		for k, v := range c.Body {
			body[k] = v
		}
		r.gh.next++
		body["id"] = r.gh.next
		r.gh.checks[r.gh.next] = checkRun{r.gh.next, body}
		break
	}
	r.gh.mu.Unlock()
	r.pass(11 * time.Minute)
	r.settle(s)
	r.wantRemarks("a")
	if r.gh.reviews[1].Body != publisher.Duplicate || r.gh.reviews[0].Body == publisher.Duplicate {
		t.Errorf("reviews %+v", r.gh.reviews)
	}
	mine := 0
	for _, c := range r.gh.checkRuns() {
		if c["external_id"] == e.Run.ID.String() {
			mine++
		}
	}
	if mine != 1 {
		t.Errorf("%d check runs of the run, want 1", mine)
	}
	r.page(e)
}

// TestRestoredOlderDatabase: what the page shows is of epochs that nobody remembers. It is found again by its
// marker, written over, and nothing is posted twice.
func TestRestoredOlderDatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	target := publisher.TargetID(mint())
	forgotten := r.epoch(target, 5, 9, "cccc")
	r.shows(r.sender(r.store), forgotten, "a", "b")
	for _, table := range []string{"epochs", "surfaces", "senders"} {
		if _, err := r.db.Admin(t).Exec(t.Context(), `DELETE FROM publisher.`+table); err != nil {
			t.Fatal(err)
		}
	}
	e := r.epoch(target, 5, 4, "cccc")
	r.shows(r.sender(r.store), e, "a", "b")
	r.page(e)
	r.wantRemarks("a", "b")
	if n := r.gh.calls("POST /repositories/42/issues/5/comments"); n != 1 {
		t.Errorf("%d comments posted, want 1", n)
	}
	if state, reason := r.summary(e); state != "confirmed" {
		t.Errorf("the comment's intent is %s, %s", state, reason)
	}
}

// TestALookThatGitHubDoesNotAnswer is taken again.
func TestALookThatGitHubDoesNotAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.publish(e)
	r.settle(s)
	r.gh.place(botID, summaryOf(e))
	r.gh.set(func(w http.ResponseWriter, req *http.Request, _ bool) bool {
		if req.Method != http.MethodGet || !strings.HasSuffix(req.URL.Path, "/comments") {
			return false
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	r.pass(11 * time.Minute)
	r.settle(s)
	if n := len(r.gh.ours("5")); n != 2 {
		t.Fatalf("%d comments", n)
	}
	r.gh.set(nil)
	r.pass(time.Minute)
	r.settle(s)
	r.page(e)
}
