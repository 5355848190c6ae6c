package githubsim_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim"
	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// withEvents subscribes to reviews beside what is subscribed by default.
func withEvents(c *githubsim.Config) {
	c.Events = []string{"pull_request", "pull_request_review", "pull_request_review_comment"}
}

// onLine is an inline comment on the right side.
func onLine(path string, line int, body string) *github.DraftReviewComment {
	return &github.DraftReviewComment{Path: &path, Line: &line, Side: github.String("RIGHT"), Body: &body}
}

func (b *bench) review(in *github.PullRequestReviewRequest) (*github.PullRequestReview, error) {
	b.t.Helper()
	r, res, err := b.gh.PullRequests.CreateReview(b.ctx, "acme", "site", 1, in)
	if err == nil && res.StatusCode != http.StatusOK {
		b.t.Fatalf("a review answers 200, not %s", res.Status)
	}
	return r, err
}

func (b *bench) remarks(opts *github.PullRequestListCommentsOptions) (list []*github.PullRequestComment, pages int) {
	b.t.Helper()
	for {
		part, res, err := b.gh.PullRequests.ListComments(b.ctx, "acme", "site", 1, opts)
		b.must(err)
		list, pages = append(list, part...), pages+1
		if res.NextPage == 0 {
			return list, pages
		}
		opts.Page = res.NextPage
	}
}

// wide opens a pull request that changes a file in two places: 40 lines, of which 5 and 30 change, and 31 and 32
// are new.
func (b *bench) wide() control.Pull {
	b.t.Helper()
	before := strings.Split(strings.TrimSuffix(lines(40), "\n"), "\n")
	after := append([]string{}, before...)
	after[4], after[29] = "five", "thirty\nthirty-one\nthirty-two"
	_, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "main", Commits: []control.Commit{{Files: map[string]string{"wide.txt": strings.Join(before, "\n") + "\n"}}}})
	b.must(err)
	_, err = b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "feature", Force: true, Commits: []control.Commit{{
		Parent: "main", Files: map[string]string{"wide.txt": strings.Join(after, "\n") + "\n"}, Binary: map[string][]byte{"logo.png": {0, 1, 2}},
	}}})
	b.must(err)
	return b.open()
}

