package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
)

// TestThousandsOfFiles reviews a pull request of 3,000 files with 300 findings under one claim, and then says
// what lies beyond the 3,000 that GitHub lists.
func TestThousandsOfFiles(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	files := numbered(0, 3000)
	for n := range 300 {
		files[fmt.Sprintf("f/%04d.txt", n*10)] = conflicted
	}
	before := w.push("change", files, control.None)
	if _, err := w.ctl.OpenPull(t.Context(), w.repo.ID, control.OpenPull{Title: "Change", Head: "change", Base: "main"}); err != nil {
		t.Fatal(err)
	}
	first := w.finished(before.After)
	found, seen, left := w.findings(first)
	if len(found) != 300 || seen.GetFiles() != 3000 || len(left) != 0 {
		t.Errorf("%d findings in %d files, left out %v", len(found), seen.GetFiles(), left)
	}
	for n, f := range found {
		if f.GetPath() != fmt.Sprintf("f/%04d.txt", n*10) || f.GetStartLine() != 2 || f.GetLine() != 6 || f.GetHunkStart() != 1 || f.GetHunkEnd() != 6 {
			t.Fatalf("finding %d is %v", n+1, f)
		}
	}
	if first.GetNumber() != 1 || first.GetCost().GetMicros() > first.GetReserved().GetMicros() || first.GetDiffBytes() < seen.GetDiffBytes() {
		t.Errorf("attempt %v", first)
	}
	if n := w.count(`SELECT count(*) FROM scheduler.decisions WHERE kind IN ('lapsed', 'released')`); n != 0 {
		t.Errorf("%d claims did not come to their end", n)
	}
	w.fewWrites(before.After, 300)

	after := w.push("change", numbered(3000, 3060), control.Send)
	found, seen, left = w.findings(w.finished(after.After))
	if len(found) != 300 || seen.GetFiles() != 3000 || len(left) != 1 || left[0].GetMinor() ||
		left[0].GetReason() != "60 files beyond GitHub's limit of 3000 in a pull request" {
		t.Errorf("%d findings in %d files, left out %v", len(found), seen.GetFiles(), left)
	}
}

// TestAPushWhileFilesAreListed moves the head between two pages of the list. Nothing is reviewed that no commit
// has: the read is given back, and the next one is of the new head alone.
func TestAPushWhileFilesAreListed(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	w.push("change", numbered(0, 320), control.None)
	if _, err := w.ctl.AddFault(t.Context(), control.Fault{Class: "pulls.files", Skip: 1, Times: 1, Delay: control.Duration(2 * time.Second)}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ctl.OpenPull(t.Context(), w.repo.ID, control.OpenPull{Title: "Change", Head: "change", Base: "main"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first page is read", func() error {
		seen, err := w.ctl.Requests(t.Context(), control.RequestFilter{Class: "pulls.files"})
		if err == nil && len(seen) == 0 {
			err = errors.New("no page yet")
		}
		return err
	})
	pushed := w.push("change", map[string]string{"f/0000.txt": conflicted}, control.None)
	found, seen, left := w.findings(w.finished(pushed.After))
	if len(found) != 1 || seen.GetFiles() != 320 || len(left) != 0 {
		t.Errorf("%d findings in %d files, left out %v", len(found), seen.GetFiles(), left)
	}
	if n := w.count(`SELECT count(*) FROM scheduler.decisions WHERE kind = 'released' AND detail LIKE '%READ_MOVED%'`); n != 1 {
		t.Errorf("%d reads were given back as moved, want 1", n)
	}
	if n := w.count(`SELECT count(DISTINCT head_sha) FROM reviewer.attempts`); n != 1 {
		t.Errorf("attempts at %d heads, want the last one's alone", n)
	}
}

// fewWrites waits until a head is shown, and checks what that took: at most twelve writes, and no call that GitHub
// refused.
func (w *world) fewWrites(head string, remarks int) {
	w.Helper()
	eventually(w.T, "the head is shown", func() error { return w.shown(head) })
	w.atPeace()
	used, err := w.ctl.Usage(w.Context(), w.installation.ID)
	if err != nil {
		w.Fatal(err)
	}
	w.Logf("%d writes, %d of them creations, among %d calls, %d refused; at most %d points a minute and %d creations",
		used.Writes, used.Creates, used.Requests, used.Refused, used.PeakPointsPerMinute, used.PeakCreatesPerMinute)
	if used.Writes > 12 || used.Refused > 0 || !used.Within(control.GitHubLimits()) {
		w.Errorf("used %+v", used)
	}
	v := w.view(1)
	if len(v.remarks) != remarks || len(v.checks) != 1 || v.checks[0].Annotations != remarks {
		w.Errorf("%d remarks, check runs %d", len(v.remarks), len(v.checks))
	}
}

// numbered makes small files.
func numbered(from, to int) map[string]string {
	out := map[string]string{}
	for n := from; n < to; n++ {
		out[fmt.Sprintf("f/%04d.txt", n)] = fmt.Sprintf("%d\n", n)
	}
	return out
}

// finished waits for the attempt that has the result of a head.
func (w *world) finished(head string) *reviewerv1.Attempt {
	w.Helper()
	var got *reviewerv1.Attempt
	eventually(w.T, "the head is reviewed", func() error {
		at, err := w.target()
		if err != nil {
			return err
		}
		list, err := w.attempts().ListAttempts(w.Context(), &reviewerv1.ListAttemptsRequest{Tenant: at.GetTenant(), TargetId: at.GetTargetId()})
		if err != nil {
			return err
		}
		for _, a := range list.GetAttempts() {
			if a.GetHeadSha() == head && a.GetState() == reviewerv1.AttemptState_ATTEMPT_STATE_FINISHED {
				got = a
				return nil
			}
		}
		return fmt.Errorf("attempts %v", list.GetAttempts())
	})
	return got
}

// findings reads what an attempt found, saw and left out.
func (w *world) findings(a *reviewerv1.Attempt) (found []*reviewerv1.Finding, seen *reviewerv1.Seen, left []*reviewerv1.Omission) {
	w.Helper()
	req := &reviewerv1.ListFindingsRequest{Tenant: a.GetTenant(), AttemptId: a.GetAttemptId(), PageSize: 120}
	for {
		page, err := w.attempts().ListFindings(w.Context(), req)
		if err != nil {
			w.Fatal(err)
		}
		if req.GetPageToken() == "" {
			seen, left = page.GetSeen(), page.GetOmissions()
		}
		found = append(found, page.GetFindings()...)
		if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
			return found, seen, left
		}
	}
}
