package worker

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

func TestIncompleteListingIsUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	for range 150 {
		r.gh.place(humanID, "hello")
	}
	r.gh.set(func(w http.ResponseWriter, req *http.Request, _ bool) bool {
		if req.URL.Query().Get("page") != "2" {
			return false
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	r.publish(e)
	s := r.sender(r.store)
	r.settle(s)
	if n := r.gh.calls("POST /repositories/42/"); n != 0 {
		t.Errorf("%d posts on an incomplete listing", n)
	}
	if state, _ := r.summary(e); state != "pending" {
		t.Errorf("the intent is %s, want pending", state)
	}
	r.gh.set(nil)
	r.pass(time.Minute)
	r.settle(s)
	r.page(e)
}

func TestMarkerOnTheThirdPageIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.epoch(publisher.TargetID(mint()), 5, 2, "bbbb")
	for range 230 {
		r.gh.place(humanID, "hello")
	}
	old := e
	old.At.Epoch = 1 // of a lifecycle whose rows are gone
	r.gh.place(botID, publisher.Work{Epoch: old}.Render(keys, publisher.Ref{Kind: publisher.SurfaceSummary}, publisher.Input{}).Body)
	for range 80 {
		r.gh.place(humanID, "hello")
	}
	r.publish(e)
	r.settle(r.sender(r.store))
	r.page(e)
	if n := r.gh.calls("POST /repositories/42/issues/5/comments"); n != 0 {
		t.Errorf("%d posts, want an edit of what was found", n)
	}
}

func TestCommentByAHumanWithOurMarkerIsNotAdopted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	body := publisher.Work{Epoch: e}.Render(keys, publisher.Ref{Kind: publisher.SurfaceSummary}, publisher.Input{}).Body
	id := r.gh.place(humanID, body)
	r.publish(e)
	r.settle(r.sender(r.store))
	r.page(e)
	if got := r.gh.ours("5")[0].ID; got == id {
		t.Error("the person's comment was adopted")
	}
	if r.gh.calls("PATCH") != 0 {
		t.Error("the person's comment was edited")
	}
}

func TestWaitDoesNotHoldUpOtherIntents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	waits, goes := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb"), r.epoch(publisher.TargetID(mint()), 6, 1, "cccc")
	current := false
	r.sched.says = func(e publisher.Epoch) publisher.Currency {
		if e.Target == waits.Target && !current {
			return publisher.Currency{Standing: publisher.Waiting, Reason: "unresolved"}
		}
		return publisher.Currency{Standing: publisher.Current}
	}
	r.publish(waits, goes)
	s := r.sender(r.store)
	r.settle(s)
	r.page(goes)
	if n := len(r.gh.ours("5")); n != 0 {
		t.Fatal("the waiting epoch was shown")
	}
	current = true
	r.pass(30 * time.Second)
	r.settle(s)
	r.page(waits)
}

func TestSupersededIsNotSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.sched.says = func(publisher.Epoch) publisher.Currency { return publisher.Currency{Standing: publisher.Superseded} }
	r.publish(e)
	r.settle(r.sender(r.store))
	if n := r.gh.calls("POST /repositories/42/"); n != 0 {
		t.Errorf("%d posts", n)
	}
	if n := r.told("publication:"); n != 1 {
		t.Errorf("%d publications told, want 1", n)
	}
}

func TestGitHubShowsAnotherHead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.gh.pull("5", "dddd")
	r.publish(e)
	s := r.sender(r.store)
	for range 3 {
		r.settle(s)
		r.pass(time.Minute)
	}
	if n := r.gh.calls("POST /repositories/42/"); n != 0 {
		t.Errorf("%d posts of a comparison that is not there", n)
	}
	if n := r.told("activity:publisher:"); n != 1 {
		t.Errorf("the reading was told %d times, want once", n)
	}
	r.gh.pull("5", "bbbb")
	r.settle(s)
	r.page(e)
}

func TestTakeBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	target := publisher.TargetID(mint())
	shown := r.epoch(target, 5, 1, "bbbb")
	r.publish(shown)
	r.settle(s)
	back := shown
	back.At.Epoch, back.Kind, back.NewerHead = 2, publisher.KindSuperseded, "cccc"
	r.gh.pull("5", "cccc") // a take-back needs no read
	r.publish(back)
	r.settle(s)
	r.page(back)

	bare := r.epoch(publisher.TargetID(mint()), 6, 1, "eeee")
	bare.Kind = publisher.KindSuperseded
	r.publish(bare)
	r.settle(s)
	if state, reason := r.summary(bare); state != "ended" || reason != publisher.ReasonNothing {
		t.Errorf("with nothing on the page the intent is %s, %s", state, reason)
	}
	over := r.epoch(publisher.TargetID(mint()), 8, 1, "ffff")
	over.Kind, over.Reason = publisher.KindOverBudget, "budget"
	r.publish(over)
	r.settle(s)
	if n := len(r.gh.ours("8")); n != 0 {
		t.Errorf("%d comments for what was not reviewed", n)
	}
	for _, c := range r.gh.checkRuns() {
		if c["head_sha"] == "ffff" && c["conclusion"] != "neutral" {
			t.Errorf("did not run, and is %v", c["conclusion"])
		}
	}
	if n := r.told("publication:"); n != 4 {
		t.Errorf("%d publications told, want 4", n)
	}
}