// TestAnchorsAreCheckedAgainstTheDiff puts one comment at a time where it may and may not stand.
func TestAnchorsAreCheckedAgainstTheDiff(t *testing.T) {
	b := newBench(t)
	b.wide()
	at := func(c github.DraftReviewComment) *github.DraftReviewComment {
		if c.Path == nil {
			c.Path = github.String("wide.txt")
		}
		c.Body = github.String("hm")
		return &c
	}
	num, str := github.Int, github.String
	const path, line, span = "path is invalid", "line must be part of the diff and", "start line must be part of the same hunk"
	for name, c := range map[string]struct {
		comment *github.DraftReviewComment
		wrong   string
	}{
		"an added line":              {at(github.DraftReviewComment{Line: num(31), Side: str("RIGHT")}), ""},
		"side is right by default":   {at(github.DraftReviewComment{Line: num(31)}), ""},
		"a context line":             {at(github.DraftReviewComment{Line: num(2), Side: str("RIGHT")}), ""},
		"the last context line":      {at(github.DraftReviewComment{Line: num(35), Side: str("RIGHT")}), ""},
		"a removed line":             {at(github.DraftReviewComment{Line: num(5), Side: str("LEFT")}), ""},
		"a range":                    {at(github.DraftReviewComment{StartLine: num(29), StartSide: str("RIGHT"), Line: num(32), Side: str("RIGHT")}), ""},
		"from left to right":         {at(github.DraftReviewComment{StartLine: num(30), StartSide: str("LEFT"), Line: num(32), Side: str("RIGHT")}), ""},
		"a position":                 {at(github.DraftReviewComment{Position: num(1)}), ""},
		"a position of a later hunk": {at(github.DraftReviewComment{Position: num(13)}), ""},
		"between the hunks":          {at(github.DraftReviewComment{Line: num(15), Side: str("RIGHT")}), line},
		"after the last hunk":        {at(github.DraftReviewComment{Line: num(36), Side: str("RIGHT")}), line},
		"line 0":                     {at(github.DraftReviewComment{Line: num(0), Side: str("RIGHT")}), line},
		"an added line on the left":  {at(github.DraftReviewComment{Line: num(36), Side: str("LEFT")}), line},
		"a range over two hunks":     {at(github.DraftReviewComment{StartLine: num(5), Line: num(31), Side: str("RIGHT")}), span},
		"a range that begins before": {at(github.DraftReviewComment{StartLine: num(20), Line: num(31), Side: str("RIGHT")}), span},
		"a range that ends after":    {at(github.DraftReviewComment{StartLine: num(31), Line: num(39), Side: str("RIGHT")}), "line must be part of the diff, "},
		"a range of one line":        {at(github.DraftReviewComment{StartLine: num(31), Line: num(31), Side: str("RIGHT")}), "must precede the end line"},
		"a range backwards":          {at(github.DraftReviewComment{StartLine: num(32), Line: num(31), Side: str("RIGHT")}), "must precede the end line"},
		"a file that did not change": {at(github.DraftReviewComment{Path: str("README.md"), Line: num(1), Side: str("RIGHT")}), path},
		"no such file":               {at(github.DraftReviewComment{Path: str("none"), Line: num(1), Side: str("RIGHT")}), path},
		"a binary file":              {at(github.DraftReviewComment{Path: str("logo.png"), Line: num(1), Side: str("RIGHT")}), line},
		"a position at a header":     {at(github.DraftReviewComment{Position: num(9)}), "position is invalid"},
		"a position past the end":    {at(github.DraftReviewComment{Position: num(99)}), "position is invalid"},
		"no place at all":            {at(github.DraftReviewComment{}), "position is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.review(&github.PullRequestReviewRequest{Event: github.String("COMMENT"), Body: github.String("b"), Comments: []*github.DraftReviewComment{c.comment}})
			if c.wrong == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			refusedReview(t, err, c.wrong)
		})
	}
}

// refusedReview checks a 422 of the reviews API: strings that do not name an entry.
func refusedReview(t *testing.T, err error, words string) {
	t.Helper()
	var e *github.ErrorResponse
	if !errors.As(err, &e) || e.Response.StatusCode != http.StatusUnprocessableEntity || e.Message != "Unprocessable Entity" {
		t.Fatalf("want 422, got %v", err)
	}
	if len(e.Errors) != 1 || !strings.Contains(e.Errors[0].Message, words) || e.Errors[0].Field != "" {
		t.Fatalf("want %q, got %+v", words, e.Errors)
	}
}

// TestAReviewIsAllOrNothing has one bad comment among three hundred.
func TestAReviewIsAllOrNothing(t *testing.T) {
	b := newBench(t)
	p := b.wide()
	in := &github.PullRequestReviewRequest{CommitID: &p.HeadSHA, Event: github.String("COMMENT"), Body: github.String("Summary")}
	for i := range 299 {
		in.Comments = append(in.Comments, onLine("wide.txt", 27+i%9, "hm"))
	}
	in.Comments = append(in.Comments, onLine("wide.txt", 39, "hm"))
	_, err := b.review(in)
	refusedReview(t, err, "line must be part of the diff and")
	if list, err := b.ctl.Reviews(b.ctx, b.repo.ID, 1); err != nil || len(list) != 0 {
		t.Fatalf("%d reviews, %v", len(list), err)
	}
	in.Comments = in.Comments[:299]
	r, err := b.review(in)
	b.must(err)
	if r.GetState() != "COMMENTED" || r.GetCommitID() != p.HeadSHA || r.SubmittedAt == nil || r.GetUser().GetLogin() != "fenceline[bot]" {
		t.Fatalf("%+v", r)
	}
	again, err := b.review(in)
	b.must(err)
	if again.GetID() == r.GetID() {
		t.Fatal("two creates are two reviews")
	}
	list, pages := b.remarks(&github.PullRequestListCommentsOptions{ListOptions: github.ListOptions{PerPage: 100}})
	if len(list) != 598 || pages != 6 || list[0].GetPullRequestReviewID() != r.GetID() {
		t.Fatalf("%d comments on %d pages", len(list), pages)
	}
	page, err := b.ctl.Page(b.ctx, b.repo.ID, 1)
	b.must(err)
	if len(page.Reviews) != 2 || len(page.Reviews[0].Comments) != 299 || page.Reviews[0].Comments[3].Line != 30 {
		t.Fatalf("%d reviews on the page", len(page.Reviews))
	}
}

