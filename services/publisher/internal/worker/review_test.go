package worker

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// finds are findings on a line each, in a hunk that shows it.
func finds(paths ...string) []publisher.Finding {
	var out []publisher.Finding
	for _, p := range paths {
		out = append(out, publisher.Finding{Path: p, Line: 3, HunkStart: 1, HunkEnd: 9, Severity: publisher.SeverityWarning, Rule: "rule", Message: "This."})
	}
	return out
}

// shows publishes an epoch with those findings, to the end.
func (r *rig) shows(s *Sender, e publisher.Epoch, paths ...string) {
	r.t.Helper()
	r.review = publisher.Review{Findings: finds(paths...), Files: 1}
	e.Run.Warnings = int32(len(paths))
	r.publish(e)
	r.settle(s)
}

// remarked are the paths of the inline comments, with "-" before those that are marked as fixed.
func (r *rig) remarked() []string {
	r.gh.mu.Lock()
	defer r.gh.mu.Unlock()
	var out []string
	for _, c := range r.gh.remarks {
		if strings.Contains(c.Body, "**Fixed**") {
			out = append(out, "-"+c.Path)
		} else {
			out = append(out, c.Path)
		}
	}
	return out
}

func (r *rig) wantRemarks(want ...string) {
	r.t.Helper()
	if got := r.remarked(); !slices.Equal(got, want) {
		r.t.Errorf("remarks %v, want %v", got, want)
	}
}

// reviewed are the bodies of the reviews, in one word each: of which head they speak, or "older".
func (r *rig) reviewed() []string {
	r.gh.mu.Lock()
	defer r.gh.mu.Unlock()
	var out []string
	for _, rv := range r.gh.reviews {
		if strings.Contains(rv.Body, "older head") {
			out = append(out, "older")
		} else {
			out = append(out, rv.Commit)
		}
	}
	return out
}

func TestWhatIsSaidIsNotSaidAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	target := publisher.TargetID(mint())
	r.shows(s, r.epoch(target, 5, 1, "bbbb"), "a", "b")
	r.wantRemarks("a", "b")
	second := r.epoch(target, 5, 2, "cccc")
	r.shows(s, second, "b", "c")
	r.wantRemarks("-a", "b", "c")
	if got := r.reviewed(); !slices.Equal(got, []string{"older", "cccc"}) {
		t.Errorf("reviews %v", got)
	}
	r.page(second)
	r.shows(s, r.epoch(target, 5, 3, "dddd"), "b", "c")
	r.wantRemarks("-a", "b", "c")
	if got := r.reviewed(); !slices.Equal(got, []string{"older", "older"}) {
		t.Errorf("reviews %v, want no third one: it had nothing to say", got)
	}
	if n := r.told("publication:"); n != 3 {
		t.Errorf("%d publications told, want 3", n)
	}
}

// TestBackAndForth: A, B, and A again is one run for A, shown twice.
func TestBackAndForth(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	target := publisher.TargetID(mint())
	a := r.epoch(target, 5, 1, "aaaa")
	r.shows(s, a, "x", "y")
	r.shows(s, r.epoch(target, 5, 2, "bbbb"), "y")
	r.wantRemarks("-x", "y")
	again := a
	again.At.Epoch = 3
	r.gh.pull("5", "aaaa")
	r.shows(s, again, "x", "y")
	r.wantRemarks("-x", "y", "x")
	if got := r.reviewed(); !slices.Equal(got, []string{"aaaa", "aaaa"}) {
		t.Errorf("reviews %v, want both to speak of the head again", got)
	}
	r.shows(s, r.epoch(target, 5, 4, "cccc"))
	r.wantRemarks("-x", "-y", "-x")
	if got := r.reviewed(); !slices.Equal(got, []string{"older", "older"}) {
		t.Errorf("reviews %v, want none of them current", got)
	}
}

// TestAnotherRunOfTheSameHead takes the review of the first one back, and calls its head none that is older.
func TestAnotherRunOfTheSameHead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	target := publisher.TargetID(mint())
	r.shows(s, r.epoch(target, 5, 1, "bbbb"), "a")
	r.shows(s, r.epoch(target, 5, 2, "bbbb"), "a", "b")
	r.wantRemarks("a", "b")
	if body := r.gh.reviews[0].Body; !strings.Contains(body, "a later run of the same head") || strings.Contains(body, "older head") {
		t.Errorf("the first run's review says\n%s", body)
	}
}

func TestARemarkThatAPersonDeletedStaysAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.sender(r.store)
	target := publisher.TargetID(mint())
	r.shows(s, r.epoch(target, 5, 1, "bbbb"), "a", "b")
	r.gh.mu.Lock()
	r.gh.remarks = r.gh.remarks[1:]
	r.gh.mu.Unlock()
	r.shows(s, r.epoch(target, 5, 2, "cccc"), "a", "b")
	r.wantRemarks("b")
}

