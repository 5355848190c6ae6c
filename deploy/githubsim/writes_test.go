package githubsim_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

func (b *bench) comment(body string) *github.IssueComment {
	b.t.Helper()
	c, res, err := b.gh.Issues.CreateComment(b.ctx, "acme", "site", 1, &github.IssueComment{Body: &body})
	b.must(err)
	if res.StatusCode != http.StatusCreated || res.Header.Get("Location") != c.GetURL() {
		b.t.Fatalf("create: %s, Location %q", res.Status, res.Header.Get("Location"))
	}
	return c
}

// allComments reads every page.
func (b *bench) allComments(opts *github.IssueListCommentsOptions) (list []*github.IssueComment, pages int) {
	b.t.Helper()
	for {
		part, res, err := b.gh.Issues.ListComments(b.ctx, "acme", "site", 1, opts)
		b.must(err)
		list, pages = append(list, part...), pages+1
		if res.NextPage == 0 {
			return list, pages
		}
		opts.Page = res.NextPage
	}
}

func TestCommentsLiveAndDie(t *testing.T) {
	b := newBench(t)
	b.open()
	c := b.comment("first")
	if c.GetUser().GetLogin() != "fenceline[bot]" || c.GetUser().GetType() != "Bot" {
		t.Fatalf("author %v", c.GetUser())
	}
	bot, _, err := b.gh.Users.Get(b.ctx, "fenceline[bot]")
	b.must(err)
	if bot.GetID() != c.GetUser().GetID() {
		t.Fatalf("the bot is %d and %d", bot.GetID(), c.GetUser().GetID())
	}
	again := b.comment("first")
	if again.GetID() == c.GetID() {
		t.Fatal("two creates are two comments")
	}
	edited, _, err := b.gh.Issues.EditComment(b.ctx, "acme", "site", c.GetID(), &github.IssueComment{Body: github.String("second")})
	b.must(err)
	got, _, err := b.gh.Issues.GetComment(b.ctx, "acme", "site", c.GetID())
	b.must(err)
	if edited.GetBody() != "second" || got.GetBody() != "second" {
		t.Fatalf("%q, %q", edited.GetBody(), got.GetBody())
	}
	_, err = b.gh.Issues.DeleteComment(b.ctx, "acme", "site", again.GetID())
	b.must(err)
	if res, err := b.gh.Issues.DeleteComment(b.ctx, "acme", "site", again.GetID()); err == nil || res.StatusCode != http.StatusNotFound {
		t.Fatalf("deleted twice: %v", err)
	}
	if _, res, err := b.gh.Issues.GetComment(b.ctx, "acme", "site", again.GetID()); err == nil || res.StatusCode != http.StatusNotFound {
		t.Fatalf("read after delete: %v", err)
	}
	truth, err := b.ctl.Comments(b.ctx, b.repo.ID, 1)
	b.must(err)
	if len(truth) != 2 || len(truth[0].History) != 2 || truth[0].Body != "second" || truth[1].DeletedAt == nil {
		t.Fatalf("truth %+v", truth)
	}
}

func TestCommentsPageByRepositoryID(t *testing.T) {
	b := newBench(t)
	b.open()
	for range 5 {
		b.comment("one of five")
	}
	list, pages := b.allComments(&github.IssueListCommentsOptions{Sort: github.String("created"), Direction: github.String("desc"), ListOptions: github.ListOptions{PerPage: 2}})
	if len(list) != 5 || pages != 3 {
		t.Fatalf("%d comments on %d pages", len(list), pages)
	}
	for i := 1; i < len(list); i++ {
		if list[i].GetID() <= list[i-1].GetID() {
			t.Fatal("oldest first, whatever is asked for")
		}
	}
	_, res, err := b.gh.Issues.ListComments(b.ctx, "acme", "site", 1, &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 2}})
	b.must(err)
	if link := res.Header.Get("Link"); !strings.Contains(link, "/repositories/") || !strings.Contains(link, `rel="last"`) {
		t.Fatalf("Link %s", link)
	}
	all, _, err := b.gh.Issues.ListComments(b.ctx, "acme", "site", 0, nil)
	b.must(err)
	if len(all) != 5 {
		t.Fatalf("number 0 lists the repository: %d", len(all))
	}
}