func TestRefusedReviews(t *testing.T) {
	b := newBench(t)
	b.wide()
	_, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "own", SHA: "feature"})
	b.must(err)
	_, err = b.ctl.OpenPull(b.ctx, b.repo.ID, control.OpenPull{Head: "own", Options: control.Options{Sender: "fenceline[bot]"}})
	b.must(err)
	str := github.String
	long := strings.Repeat("ä", 65537)
	for name, c := range map[string]struct {
		in    github.PullRequestReviewRequest
		wrong string
	}{
		"a comment without a body":       {github.PullRequestReviewRequest{Event: str("COMMENT")}, "body can't be blank"},
		"changes without a body":         {github.PullRequestReviewRequest{Event: str("REQUEST_CHANGES"), Body: str(" ")}, "body can't be blank"},
		"a commit of elsewhere":          {github.PullRequestReviewRequest{Event: str("COMMENT"), Body: str("b"), CommitID: str(b.repo.Branches["main"])}, "commit_id is not part"},
		"a long body":                    {github.PullRequestReviewRequest{Event: str("COMMENT"), Body: &long}, "too long"},
		"an inline comment without text": {github.PullRequestReviewRequest{Event: str("COMMENT"), Body: str("b"), Comments: []*github.DraftReviewComment{onLine("wide.txt", 5, "")}}, "body can't be blank"},
		"a long inline comment":          {github.PullRequestReviewRequest{Event: str("COMMENT"), Body: str("b"), Comments: []*github.DraftReviewComment{onLine("wide.txt", 5, long)}}, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.review(&c.in)
			refusedReview(t, err, c.wrong)
		})
	}
	for event, wrong := range map[string]string{"APPROVE": "Can not approve your own", "REQUEST_CHANGES": "Can not request changes on your own"} {
		_, _, err := b.gh.PullRequests.CreateReview(b.ctx, "acme", "site", 2, &github.PullRequestReviewRequest{Event: &event, Body: str("b")})
		refusedReview(t, err, wrong)
	}
	own, _, err := b.gh.PullRequests.CreateReview(b.ctx, "acme", "site", 2, &github.PullRequestReviewRequest{Event: str("COMMENT"), Body: str("b")})
	b.must(err)
	if own.GetState() != "COMMENTED" {
		t.Fatal("a comment on one's own is fine")
	}
	_, err = b.review(&github.PullRequestReviewRequest{Event: str("APPROVE")})
	b.must(err)
	_, err = b.review(&github.PullRequestReviewRequest{Event: str("PRAISE"), Body: str("b")})
	refused(t, err, 422, "", "")
	b.act(control.Act{Action: control.Lock})
	_, err = b.review(&github.PullRequestReviewRequest{Event: str("COMMENT"), Body: str("b")})
	refused(t, err, 403, "", "")
	_, _, err = b.gh.PullRequests.CreateReview(b.ctx, "acme", "site", 9, &github.PullRequestReviewRequest{Event: str("COMMENT"), Body: str("b")})
	refused(t, err, 404, "", "")
}

