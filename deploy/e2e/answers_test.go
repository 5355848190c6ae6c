package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestOneAnchorThatGitHubRefuses spoils the line of one inline comment of four on its way: GitHub refuses all of them
// and does not say for which. The others are placed, and that one is said in the summary.
func TestOneAnchorThatGitHubRefuses(t *testing.T) {
	w := newWorld(t)
	line := regexp.MustCompile(`("path":"c\.txt".*?"line":)6`)
	newBetween(w, func(r *http.Request, body []byte) []byte {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/reviews") {
			return line.ReplaceAll(body, []byte("${1}4000"))
		}
		return body
	}, "publisher")
	w.up()
	w.repository()
	w.push("change", map[string]string{"a.txt": conflicted, "b.txt": conflicted, "c.txt": conflicted}, control.None)
	opened := w.open(control.Send)
	v := w.resting(opened.Pull.Number, opened.Pull.HeadSHA)
	if got := v.paths(); !slices.Equal(got, []string{"a.txt", "b.txt", "notes.txt"}) {
		t.Errorf("remarks on %v", got)
	}
	says(t, "the summary", v.comments[0].Body, "Not placed on a line of the diff, and so said here alone: 1 finding", "`c.txt:2-6`", "not placed on its line")
	w.writes("reviews.create", 5) // all, a and b, c and notes, c, notes
	w.handled("reviews.create", 2)
}

// TestLostAnswersOfEveryWrite loses the answer of the first review, comment, check run and append of annotations: each
// is found again, and no annotation is there twice.
func TestLostAnswersOfEveryWrite(t *testing.T) {
	for _, how := range []control.Loss{control.LoseClose, control.LoseError, control.LoseStall} {
		t.Run(string(how), func(t *testing.T) {
			w := newWorld(t)
			w.brisk()
			for _, class := range []string{"reviews.create", "comments.create", "checks.create"} {
				w.fault(control.Fault{Class: class, Times: 1, Lose: how})
			}
			w.fault(control.Fault{Class: "checks.update", Times: 2, Lose: how})
			w.up()
			w.repository()
			const n = 120
			w.push("change", map[string]string{"many.txt": strings.Repeat(conflicted, n)}, control.None)
			opened := w.open(control.Send)
			v := w.resting(opened.Pull.Number, opened.Pull.HeadSHA)
			if len(v.reviews) != 1 || len(v.remarks) != n+1 {
				t.Errorf("%d reviews with %d remarks", len(v.reviews), len(v.remarks))
			}
			seen := map[string]int{}
			for _, a := range v.checks[0].AnnotationList {
				seen[fmt.Sprintf("%s:%d", a.Path, a.StartLine)]++
			}
			if len(seen) != n+1 || v.checks[0].Annotations != n+1 {
				t.Errorf("%d annotations on %d lines, want %d", v.checks[0].Annotations, len(seen), n+1)
			}
			w.handled("reviews.create", 1)
			w.handled("comments.create", 1)
			w.handled("checks.create", 1)
		})
	}
}