func TestCommentDeletedByAPerson(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	target := publisher.TargetID(mint())
	first := r.epoch(target, 5, 1, "bbbb")
	r.publish(first)
	r.settle(s)
	r.gh.remove(r.gh.ours("5")[0].ID)

	again := first // the same run
	again.At.Epoch = 2
	r.publish(again)
	r.settle(s)
	if state, reason := r.summary(again); len(r.gh.ours("5")) != 0 || state != "ended" || reason != publisher.ReasonDeleted {
		t.Fatalf("the same run: %s, %s, %d comments", state, reason, len(r.gh.ours("5")))
	}
	newer := r.epoch(target, 5, 3, "cccc")
	r.publish(newer)
	r.settle(s)
	r.page(newer)
	r.gh.remove(r.gh.ours("5")[0].ID)
	newest := r.epoch(target, 5, 4, "dddd")
	r.publish(newest)
	r.settle(s)
	if _, reason := r.summary(newest); len(r.gh.ours("5")) != 0 || reason != publisher.ReasonDeleted {
		t.Errorf("deleted a second time: %s, %d comments", reason, len(r.gh.ours("5")))
	}
}

func TestThrottledInstallationIsPaused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		header map[string]string
		body   string
	}{
		"429":                        {429, nil, `{"message":"too many"}`},
		"429 with retry-after":       {429, map[string]string{"Retry-After": "90"}, `{"message":"too many"}`},
		"403, secondary":             {403, map[string]string{"Retry-After": "90"}, `{"message":"You have exceeded a secondary rate limit"}`},
		"403, secondary, no header":  {403, nil, `{"message":"You have exceeded a secondary rate limit"}`},
		"403, nothing of it remains": {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(time.Now().Add(90*time.Second).Unix(), 10)}, `{"message":"API rate limit exceeded"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			e, other := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb"), r.epoch(publisher.TargetID(mint()), 6, 1, "cccc")
			r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
				if done || req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/comments") {
					return false
				}
				for k, v := range tt.header {
					w.Header().Set(k, v)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
				return true
			})
			r.publish(e, other)
			s := r.sender(r.store)
			r.settle(s)
			if n := r.gh.calls("POST /repositories/42/"); n != 1 {
				t.Errorf("%d posts, want the whole installation paused after the first", n)
			}
			if n := r.told("delay:"); n != 1 {
				t.Errorf("%d delays told, want 1", n)
			}
			r.pass(30 * time.Second)
			r.settle(s)
			if n := r.gh.calls("POST /repositories/42/"); n != 1 {
				t.Errorf("%d posts within the pause", n)
			}
			r.gh.set(nil)
			r.pass(2 * time.Minute)
			r.settle(s)
			r.page(e)
			r.page(other)
		})
	}
}

func TestRefusedCommentIsSaidOnTheCheckRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
		if done || req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/comments") {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"message":"Unable to create comment because issue is locked."}`))
		return true
	})
	r.publish(e)
	r.settle(r.sender(r.store))
	if state, reason := r.summary(e); state != "ended" || reason != "refused_forbidden" {
		t.Errorf("the comment's intent is %s, %s", state, reason)
	}
	checks := r.gh.checkRuns()
	if len(checks) != 1 || !strings.Contains(checks[0]["output"].(map[string]any)["summary"].(string), "refused_forbidden") {
		t.Errorf("check runs %v", checks)
	}
}

func TestSenderPausedPastItsLease(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.publish(e)
	slow, other := r.sender(r.store), r.sender(r.store)
	var once atomic.Bool
	r.gh.set(func(_ http.ResponseWriter, req *http.Request, done bool) bool {
		if done && req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/comments") && !once.Swap(true) {
			r.pass(time.Minute) // the answer comes when the lease has long been another's
			r.settle(other)
		}
		return false
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	time.AfterFunc(20*time.Second, stop)
	r.turn(ctx, slow)
	r.settle(other)
	r.page(e)
	if n := r.gh.calls("POST /repositories/42/"); n != 2 {
		t.Errorf("%d posts, want 2", n)
	}
	if n := r.told("publication:"); n != 1 {
		t.Errorf("%d publications told, want 1", n)
	}
}

func TestTwoSendersAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var all []publisher.Epoch
	for n := range int64(12) {
		e := r.epoch(publisher.TargetID(mint()), n+1, 1, "bbbb")
		e.PR.Installation = n%3 + 1
		all = append(all, e)
	}
	r.publish(all...)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		s := r.sender(r.store)
		go func() { ended <- s.Run(ctx) }()
	}
	for tick := time.NewTicker(20 * time.Millisecond); r.told("publication:") < len(all); {
		select {
		case <-tick.C:
		case <-time.After(30 * time.Second):
			t.Fatal("not all epochs were published")
		}
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for _, e := range all {
		r.page(e)
	}
	if n := r.gh.calls("POST /repositories/42/"); n != 2*len(all) {
		t.Errorf("%d posts, want %d", n, 2*len(all))
	}
}

func TestSchedulerAwayCostsTimeAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.sched.err = &publisher.Failure{Class: publisher.NotExecuted, Reason: "SCHEDULER_AWAY"}
	r.publish(e)
	s := r.sender(r.store)
	for range 10 {
		r.settle(s)
		r.pass(10 * time.Minute)
	}
	if n := r.gh.calls(""); n != 0 {
		t.Errorf("%d calls of GitHub without the scheduler's word", n)
	}
	r.sched.err = nil
	r.settle(s)
	r.page(e)
}