// TestPendingReviews: without an event a review waits, blocks the next one, and nobody else sees it.
func TestPendingReviews(t *testing.T) {
	b := newBench(t, withEvents)
	b.wide()
	person, err := b.ctl.Review(b.ctx, b.repo.ID, 1, control.NewReview{Body: "a person's draft", Comments: []control.NewRemark{{Path: "wide.txt", Line: 5, Body: "draft"}}, Options: control.Options{Sender: "bob"}})
	b.must(err)
	if person.State != "PENDING" || len(person.Deliveries) != 0 {
		t.Fatalf("%+v", person)
	}
	reviews := func() []*github.PullRequestReview {
		t.Helper()
		list, _, err := b.gh.PullRequests.ListReviews(b.ctx, "acme", "site", 1, nil)
		b.must(err)
		return list
	}
	if n := len(reviews()); n != 0 {
		t.Fatalf("another's pending review is listed: %d", n)
	}
	_, _, err = b.gh.PullRequests.GetReview(b.ctx, "acme", "site", 1, person.ID)
	refused(t, err, 404, "", "")
	_, _, err = b.gh.PullRequests.GetComment(b.ctx, "acme", "site", person.Comments[0].ID)
	refused(t, err, 404, "", "")
	mine, err := b.review(&github.PullRequestReviewRequest{Comments: []*github.DraftReviewComment{onLine("wide.txt", 5, "mine")}})
	b.must(err)
	if mine.GetState() != "PENDING" || mine.SubmittedAt != nil || len(reviews()) != 1 {
		t.Fatalf("%+v", mine)
	}
	if list, _ := b.remarks(&github.PullRequestListCommentsOptions{}); len(list) != 0 {
		t.Fatalf("comments of pending reviews are listed: %d", len(list))
	}
	for _, event := range []*string{nil, github.String("COMMENT")} {
		_, err = b.review(&github.PullRequestReviewRequest{Event: event, Body: github.String("b")})
		refusedReview(t, err, "User can only have one pending review per pull request")
	}
	page, err := b.ctl.Page(b.ctx, b.repo.ID, 1)
	b.must(err)
	if len(page.Reviews) != 0 {
		t.Fatal("what is pending is on no page")
	}
	gone, _, err := b.gh.PullRequests.DeletePendingReview(b.ctx, "acme", "site", 1, mine.GetID())
	b.must(err)
	if gone.GetID() != mine.GetID() || len(reviews()) != 0 {
		t.Fatal("a pending review is deleted")
	}
	mine, err = b.review(&github.PullRequestReviewRequest{Comments: []*github.DraftReviewComment{onLine("wide.txt", 5, "mine")}})
	b.must(err)
	_, _, err = b.gh.PullRequests.SubmitReview(b.ctx, "acme", "site", 1, mine.GetID(), &github.PullRequestReviewRequest{Event: github.String("COMMENT")})
	refusedReview(t, err, "body can't be blank")
	done, _, err := b.gh.PullRequests.SubmitReview(b.ctx, "acme", "site", 1, mine.GetID(), &github.PullRequestReviewRequest{Event: github.String("COMMENT"), Body: github.String("now")})
	b.must(err)
	if done.GetState() != "COMMENTED" || done.GetBody() != "now" || done.SubmittedAt == nil {
		t.Fatalf("%+v", done)
	}
	_, _, err = b.gh.PullRequests.SubmitReview(b.ctx, "acme", "site", 1, mine.GetID(), &github.PullRequestReviewRequest{Event: github.String("COMMENT"), Body: github.String("again")})
	refused(t, err, 422, "", "")
	_, _, err = b.gh.PullRequests.DeletePendingReview(b.ctx, "acme", "site", 1, mine.GetID())
	refusedReview(t, err, "non-pending")
	if list, _ := b.remarks(&github.PullRequestListCommentsOptions{}); len(list) != 1 {
		t.Fatalf("%d comments", len(list))
	}
}