// TestManyLostAnswers loses a fifth of all answers to writes: at rest every pull request has exactly one of
// everything. With FENCELINE_LOAD=full there are 1,000 of them.
func TestManyLostAnswers(t *testing.T) {
	n := sized(30, 1000)
	w := newWorld(t)
	w.brisk()
	w.fault(control.Fault{Class: control.Writes, Probability: 0.2, Seed: 7, Lose: control.LoseClose})
	w.up()
	w.repository()
	var heads []string
	for i := range n {
		pull := w.branch(fmt.Sprintf("b%d", i), map[string]string{fmt.Sprintf("f%d.txt", i): conflicted})
		heads = append(heads, pull.HeadSHA)
	}
	within(t, "everything is shown", sized(3, 45), func() error {
		if got := w.count(`SELECT count(*) FROM scheduler.targets WHERE page_delivery = 'delivered' AND page_kind = 'result'`); got < int64(n) {
			return fmt.Errorf("%d of %d are", got, n)
		}
		return nil
	})
	w.atPeace()
	right := 0
	for i, head := range heads {
		v := w.view(i + 1)
		if len(v.comments) == 1 && len(v.reviews) == 1 && len(v.remarks) == 1 && len(v.checks) == 1 && strings.Contains(v.comments[0].Body, head) {
			right++
		} else {
			t.Errorf("pull request %d has %d comments, %d reviews, %d remarks, %d check runs", i+1, len(v.comments), len(v.reviews), len(v.remarks), len(v.checks))
		}
	}
	lost, all := 0, 0
	seen, err := w.ctl.Requests(t.Context(), control.RequestFilter{Writes: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range seen {
		if all++; r.Handled && !r.Answered {
			lost++
		}
	}
	t.Logf("%d of %d pull requests have exactly one of everything; %d of %d answers to writes were lost", right, n, lost, all)
}

// branch opens a pull request of its own branch.
func (w *world) branch(name string, files map[string]string) control.Pull {
	w.Helper()
	w.push(name, files, control.None)
	opened, err := w.ctl.OpenPull(w.Context(), w.repo.ID, control.OpenPull{Title: name, Head: name, Base: "main"})
	if err != nil {
		w.Fatal(err)
	}
	return opened.Pull
}

// TestListsThatLagLongerThanTheGrace loses the answers of the first writes and hides what they wrote for longer than
// anybody waits: everything is posted twice. What is too many is removed within a minute, and told.
func TestListsThatLagLongerThanTheGrace(t *testing.T) {
	w := newWorld(t)
	w.brisk()
	for _, class := range []string{"reviews.create", "comments.create", "checks.create"} {
		w.fault(control.Fault{Class: class, Times: 1, Lose: control.LoseClose, Hide: &control.HideFault{For: control.Duration(8 * time.Second)}})
	}
	w.up()
	w.repository()
	opened := w.open(control.Send)
	w.atRest()
	w.handled("comments.create", 2)
	w.handled("reviews.create", 2)
	made := time.Now()
	eventually(t, "what is too many is gone", func() error {
		v := w.view(opened.Pull.Number)
		marked := 0
		for _, r := range v.reviews {
			if marker.MatchString(r.Body) {
				marked++
			}
		}
		runs := 0
		for _, c := range v.checks {
			if c.ExternalID != "duplicate" || c.Status != "completed" {
				runs++
			}
		}
		if len(v.comments) != 1 || marked != 1 || len(v.remarks) != 1 || runs != 1 {
			return fmt.Errorf("%d comments, %d reviews, %d remarks, %d check runs", len(v.comments), marked, len(v.remarks), runs)
		}
		return nil
	})
	t.Logf("healed within %s", time.Since(made).Round(time.Second))
	w.atPeace()
	says(t, "the log", w.procs["publisher"].log.String(), "second output removed")
}

// TestPendingReviewLeftBehind leaves a review of ours that was never submitted, as a process that died may: nobody
// sees it, GitHub takes no other, and it does not block us.
func TestPendingReviewLeftBehind(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Hold)
	n := opened.Pull.Number
	left, err := w.ctl.Review(t.Context(), w.repo.ID, n, control.NewReview{Body: "left", Options: control.Options{Sender: bot}})
	if err != nil || left.State != "PENDING" {
		t.Fatalf("left %+v, %v", left, err)
	}
	if _, err := w.ctl.SendDelivery(t.Context(), opened.Deliveries[0].GUID, control.Resend{}); err != nil {
		t.Fatal(err)
	}
	if v := w.resting(n, opened.Pull.HeadSHA); len(v.reviews) != 1 || len(v.remarks) != 1 {
		t.Errorf("%d reviews, %d remarks", len(v.reviews), len(v.remarks))
	}
	w.handled("reviews.create", 1)
}
