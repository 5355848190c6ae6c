package githubsim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestACheckRunGoesThroughItsStates: queued, in progress, one conclusion, and each is in the history.
func TestACheckRunGoesThroughItsStates(t *testing.T) {
	b := newBench(t)
	head := b.open().HeadSHA
	str := github.String
	out := func(title string) *github.CheckRunOutput {
		return &github.CheckRunOutput{Title: &title, Summary: str("s")}
	}
	run, _, err := b.gh.Checks.CreateCheckRun(b.ctx, "acme", "site", github.CreateCheckRunOptions{Name: "fenceline", HeadSHA: head, ExternalID: str("run"), Status: str("queued"), Output: out("Queued")})
	b.must(err)
	if run.GetStatus() != "queued" || run.Conclusion != nil || run.CompletedAt != nil {
		t.Fatalf("%+v", run)
	}
	run, _, err = b.gh.Checks.UpdateCheckRun(b.ctx, "acme", "site", run.GetID(), github.UpdateCheckRunOptions{Name: "fenceline", Status: str("in_progress"), Output: out("Working")})
	b.must(err)
	if run.GetStatus() != "in_progress" || run.Conclusion != nil {
		t.Fatalf("%+v", run)
	}
	// A conclusion alone completes it.
	req, err := b.gh.NewRequest(http.MethodPatch, fmt.Sprintf("repos/acme/site/check-runs/%d", run.GetID()), map[string]any{"conclusion": "failure", "output": map[string]any{"title": "Done", "summary": "s"}})
	b.must(err)
	_, err = b.gh.Do(b.ctx, req, run)
	b.must(err)
	if run.GetStatus() != "completed" || run.GetConclusion() != "failure" || run.CompletedAt == nil || run.GetExternalID() != "run" {
		t.Fatalf("%+v", run)
	}
	truth, err := b.ctl.CheckRuns(b.ctx, b.repo.ID, head)
	b.must(err)
	var have []string
	for _, v := range truth[0].History {
		have = append(have, v.Status+" "+v.Conclusion+" "+v.Title)
	}
	if diff := cmp.Diff([]string{"queued  Queued", "in_progress  Working", "completed failure Done"}, have); diff != "" {
		t.Fatal(diff)
	}
}

// TestAnnotationsAreAppendedAndNeverReplaced: a repeated update repeats its annotations.
func TestAnnotationsAreAppendedAndNeverReplaced(t *testing.T) {
	b := newBench(t)
	head := b.open().HeadSHA
	output := func(n int) *github.CheckRunOutput {
		return &github.CheckRunOutput{Title: github.String("t"), Summary: github.String("s"), Annotations: annotations(n)}
	}
	run, _, err := b.gh.Checks.CreateCheckRun(b.ctx, "acme", "site", github.CreateCheckRunOptions{Name: "x", HeadSHA: head, Output: output(50)})
	b.must(err)
	update := github.UpdateCheckRunOptions{Name: "x", Status: github.String("in_progress"), Output: output(50)}
	b.fault(control.Fault{Class: "checks.update", Times: 1, Lose: control.LoseClose})
	if _, _, err := b.plain().Checks.UpdateCheckRun(b.ctx, "acme", "site", run.GetID(), update); err == nil {
		t.Fatal("the answer is lost")
	}
	got, _, err := b.gh.Checks.GetCheckRun(b.ctx, "acme", "site", run.GetID())
	b.must(err)
	if got.GetOutput().GetAnnotationsCount() != 100 {
		t.Fatalf("a writer that counts first sees %d", got.GetOutput().GetAnnotationsCount())
	}
	got, _, err = b.gh.Checks.UpdateCheckRun(b.ctx, "acme", "site", run.GetID(), update)
	b.must(err)
	if got.GetOutput().GetAnnotationsCount() != 150 {
		t.Fatalf("one that does not count repeats them: %d", got.GetOutput().GetAnnotationsCount())
	}
	list, res, err := b.gh.Checks.ListCheckRunAnnotations(b.ctx, "acme", "site", run.GetID(), &github.ListOptions{PerPage: 100})
	b.must(err)
	if len(list) != 100 || res.NextPage != 2 {
		t.Fatalf("%d, next page %d", len(list), res.NextPage)
	}
	page, err := b.ctl.Page(b.ctx, b.repo.ID, 1)
	b.must(err)
	if len(page.Checks) != 1 || len(page.Checks[0].AnnotationList) != 150 || page.Checks[0].AnnotationList[1].StartLine != 2 || page.Checks[0].AnnotationList[1].Level != "warning" {
		t.Fatalf("%+v", page.Checks)
	}
	update.Output = output(51)
	_, _, err = b.gh.Checks.UpdateCheckRun(b.ctx, "acme", "site", run.GetID(), update)
	refused(t, err, 422, "", "")
}