// TestOneBadCommentIsFoundByHalves: whatever GitHub refuses for one comment, the others are made.
func TestOneBadCommentIsFoundByHalves(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.gh.bad["p5"] = true
	var paths, want []string
	for n := range 9 {
		paths = append(paths, fmt.Sprintf("p%d", n))
		if n != 5 {
			want = append(want, paths[n])
		}
	}
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	s := r.sender(r.store)
	r.shows(s, e, paths...)
	got := r.remarked()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("remarks %v, want all but p5", got)
	}
	r.page(e)
	if body := r.gh.ours("5")[0].Body; !strings.Contains(body, "`p5:3` `rule`: `This.` (") {
		t.Errorf("the comment doesn't list what could not be placed:\n%s", body)
	}
	if n := r.gh.calls("POST /repositories/42/pulls/5/reviews"); n > 10 {
		t.Errorf("%d tries, want 2 for each level at most", n)
	}
	if n := pgtest.Query[int](t, r.db, `SELECT count(*) FROM publisher.epochs WHERE delivered`); n != 1 {
		t.Error("the epoch is not delivered")
	}
}

// TestReviewKilledAtAnyStep: a review with its remarks is there once, whenever the process dies.
func TestReviewKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	for saves := range 8 {
		r := newRig(t)
		r.gh.bad["b"] = true
		target := publisher.TargetID(mint())
		s := r.sender(r.store)
		r.shows(s, r.epoch(target, 5, 1, "aaaa"), "z")
		r.review = publisher.Review{Findings: finds("a", "b", "c")}
		e := r.epoch(target, 5, 2, "bbbb")
		r.publish(e)
		r.killedAfter(saves)
		for range 3 {
			r.pass(2 * time.Minute)
			r.settle(s)
		}
		r.page(e)
		got := r.remarked()
		slices.Sort(got)
		if !slices.Equal(got, []string{"-z", "a", "c"}) {
			t.Errorf("killed after %d saves: remarks %v", saves, got)
		}
		if n := r.told("publication:"); n != 2 {
			t.Errorf("killed after %d saves: %d publications", saves, n)
		}
	}
}

func TestLostAnswerOfAReview(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var lost atomic.Bool
	r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
		if !done || req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/reviews") || lost.Swap(true) {
			return false
		}
		return drop(w)
	})
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	s := r.sender(r.store)
	r.shows(s, e, "a", "b")
	if n := len(r.gh.ours("5")); n != 0 {
		t.Error("the comment did not wait for the review")
	}
	r.pass(20 * time.Second)
	r.settle(s)
	r.page(e)
	r.wantRemarks("a", "b")
}

// TestAnnotationsComeInFifties, each once, also where an answer is lost.
func TestAnnotationsComeInFifties(t *testing.T) {
	t.Parallel()
	for lose := range 4 {
		r := newRig(t)
		var paths []string
		for n := range 120 {
			paths = append(paths, fmt.Sprintf("p%03d", n))
		}
		var writes atomic.Int64
		r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
			if !done || !strings.Contains(req.URL.Path, "/check-runs") || req.Method == http.MethodGet {
				return false
			}
			return writes.Add(1) == int64(lose) && drop(w)
		})
		e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
		s := r.sender(r.store)
		r.shows(s, e, paths...)
		r.pass(20 * time.Second)
		r.settle(s)
		r.page(e)
		checks := r.gh.checkRuns()
		if len(checks) != 1 || len(checks[0]["annotations"].([]any)) != 120 || checks[0]["conclusion"] != "neutral" {
			t.Errorf("answer %d lost: check runs %v", lose, checks)
		}
	}
}

// TestThreeHundredFindingsTakeFewWrites, and none of them is refused.
func TestThreeHundredFindingsTakeFewWrites(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var paths []string
	for n := range 300 {
		paths = append(paths, fmt.Sprintf("p%03d", n))
	}
	s := r.sender(r.store)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	for _, kind := range []publisher.Kind{publisher.KindQueued, publisher.KindInProgress} {
		r.publish(progress(e, 1, kind))
		r.settle(s)
	}
	r.shows(s, e, paths...)
	r.page(e)
	r.wantRemarks(paths...)
	if n := len(r.gh.checkRuns()[0]["annotations"].([]any)); n != 300 {
		t.Errorf("%d annotations", n)
	}
	writes := 0
	for _, method := range []string{"POST", "PATCH", "PUT", "DELETE"} {
		writes += r.gh.calls(method + " /repositories/")
	}
	if writes > 10 {
		t.Errorf("%d writes, want two of progress, a review, a comment, and six times fifty annotations", writes)
	}
}

// TestAReviewThatGitHubNeverComesTo is made in halves, as it takes long to make a large one.
func TestAReviewThatGitHubNeverComesTo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
		return !done && req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/reviews") && req.ContentLength > 2500 && drop(w)
	})
	s := r.sender(r.store)
	e := r.epoch(publisher.TargetID(mint()), 5, 1, "bbbb")
	r.shows(s, e, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
	for range 12 {
		r.pass(time.Minute)
		r.settle(s)
	}
	r.page(e)
	got := r.remarked()
	slices.Sort(got)
	if !slices.Equal(got, []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}) {
		t.Errorf("remarks %v", got)
	}
	if n := len(r.reviewed()); n < 2 {
		t.Errorf("%d reviews, want its parts", n)
	}
}
