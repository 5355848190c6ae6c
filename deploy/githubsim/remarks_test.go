package githubsim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestPeopleAmongReviews: what people write is not the App's to change, and they may change what it wrote.
func TestPeopleAmongReviews(t *testing.T) {
	b := newBench(t)
	b.wide()
	mine, err := b.review(&github.PullRequestReviewRequest{Event: github.String("COMMENT"), Body: github.String("mine"), Comments: []*github.DraftReviewComment{onLine("wide.txt", 5, "mine")}})
	b.must(err)
	bob := control.Options{Sender: "bob"}
	theirs, err := b.ctl.Review(b.ctx, b.repo.ID, 1, control.NewReview{Event: "APPROVE", Body: "fine", Comments: []control.NewRemark{{Path: "wide.txt", StartLine: 30, Line: 31, Body: "nice"}}, Options: bob})
	b.must(err)
	_, _, err = b.gh.PullRequests.UpdateReview(b.ctx, "acme", "site", 1, theirs.ID, "taken over")
	refused(t, err, 403, "", "")
	_, _, err = b.gh.PullRequests.EditComment(b.ctx, "acme", "site", theirs.Comments[0].ID, &github.PullRequestComment{Body: github.String("taken over")})
	refused(t, err, 403, "", "")
	_, err = b.gh.PullRequests.DeleteComment(b.ctx, "acme", "site", theirs.Comments[0].ID)
	refused(t, err, 403, "", "")
	list, _ := b.remarks(&github.PullRequestListCommentsOptions{})
	_, err = b.ctl.ReplyTo(b.ctx, list[0].GetID(), control.NewComment{Body: "why?", Options: bob})
	b.must(err)
	_, err = b.ctl.EditReviewComment(b.ctx, list[0].GetID(), control.NewComment{Body: "edited by bob", Options: bob})
	b.must(err)
	_, err = b.ctl.EditReview(b.ctx, mine.GetID(), control.NewComment{Body: "body by bob", Options: bob})
	b.must(err)
	list, _ = b.remarks(&github.PullRequestListCommentsOptions{})
	if len(list) != 3 || list[0].GetBody() != "edited by bob" || list[2].GetInReplyTo() != list[0].GetID() || list[1].GetStartLine() != 30 {
		t.Fatalf("%v", list)
	}
	_, err = b.ctl.DeleteReviewComment(b.ctx, list[0].GetID(), bob)
	b.must(err)
	truth, err := b.ctl.Reviews(b.ctx, b.repo.ID, 1)
	b.must(err)
	if truth[0].Body != "body by bob" || truth[0].Comments[0].DeletedAt == nil || len(truth[0].Comments[0].History) != 3 {
		t.Fatalf("%+v", truth[0])
	}
	page, err := b.ctl.Page(b.ctx, b.repo.ID, 1)
	b.must(err)
	if len(page.Reviews) != 3 || len(page.Reviews[0].Comments) != 0 {
		t.Fatalf("%+v", page.Reviews)
	}
}

// TestRemarksFollowTheirLines pushes above a comment, and onto it.
func TestRemarksFollowTheirLines(t *testing.T) {
	b := newBench(t)
	first := b.wide()
	_, err := b.review(&github.PullRequestReviewRequest{CommitID: &first.HeadSHA, Event: github.String("COMMENT"), Body: github.String("b"), Comments: []*github.DraftReviewComment{
		onLine("wide.txt", 31, "stays"), onLine("wide.txt", 5, "goes"), {Path: github.String("wide.txt"), Line: github.Int(5), Side: github.String("LEFT"), Body: github.String("left stays")},
	}})
	b.must(err)
	pushed := func(change func([]string) []string) control.Pushed {
		t.Helper()
		file, _, _, err := b.gh.Repositories.GetContents(b.ctx, "acme", "site", "wide.txt", &github.RepositoryContentGetOptions{Ref: "feature"})
		b.must(err)
		text, err := file.GetContent()
		b.must(err)
		out, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "feature", Commits: []control.Commit{{Files: map[string]string{"wide.txt": strings.Join(change(strings.Split(text, "\n")), "\n")}}}})
		b.must(err)
		return out
	}
	next := pushed(func(l []string) []string {
		return append([]string{l[0], "inserted", l[1], l[2], l[3], "FIVE"}, l[5:]...)
	})
	list, _ := b.remarks(&github.PullRequestListCommentsOptions{})
	if got := list[0]; got.GetLine() != 32 || got.GetOriginalLine() != 31 || got.GetCommitID() != next.After || got.GetOriginalCommitID() != first.HeadSHA || got.GetPosition() == got.GetOriginalPosition() {
		t.Fatalf("%+v", got)
	}
	if got := list[1]; got.Line != nil || got.Position != nil || got.GetOriginalLine() != 5 || got.GetCommitID() != first.HeadSHA {
		t.Fatalf("what its push changed is outdated: %+v", got)
	}
	if got := list[2]; got.GetLine() != 5 || got.GetSide() != "LEFT" {
		t.Fatalf("%+v", got)
	}
	// A review of the older commit is taken, and placed in the newer diff at once.
	_, err = b.review(&github.PullRequestReviewRequest{CommitID: &first.HeadSHA, Event: github.String("COMMENT"), Body: github.String("late"), Comments: []*github.DraftReviewComment{onLine("wide.txt", 32, "late")}})
	b.must(err)
	list, _ = b.remarks(&github.PullRequestListCommentsOptions{})
	if got := list[3]; got.GetLine() != 33 || got.GetOriginalLine() != 32 || got.GetCommitID() != next.After {
		t.Fatalf("%+v", got)
	}
	// What was pushed while the pull request was closed counts at its reopening.
	b.act(control.Act{Action: control.Close})
	pushed(func(l []string) []string { return append([]string{"first"}, l...) })
	if list, _ = b.remarks(&github.PullRequestListCommentsOptions{}); list[0].GetLine() != 32 {
		t.Fatalf("closed: line %d", list[0].GetLine())
	}
	b.act(control.Act{Action: control.Reopen})
	if list, _ = b.remarks(&github.PullRequestListCommentsOptions{}); list[0].GetLine() != 33 || list[1].Position != nil {
		t.Fatalf("reopened: line %d", list[0].GetLine())
	}
	// Forced away, the old commit is none of the pull request's any more.
	_, err = b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "feature", Force: true, Commits: []control.Commit{{Parent: "main", Files: map[string]string{"wide.txt": "all\nnew\n"}}}})
	b.must(err)
	_, err = b.review(&github.PullRequestReviewRequest{CommitID: &first.HeadSHA, Event: github.String("COMMENT"), Body: github.String("too late")})
	refusedReview(t, err, "commit_id is not part")
}