// TestReviewsAreReadEditedAndTold goes through one review's life, and through what the App hears of it.
func TestReviewsAreReadEditedAndTold(t *testing.T) {
	b := newBench(t, withEvents)
	p := b.wide()
	r, err := b.review(&github.PullRequestReviewRequest{
		CommitID: &p.HeadSHA, Event: github.String("COMMENT"), Body: github.String("two remarks"),
		Comments: []*github.DraftReviewComment{onLine("wide.txt", 5, "one"), {Path: github.String("wide.txt"), StartLine: github.Int(30), Line: github.Int(32), Side: github.String("RIGHT"), Body: github.String("two")}},
	})
	b.must(err)
	edited, _, err := b.gh.PullRequests.UpdateReview(b.ctx, "acme", "site", 1, r.GetID(), "still two")
	b.must(err)
	got, _, err := b.gh.PullRequests.GetReview(b.ctx, "acme", "site", 1, r.GetID())
	b.must(err)
	if edited.GetBody() != "still two" || got.GetBody() != "still two" || got.GetState() != "COMMENTED" {
		t.Fatalf("%+v", got)
	}
	of, _, err := b.gh.PullRequests.ListReviewComments(b.ctx, "acme", "site", 1, r.GetID(), nil)
	b.must(err)
	if len(of) != 2 || of[0].GetBody() != "one" || of[0].GetPosition() == 0 || of[0].Line != nil {
		t.Fatalf("a review's own list has positions and no lines: %v", of)
	}
	list, _ := b.remarks(&github.PullRequestListCommentsOptions{})
	two := list[1]
	if two.GetLine() != 32 || two.GetStartLine() != 30 || two.GetSide() != "RIGHT" || two.GetStartSide() != "RIGHT" || two.GetPath() != "wide.txt" || !strings.HasSuffix(two.GetDiffHunk(), "+thirty-two") {
		t.Fatalf("%+v", two)
	}
	two, _, err = b.gh.PullRequests.EditComment(b.ctx, "acme", "site", two.GetID(), &github.PullRequestComment{Body: github.String("two, resolved")})
	b.must(err)
	again, _, err := b.gh.PullRequests.GetComment(b.ctx, "acme", "site", two.GetID())
	b.must(err)
	if again.GetBody() != "two, resolved" {
		t.Fatalf("%q", again.GetBody())
	}
	_, err = b.gh.PullRequests.DeleteComment(b.ctx, "acme", "site", list[0].GetID())
	b.must(err)
	_, err = b.gh.PullRequests.DeleteComment(b.ctx, "acme", "site", list[0].GetID())
	refused(t, err, 404, "", "")
	pr, _, err := b.getPull()
	b.must(err)
	if pr.GetReviewComments() != 1 {
		t.Fatalf("%d review comments are counted", pr.GetReviewComments())
	}
	told, err := b.ctl.Deliveries(b.ctx)
	b.must(err)
	var have []string
	for _, d := range told {
		if !strings.HasPrefix(d.Event, "pull_request_review") {
			continue
		}
		payload := b.last([]control.Delivery{d}, d.Event)
		checkHook(t, d.Event, d.Action, payload.body)
		var body struct{ Sender struct{ Login string } }
		b.must(json.Unmarshal(payload.body, &body))
		have = append(have, d.Event+"."+d.Action+" "+body.Sender.Login)
	}
	want := []string{
		"pull_request_review.submitted fenceline[bot]", "pull_request_review_comment.created fenceline[bot]", "pull_request_review_comment.created fenceline[bot]",
		"pull_request_review.edited fenceline[bot]", "pull_request_review_comment.edited fenceline[bot]", "pull_request_review_comment.deleted fenceline[bot]",
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Fatal(diff)
	}
}