func TestCommentsSince(t *testing.T) {
	at := &clock{now: time.Now()}
	b := newBench(t, withClock(at))
	b.open()
	b.comment("old")
	at.Add(5 * time.Minute)
	b.comment("new")
	since := at.Now().Add(-time.Minute)
	list, _ := b.allComments(&github.IssueListCommentsOptions{Since: &since})
	if len(list) != 1 || list[0].GetBody() != "new" {
		t.Fatalf("%d comments", len(list))
	}
}

// TestRefusedComments holds each refusal against the errors GitHub gives.
func TestRefusedComments(t *testing.T) {
	b := newBench(t)
	b.open()
	_, err := b.ctl.Comment(b.ctx, b.repo.ID, 1, control.NewComment{Body: "a person's", Options: control.Options{Sender: "ann"}})
	b.must(err)
	mine, theirs := b.comment("mine"), int64(0)
	list, _ := b.allComments(&github.IssueListCommentsOptions{})
	theirs = list[0].GetID()
	create := func(body string) error {
		_, _, err := b.gh.Issues.CreateComment(b.ctx, "acme", "site", 1, &github.IssueComment{Body: &body})
		return err
	}
	edit := func(id int64, body string) error {
		_, _, err := b.gh.Issues.EditComment(b.ctx, "acme", "site", id, &github.IssueComment{Body: &body})
		return err
	}
	long := strings.Repeat("ä", 65537)
	b.must(create(long[:2*65536])) // characters count, not bytes
	refused(t, create(long), 422, "unprocessable", "data")
	refused(t, edit(mine.GetID(), long), 422, "custom", "body")
	refused(t, create(""), 422, "missing_field", "body")
	refused(t, edit(theirs, "taken over"), 403, "", "")
	refused(t, edit(1, "nobody's"), 404, "", "")
	_, err = b.ctl.Act(b.ctx, b.repo.ID, 1, control.Act{Action: control.Lock})
	b.must(err)
	refused(t, create("locked"), 403, "", "")
}

// refused checks an error's status, code and field; the words are GitHub's to change.
func refused(t *testing.T, err error, status int, code, field string) {
	t.Helper()
	var e *github.ErrorResponse
	if !errors.As(err, &e) || e.Response.StatusCode != status {
		t.Errorf("want %d, got %v", status, err)
		return
	}
	if code != "" && (len(e.Errors) != 1 || e.Errors[0].Code != code || e.Errors[0].Field != field) {
		t.Errorf("want %s of %s, got %+v", code, field, e.Errors)
	}
}

func TestReactionsAreIdempotent(t *testing.T) {
	b := newBench(t)
	b.open()
	c := b.comment("hm")
	first, res, err := b.gh.Reactions.CreateIssueCommentReaction(b.ctx, "acme", "site", c.GetID(), "eyes")
	b.must(err)
	if res.StatusCode != http.StatusCreated {
		t.Fatal(res.Status)
	}
	second, res, err := b.gh.Reactions.CreateIssueCommentReaction(b.ctx, "acme", "site", c.GetID(), "eyes")
	b.must(err)
	if res.StatusCode != http.StatusOK || first.GetID() != second.GetID() {
		t.Fatalf("again: %s", res.Status)
	}
	list, _, err := b.gh.Reactions.ListIssueCommentReactions(b.ctx, "acme", "site", c.GetID(), nil)
	b.must(err)
	if len(list) != 1 || list[0].GetContent() != "eyes" {
		t.Fatalf("%v", list)
	}
	_, _, err = b.gh.Reactions.CreateIssueCommentReaction(b.ctx, "acme", "site", c.GetID(), "shrug")
	refused(t, err, 422, "invalid", "content")
}

