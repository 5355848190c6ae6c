package worker

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// TestSurfaceIsLeftMidRun: a project that no longer wants check runs has none left open by the run that was in work.
func TestSurfaceIsLeftMidRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.publish(progress(e, 1, publisher.KindInProgress))
	r.settle(s)
	r.wantCheck("bbbb", "in_progress")
	c := publisher.Configuration{Tenant: r.tenant, Project: e.PR.Project, Version: 1, Surfaces: []publisher.SurfaceKind{publisher.SurfaceSummary}}
	if err := r.store.ConfigureProject(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r.publish(e)
	r.settle(s)
	r.wantCheck("bbbb", "completed success")
	r.page(e)
}

// TestChecksAreGrantedMidRun: the commit status that was pending in their place ends with the check run.
func TestChecksAreGrantedMidRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var granted atomic.Bool
	r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
		if done || granted.Load() || req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/check-runs") {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"message":"Resource not accessible by integration"}`))
		return true
	})
	s := r.sender(r.store)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	settle := func(e publisher.Epoch) {
		r.publish(e)
		for range 4 {
			r.settle(s)
			r.pass(time.Minute)
		}
	}
	settle(progress(e, 1, publisher.KindInProgress))
	if n := len(r.gh.statuses); n != 1 || r.gh.statuses[0]["state"] != "pending" {
		t.Fatalf("statuses %v", r.gh.statuses)
	}
	granted.Store(true)
	settle(e)
	r.wantCheck("bbbb", "completed success")
	if last := r.gh.statuses[len(r.gh.statuses)-1]; last["state"] != "success" {
		t.Errorf("beside the check run the status of the same head is %v", last["state"])
	}
}

// TestPageMayNotBeRead: where a permission is taken away mid-run, the check run that may still be written says so.
func TestPageMayNotBeRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.publish(progress(e, 1, publisher.KindInProgress))
	r.settle(s)
	r.wantCheck("bbbb", "in_progress")
	r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
		if done || !strings.Contains(req.URL.Path, "/pulls/") && !strings.Contains(req.URL.Path, "/issues/") {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"message":"Resource not accessible by integration"}`))
		return true
	})
	r.publish(e)
	for range 8 {
		r.settle(s)
		r.pass(time.Minute)
	}
	r.wantCheck("bbbb", "completed success")
	if state, reason := r.summary(e); state != "ended" || reason != "refused_not_permitted" {
		t.Errorf("the comment is %s, %s", state, reason)
	}
	if n := r.told("publication:"); n != 1 {
		t.Errorf("%d publications told, want 1", n)
	}
}

// TestBackAndForthMidRun: A, B and A again, with remarks: every check run has concluded, A's review speaks of this head again,
// B's of an older one, and nothing is said twice.
func TestBackAndForthMidRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	target := publisher.TargetID(mint())
	a := r.epoch(target, 5, 1, "aaaa")
	r.publish(progress(a, 1, publisher.KindQueued))
	r.settle(s)
	r.shows(s, a, "x", "y")
	b := r.epoch(target, 5, 2, "bbbb")
	r.publish(progress(b, 2, publisher.KindInProgress))
	r.settle(s)
	r.wantCheck("bbbb", "in_progress")
	again := a
	again.At.Epoch = 2
	r.gh.pull("5", "aaaa")
	r.shows(s, again, "x", "y") // before B had its result
	for range 3 {
		r.pass(time.Minute)
		r.settle(s)
	}
	r.wantCheck("bbbb", "completed neutral")
	r.wantRemarks("x", "y")
	b.At.Epoch = 3
	r.gh.pull("5", "bbbb")
	r.shows(s, b, "x", "z")
	for range 3 {
		r.pass(time.Minute)
		r.settle(s)
	}
	r.wantCheck("aaaa", "completed neutral")
	r.wantCheck("bbbb", "completed neutral")
	r.wantRemarks("x", "-y", "z")
	r.page(b)
	again.At.Epoch = 4
	r.gh.pull("5", "aaaa")
	r.shows(s, again, "x", "y") // what came back is said anew, in a part of A's review
	for range 3 {
		r.pass(time.Minute)
		r.settle(s)
	}
	r.wantRemarks("x", "-y", "-z", "y")
	if got, want := r.reviewed(), []string{"aaaa", "older", "aaaa"}; !slices.Equal(got, want) {
		t.Errorf("reviews of %v, want %v", got, want)
	}
	r.page(again)
}

// TestOldDuplicates: two comments from before the database knows, unchanged for long, become one within a minute.
func TestOldDuplicates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	target := publisher.TargetID(mint())
	old, e := r.epoch(target, 5, 1, "aaaa"), r.epoch(target, 5, 2, "bbbb")
	r.gh.place(botID, summaryOf(old))
	r.gh.place(botID, summaryOf(old))
	r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
		if done || req.Method != http.MethodGet || req.URL.Query().Get("since") == "" {
			return false
		}
		_, _ = w.Write([]byte(`[]`))
		return true
	})
	r.publish(e)
	for range 3 {
		r.settle(s)
		r.pass(20 * time.Second)
	}
	r.settle(s)
	r.page(e)
}