func TestRemarksSinceAndSorted(t *testing.T) {
	at := &clock{now: time.Now()}
	b := newBench(t, withClock(at))
	b.wide()
	for _, body := range []string{"1", "2", "3"} {
		_, err := b.review(&github.PullRequestReviewRequest{Event: github.String("COMMENT"), Body: github.String("b"), Comments: []*github.DraftReviewComment{onLine("wide.txt", 5, body)}})
		b.must(err)
		at.Add(time.Minute)
	}
	all, _ := b.remarks(&github.PullRequestListCommentsOptions{})
	_, _, err := b.gh.PullRequests.EditComment(b.ctx, "acme", "site", all[0].GetID(), &github.PullRequestComment{Body: github.String("1 edited")})
	b.must(err)
	bodies := func(opts *github.PullRequestListCommentsOptions) string {
		t.Helper()
		list, _ := b.remarks(opts)
		var out []string
		for _, m := range list {
			out = append(out, m.GetBody())
		}
		return strings.Join(out, " | ")
	}
	for want, opts := range map[string]*github.PullRequestListCommentsOptions{
		"1 edited | 2 | 3":  {Direction: "desc"}, // ignored without sort
		"3 | 2 | 1 edited":  {Sort: "created", Direction: "desc"},
		"2 | 3 | 1 edited":  {Sort: "updated"},
		"1 edited":          {Since: at.Now().Add(-30 * time.Second)},
		"1 edited | 2 | 3 ": {ListOptions: github.ListOptions{PerPage: 1}},
	} {
		if got := bodies(opts); got != strings.TrimSpace(want) {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}

// TestReviewFaults: the knobs work for reviews as for comments.
func TestReviewFaults(t *testing.T) {
	b := newBench(t)
	b.wide()
	in := &github.PullRequestReviewRequest{Event: github.String("COMMENT"), Body: github.String("b"), Comments: []*github.DraftReviewComment{onLine("wide.txt", 5, "m")}}
	listed := func() (reviews, comments int) {
		t.Helper()
		list, _, err := b.gh.PullRequests.ListReviews(b.ctx, "acme", "site", 1, nil)
		b.must(err)
		remarks, _ := b.remarks(&github.PullRequestListCommentsOptions{})
		return len(list), len(remarks)
	}
	b.fault(control.Fault{Class: "reviews.create", Times: 1, Lose: control.Lose502})
	_, res, err := b.plain().PullRequests.CreateReview(b.ctx, "acme", "site", 1, in)
	if err == nil || res.StatusCode != 502 {
		t.Fatalf("%v", err)
	}
	if r, m := listed(); r != 1 || m != 1 {
		t.Fatalf("the answer was lost, not the review: %d, %d", r, m)
	}
	b.fault(control.Fault{Class: "reviews.create", Times: 1, Hide: &control.HideFault{For: control.Duration(time.Hour)}})
	hidden, err := b.review(in)
	b.must(err)
	if r, m := listed(); r != 1 || m != 1 {
		t.Fatalf("hidden: %d, %d", r, m)
	}
	_, _, err = b.gh.PullRequests.GetReview(b.ctx, "acme", "site", 1, hidden.GetID())
	b.must(err)
	b.must(b.ctl.Settle(b.ctx))
	if r, m := listed(); r != 2 || m != 2 {
		t.Fatalf("settled: %d, %d", r, m)
	}
	b.fault(control.Fault{Class: "reviews.create", Times: 1, Error: &control.ErrorFault{Status: 502, HTML: true}})
	_, _, err = b.plain().PullRequests.CreateReview(b.ctx, "acme", "site", 1, in)
	if r, _ := listed(); err == nil || r != 2 {
		t.Fatalf("%d reviews, %v", r, err)
	}
	b.fault(control.Fault{Class: "reviews.create", Times: 1, Limit: &control.LimitFault{Secondary: true, Status: 429}})
	_, err = b.review(in)
	refused(t, err, 429, "", "")
}