func TestAnnotationsGitHubRefuses(t *testing.T) {
	b := newBench(t)
	head := b.repo.Branches["feature"]
	token := b.mint(nil)
	good := `"path":"a","start_line":3,"end_line":3,"annotation_level":"notice","message":"m"`
	for name, c := range map[string]struct {
		annotation string
		status     int
	}{
		"good":                 {good, 201},
		"columns on one line":  {good + `,"start_column":1,"end_column":4`, 201},
		"no level":             {`"path":"a","start_line":3,"end_line":3,"message":"m"`, 422},
		"another level":        {strings.Replace(good, "notice", "error", 1), 422},
		"it ends before":       {strings.Replace(good, `"end_line":3`, `"end_line":2`, 1), 422},
		"columns on two lines": {strings.Replace(good, `"end_line":3`, `"end_line":4`, 1) + `,"start_column":1`, 422},
		"line 0":               {strings.Replace(good, `"start_line":3`, `"start_line":0`, 1), 422},
		"a long message":       {strings.Replace(good, `"m"`, `"`+strings.Repeat("m", 64<<10+1)+`"`, 1), 422},
		"a long title":         {good + `,"title":"` + strings.Repeat("ä", 256) + `"`, 422},
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"name":"x","head_sha":"` + head + `","output":{"title":"t","summary":"s","annotations":[{` + good + `},{` + c.annotation + `}]}}`
			if got := b.raw(http.MethodPost, "/repos/acme/site/check-runs", token, body); got.status != c.status {
				t.Fatalf("%d %s", got.status, got.body)
			}
		})
	}
}

// TestButtonsOfACheckRun: its actions are offered while it says so, and a click is told.
func TestButtonsOfACheckRun(t *testing.T) {
	b := newBench(t)
	head := b.open().HeadSHA
	run, _, err := b.gh.Checks.CreateCheckRun(b.ctx, "acme", "site", github.CreateCheckRunOptions{
		Name: "x", HeadSHA: head, Conclusion: github.String("neutral"),
		Actions: []*github.CheckRunAction{{Label: "Re-run", Description: "Review once more", Identifier: "rerun"}},
	})
	b.must(err)
	d, err := b.ctl.RequestAction(b.ctx, run.GetID(), control.RequestAction{Identifier: "rerun", Options: control.Options{Sender: "ann"}})
	b.must(err)
	got := b.last([]control.Delivery{d}, "check_run")
	checkHook(t, "check_run", "requested_action", got.body)
	if !strings.Contains(string(got.body), `"identifier":"rerun"`) {
		t.Fatalf("%s", got.body)
	}
	if _, err := b.ctl.RequestAction(b.ctx, run.GetID(), control.RequestAction{Identifier: "other"}); err == nil {
		t.Fatal("no such button")
	}
}

// TestAThousandRunsOfAName: older ones of the same suite are dropped.
func TestAThousandRunsOfAName(t *testing.T) {
	b := newBench(t)
	head := b.repo.Branches["feature"]
	var first int64
	token := b.mint(nil)
	for i := range 1001 {
		body := `{"name":"x","head_sha":"` + head + `"}`
		if got := b.raw(http.MethodPost, "/repos/acme/site/check-runs", token, body); got.status != http.StatusCreated {
			t.Fatalf("%d: %s", i, got.body)
		}
		if i == 0 {
			list, _, err := b.gh.Checks.ListCheckRunsForRef(b.ctx, "acme", "site", head, nil)
			b.must(err)
			first = list.CheckRuns[0].GetID()
		}
	}
	_, _, err := b.gh.Checks.GetCheckRun(b.ctx, "acme", "site", first)
	refused(t, err, 404, "", "")
	list, _, err := b.gh.Checks.ListCheckRunsForRef(b.ctx, "acme", "site", head, &github.ListCheckRunsOptions{Filter: github.String("all")})
	b.must(err)
	if list.GetTotal() != 1000 {
		t.Fatalf("%d runs", list.GetTotal())
	}
}

// TestReactionsOfInlineComments: the same rules there, and none at all in a locked conversation.
func TestReactionsOfInlineComments(t *testing.T) {
	b := newBench(t)
	b.wide()
	c := b.comment("of the conversation")
	_, err := b.review(&github.PullRequestReviewRequest{Event: github.String("COMMENT"), Body: github.String("b"), Comments: []*github.DraftReviewComment{onLine("wide.txt", 5, "inline")}})
	b.must(err)
	list, _ := b.remarks(&github.PullRequestListCommentsOptions{})
	id := list[0].GetID()
	_, _, err = b.gh.Reactions.CreatePullRequestCommentReaction(b.ctx, "acme", "site", id, "eyes")
	b.must(err)
	_, res, err := b.gh.Reactions.CreatePullRequestCommentReaction(b.ctx, "acme", "site", id, "eyes")
	b.must(err)
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	all, _, err := b.gh.Reactions.ListPullRequestCommentReactions(b.ctx, "acme", "site", id, nil)
	b.must(err)
	if len(all) != 1 || all[0].GetContent() != "eyes" {
		t.Fatalf("%v", all)
	}
	b.act(control.Act{Action: control.Lock})
	_, _, err = b.gh.Reactions.CreatePullRequestCommentReaction(b.ctx, "acme", "site", id, "heart")
	refused(t, err, 403, "", "")
	_, _, err = b.gh.Reactions.CreateIssueCommentReaction(b.ctx, "acme", "site", c.GetID(), "heart")
	refused(t, err, 403, "", "")
}
