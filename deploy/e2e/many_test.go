package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestManyThrottledInstallations has GitHub tell ten installations at once to wait, or a hundred with
// FENCELINE_LOAD=full: another one is reviewed and published as if they were not there.
func TestManyThrottledInstallations(t *testing.T) {
	n := sized(10, 100)
	const wait = 10 * time.Minute
	w := newWorld(t)
	w.up()
	ctx := t.Context()
	for i := range n {
		login := fmt.Sprintf("org%d", i)
		if _, err := w.ctl.CreateAccount(ctx, control.Account{Login: login, Type: "Organization"}); err != nil {
			t.Fatal(err)
		}
		repo, err := w.ctl.CreateRepository(ctx, control.NewRepository{Owner: login, Name: "widgets", Commits: []control.Commit{
			{Branch: "main", Message: "start", Files: map[string]string{"README.md": "# Widgets\n"}},
			{Branch: "change", Message: "change", Files: map[string]string{"notes.txt": conflicted}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		installed, err := w.ctl.CreateInstallation(ctx, control.NewInstallation{Account: login, Options: control.Options{Webhook: control.None}})
		if err != nil {
			t.Fatal(err)
		}
		w.fault(control.Fault{Class: control.Writes, Installation: installed.ID, Limit: &control.LimitFault{Secondary: true, Status: 429, RetryAfter: int(wait / time.Second)}})
		if _, err := w.ctl.OpenPull(ctx, repo.ID, control.OpenPull{Title: "Change", Head: "change", Base: "main"}); err != nil {
			t.Fatal(err)
		}
	}
	within(t, "all of them are told to wait", sized(2, 10), func() error {
		seen, err := w.ctl.Requests(ctx, control.RequestFilter{Writes: true})
		told := map[int64]int{}
		for _, r := range seen {
			told[r.InstallationID]++
		}
		if err == nil && len(told) < n {
			err = fmt.Errorf("%d of %d are", len(told), n)
		}
		return err
	})
	w.repository()
	began := time.Now()
	opened := w.open(control.Send)
	eventually(t, "it is shown", func() error { return w.shown(opened.Pull.HeadSHA) })
	t.Logf("published in %s beside %d installations that wait", time.Since(began).Round(10*time.Millisecond), n)
	if v := w.view(opened.Pull.Number); len(v.comments) != 1 || len(v.reviews) != 1 || len(v.checks) != 1 {
		t.Errorf("%d comments, %d reviews, %d check runs", len(v.comments), len(v.reviews), len(v.checks))
	}
	seen, err := w.ctl.Requests(ctx, control.RequestFilter{Writes: true})
	if err != nil {
		t.Fatal(err)
	}
	tries := map[int64]int{}
	for _, r := range seen {
		if tries[r.InstallationID]++; r.Limited && tries[r.InstallationID] == 2 {
			t.Errorf("installation %d was called again before its time", r.InstallationID)
		}
	}
}

// TestMarkerOnALongPage loses the answer of our comment on a page of 1,250 others, all of them older than it: what
// since spares is not read.
func TestMarkerOnALongPage(t *testing.T) {
	w := newWorld(t)
	w.fault(control.Fault{Class: "comments.create", Times: 1, Lose: control.LoseClose})
	w.up()
	w.repository()
	opened := w.open(control.Hold)
	ctx, n := t.Context(), opened.Pull.Number
	long := time.Now().Add(-time.Hour)
	for range 1250 {
		in := control.NewComment{Body: "me too", At: &long, Options: control.Options{Sender: "bob", Webhook: control.None}}
		if _, err := w.ctl.Comment(ctx, w.repo.ID, n, in); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.ctl.SendDelivery(ctx, opened.Deliveries[0].GUID, control.Resend{}); err != nil {
		t.Fatal(err)
	}
	w.resting(n, opened.Pull.HeadSHA)
	seen, err := w.ctl.Requests(ctx, control.RequestFilter{Class: "comments.list"})
	if err != nil {
		t.Fatal(err)
	}
	since := 0
	for _, r := range seen {
		if strings.Contains(r.Path, "since=") {
			since++
		}
	}
	t.Logf("%d reads of the page by since, %d in all", since, len(seen))
	// The whole page is walked once, before anything is posted: 13 pages, the first of them twice.
	if since == 0 || since > 3 || len(seen)-since > 14 {
		t.Errorf("%d reads by since and %d of the whole page, at most 3 and 14", since, len(seen)-since)
	}
	w.handled("comments.create", 1)
}