func TestCheckRunsConcludeAndAppend(t *testing.T) {
	b := newBench(t)
	p := b.open()
	open := github.CreateCheckRunOptions{
		Name: "fenceline", HeadSHA: p.HeadSHA, ExternalID: github.String("run-1"), Status: github.String("in_progress"),
		Output: &github.CheckRunOutput{Title: github.String("Reviewing"), Summary: github.String("…"), Annotations: annotations(2)},
	}
	run, _, err := b.gh.Checks.CreateCheckRun(b.ctx, "acme", "site", open)
	b.must(err)
	if run.GetStatus() != "in_progress" || run.Conclusion != nil || len(run.PullRequests) != 1 || run.GetApp().GetID() != 424242 {
		t.Fatalf("%+v", run)
	}
	done := github.UpdateCheckRunOptions{
		Status: github.String("completed"), Conclusion: github.String("neutral"),
		Output: &github.CheckRunOutput{Title: github.String("Done"), Summary: github.String("2"), Annotations: annotations(3)},
	}
	run, _, err = b.gh.Checks.UpdateCheckRun(b.ctx, "acme", "site", run.GetID(), done)
	b.must(err)
	if run.GetName() != "fenceline" || run.GetConclusion() != "neutral" || run.CompletedAt == nil || run.GetOutput().GetAnnotationsCount() != 5 {
		t.Fatalf("%+v", run)
	}
	listed, _, err := b.gh.Checks.ListCheckRunAnnotations(b.ctx, "acme", "site", run.GetID(), nil)
	b.must(err)
	if len(listed) != 5 {
		t.Fatalf("%d annotations", len(listed))
	}
	twin, _, err := b.gh.Checks.CreateCheckRun(b.ctx, "acme", "site", open)
	b.must(err)
	list := func(filter string) int {
		out, _, err := b.gh.Checks.ListCheckRunsForRef(b.ctx, "acme", "site", "feature", &github.ListCheckRunsOptions{
			CheckName: github.String("fenceline"), AppID: github.Int64(424242), Filter: github.String(filter),
		})
		b.must(err)
		if out.GetTotal() != len(out.CheckRuns) || out.CheckRuns[0].GetID() != twin.GetID() {
			t.Fatalf("%s: %d", filter, out.GetTotal())
		}
		return out.GetTotal()
	}
	if list("latest") != 1 || list("all") != 2 {
		t.Fatal("the same external id twice makes two runs, of which latest shows one")
	}
	got, _, err := b.gh.Checks.GetCheckRun(b.ctx, "acme", "site", run.GetID())
	b.must(err)
	truth, err := b.ctl.CheckRuns(b.ctx, b.repo.ID, p.HeadSHA)
	b.must(err)
	if len(truth) != 2 || truth[0].ID != got.GetID() || truth[0].Conclusion != "neutral" || truth[0].Updates != 1 || truth[0].Annotations != 5 {
		t.Fatalf("truth %+v", truth)
	}
}

func annotations(n int) []*github.CheckRunAnnotation {
	list := make([]*github.CheckRunAnnotation, n)
	for i := range list {
		list[i] = &github.CheckRunAnnotation{
			Path: github.String("main.go"), StartLine: github.Int(i + 1), EndLine: github.Int(i + 1),
			AnnotationLevel: github.String("warning"), Message: github.String("hm"),
		}
	}
	return list
}

func TestRefusedCheckRuns(t *testing.T) {
	b := newBench(t)
	head := b.repo.Branches["feature"]
	out := func(title string, n int) *github.CheckRunOutput {
		o := &github.CheckRunOutput{Summary: github.String("s"), Annotations: annotations(n)}
		if title != "" {
			o.Title = &title
		}
		return o
	}
	for name, opts := range map[string]github.CreateCheckRunOptions{
		"no name":            {HeadSHA: head},
		"no head":            {Name: "x"},
		"unknown head":       {Name: "x", HeadSHA: strings.Repeat("1", 40)},
		"a branch as head":   {Name: "x", HeadSHA: "feature"},
		"status":             {Name: "x", HeadSHA: head, Status: github.String("done")},
		"no conclusion":      {Name: "x", HeadSHA: head, Status: github.String("completed")},
		"stale is GitHub's":  {Name: "x", HeadSHA: head, Conclusion: github.String("stale")},
		"no title":           {Name: "x", HeadSHA: head, Output: out("", 0)},
		"51 annotations":     {Name: "x", HeadSHA: head, Output: out("t", 51)},
		"a long summary":     {Name: "x", HeadSHA: head, Output: &github.CheckRunOutput{Title: github.String("t"), Summary: github.String(strings.Repeat("ä", 65536))}},
		"four actions":       {Name: "x", HeadSHA: head, Actions: make([]*github.CheckRunAction, 4)},
		"annotation at zero": {Name: "x", HeadSHA: head, Output: &github.CheckRunOutput{Title: github.String("t"), Summary: github.String("s"), Annotations: []*github.CheckRunAnnotation{{Path: github.String("a"), StartLine: github.Int(0), EndLine: github.Int(1), AnnotationLevel: github.String("notice"), Message: github.String("m")}}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := b.gh.Checks.CreateCheckRun(b.ctx, "acme", "site", opts)
			refused(t, err, 422, "", "")
		})
	}
	truth, err := b.ctl.CheckRuns(b.ctx, b.repo.ID, "")
	b.must(err)
	if len(truth) != 0 {
		t.Fatalf("%d check runs", len(truth))
	}
}
