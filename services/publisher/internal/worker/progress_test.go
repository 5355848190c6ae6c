package worker

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// progress is how far the epoch's run is, after the epoch before it.
func progress(e publisher.Epoch, generation int64, kind publisher.Kind) publisher.Epoch {
	e.Kind = kind
	e.At.Epoch--
	e.At.Step = publisher.ProgressStep(generation, kind)
	return e
}

// checked is how the check run of a head stands.
func (r *rig) checked(head string) string {
	r.t.Helper()
	out := ""
	for _, c := range r.gh.checkRuns() {
		if c["head_sha"] != head {
			continue
		}
		if out != "" {
			r.t.Errorf("more than one check run of %s", head)
		}
		out = c["status"].(string)
		if conclusion, ok := c["conclusion"].(string); ok {
			out += " " + conclusion
		}
	}
	return out
}

func (r *rig) wantCheck(head, want string) {
	r.t.Helper()
	if got := r.checked(head); got != want {
		r.t.Errorf("the check run of %s is %q, want %q", head, got, want)
	}
}

func TestProgressBecomesTheResult(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.publish(progress(e, 1, publisher.KindQueued))
	r.settle(s)
	r.wantCheck("bbbb", "queued")
	r.publish(progress(e, 1, publisher.KindInProgress))
	r.settle(s)
	r.wantCheck("bbbb", "in_progress")
	if n := len(r.gh.ours("5")); n != 0 {
		t.Error("progress made a comment")
	}
	if n := r.told(""); n != 0 {
		t.Errorf("%d messages to the scheduler about progress", n)
	}
	r.publish(e)
	r.settle(s)
	r.wantCheck("bbbb", "completed success")
	r.page(e)
	r.publish(progress(e, 1, publisher.KindInProgress)) // the outbox has no order
	r.settle(s)
	r.wantCheck("bbbb", "completed success")
}

// TestProgressOutOfOrder: what is older than what is known is dropped unseen.
func TestProgressOutOfOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.publish(progress(e, 1, publisher.KindInProgress), progress(e, 1, publisher.KindQueued))
	r.settle(s)
	r.wantCheck("bbbb", "in_progress")
	r.publish(e, progress(e, 1, publisher.KindInProgress))
	r.settle(s)
	r.wantCheck("bbbb", "completed success")
	if n := pgtest.Query[int](t, r.db, `SELECT count(*) FROM publisher.epochs WHERE ended_at IS NULL`); n != 0 {
		t.Errorf("%d epochs open", n)
	}
}

// TestProgressOfAnotherHead concludes what is open, neutral; and so does an epoch without a check run.
func TestProgressOfAnotherHead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	target := publisher.TargetID(mint())
	old, next := r.epoch(target, 5, 1, "bbbb"), r.epoch(target, 5, 1, "cccc")
	r.publish(progress(old, 1, publisher.KindInProgress))
	r.settle(s)
	r.publish(progress(next, 2, publisher.KindQueued))
	r.settle(s)
	r.wantCheck("bbbb", "completed neutral")
	r.wantCheck("cccc", "queued")
	back := next
	back.At.Epoch, back.Kind, back.Reason = 1, publisher.KindSkipped, "draft"
	r.publish(back)
	r.settle(s)
	r.wantCheck("cccc", "completed neutral")
	if n := pgtest.Query[int](t, r.db, `SELECT count(*) FROM publisher.surfaces WHERE open`); n != 0 {
		t.Errorf("%d surfaces are open", n)
	}
}

// TestProgressThatIsNoLongerInWork is asked about, and not shown.
func TestProgressThatIsNoLongerInWork(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.sched.says = func(e publisher.Epoch) publisher.Currency {
		if e.Kind.Progress() {
			return publisher.Currency{Standing: publisher.Superseded}
		}
		return publisher.Currency{Standing: publisher.Current}
	}
	r.publish(progress(r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb"), 1, publisher.KindQueued))
	r.settle(r.sender(r.store))
	r.wantCheck("bbbb", "")
}

// TestLostAnswerOfProgress: the check run that nobody heard of becomes the result's.
func TestLostAnswerOfProgress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var lost atomic.Bool
	r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
		if !done || req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/check-runs") || lost.Swap(true) {
			return false
		}
		return drop(w)
	})
	s := r.sender(r.store)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.publish(progress(e, 1, publisher.KindInProgress))
	r.settle(s)
	r.publish(e)
	r.settle(s)
	r.pass(20 * time.Second)
	r.settle(s)
	r.wantCheck("bbbb", "completed success")
	r.page(e)
}

// TestCommitStatusWhereChecksAreNotGranted: it is made by itself, also of progress.
func TestCommitStatusWhereChecksAreNotGranted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
		if done || req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/check-runs") {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"message":"Resource not accessible by integration"}`))
		return true
	})
	s := r.sender(r.store)
	target := publisher.TargetID(mint())
	e, next := r.epoch(target, 5, 1, "bbbb"), r.epoch(target, 5, 2, "cccc")
	r.gh.pull("5", "bbbb")
	back := next
	back.Kind, back.Reason = publisher.KindSkipped, "draft"
	for _, e := range []publisher.Epoch{progress(e, 1, publisher.KindQueued), e, progress(next, 2, publisher.KindQueued), back} {
		r.publish(e)
		for range 4 {
			r.settle(s)
			r.pass(time.Minute)
		}
	}
	var states []string
	for _, st := range r.gh.statuses {
		states = append(states, st["sha"].(string)+" "+st["state"].(string))
	}
	if want := []string{"bbbb pending", "bbbb success", "cccc pending", "cccc error"}; !slices.Equal(states, want) {
		t.Errorf("statuses %v, want %v", states, want)
	}
	r.page(back)
	if n := r.told("publication:"); n != 2 {
		t.Errorf("%d publications told, want 2", n)
	}
}

// TestProjectChoosesItsSurfaces: what it did not choose is not written.
func TestProjectChoosesItsSurfaces(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	target := publisher.TargetID(mint())
	e := r.epoch(target, 5, 1, "bbbb")
	choose := func(version int64, kinds ...publisher.SurfaceKind) {
		t.Helper()
		c := publisher.Configuration{Tenant: r.tenant, Project: e.PR.Project, Version: version, Surfaces: kinds}
		if err := r.store.ConfigureProject(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	choose(2, publisher.SurfaceReview)
	choose(1, publisher.SurfaceSummary) // older
	r.shows(s, progress(e, 1, publisher.KindQueued))
	r.shows(s, e, "a")
	if len(r.gh.ours("5")) != 0 || len(r.gh.checkRuns()) != 0 {
		t.Error("surfaces that were not chosen")
	}
	r.wantRemarks("a")
	if n := pgtest.Query[int](t, r.db, `SELECT count(*) FROM publisher.epochs WHERE delivered`); n != 1 {
		t.Error("the epoch is not delivered")
	}
	if n := pgtest.Query[int](t, r.db, `SELECT count(*) FROM publisher.epochs WHERE ended_at IS NULL`); n != 0 {
		t.Error("progress that has no surface is open")
	}
}
