package githubsim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestKnobsTurnForEveryWrite turns each of them at each write of the services.
func TestKnobsTurnForEveryWrite(t *testing.T) {
	b := newBench(t)
	_, err := b.ctl.SetPermissions(b.ctx, b.inst.ID, control.Permissions{Permissions: map[string]string{
		"metadata": "read", "contents": "read", "pull_requests": "write", "checks": "write", "statuses": "write",
	}})
	b.must(err)
	head := b.open().HeadSHA
	b.gh = b.tokenClient(b.mint(nil))
	review, err := b.review(&github.PullRequestReviewRequest{Event: github.String("COMMENT"), Body: github.String("b"), Comments: []*github.DraftReviewComment{onLine("main.go", 21, "m")}})
	b.must(err)
	remarks, _ := b.remarks(&github.PullRequestListCommentsOptions{})
	run, _, err := b.gh.Checks.CreateCheckRun(b.ctx, "acme", "site", github.CreateCheckRunOptions{Name: "x", HeadSHA: head})
	b.must(err)
	comment, token := b.comment("c"), b.mint(nil)
	for class, c := range map[string]struct {
		method, path, body string
		status             int
	}{
		"comments.create":        {"POST", "/issues/1/comments", `{"body":"x"}`, 201},
		"comments.update":        {"PATCH", fmt.Sprintf("/issues/comments/%d", comment.GetID()), `{"body":"x"}`, 200},
		"reactions.create":       {"POST", fmt.Sprintf("/issues/comments/%d/reactions", comment.GetID()), `{"content":"eyes"}`, 200},
		"reviews.create":         {"POST", "/pulls/1/reviews", `{"event":"COMMENT","body":"b"}`, 200},
		"reviews.update":         {"PUT", fmt.Sprintf("/pulls/1/reviews/%d", review.GetID()), `{"body":"x"}`, 200},
		"review_comments.update": {"PATCH", fmt.Sprintf("/pulls/comments/%d", remarks[0].GetID()), `{"body":"x"}`, 200},
		"statuses.create":        {"POST", "/statuses/" + head, `{"state":"success"}`, 201},
		"checks.create":          {"POST", "/check-runs", `{"name":"x","head_sha":"` + head + `"}`, 201},
		"checks.update":          {"PATCH", fmt.Sprintf("/check-runs/%d", run.GetID()), `{"conclusion":"neutral"}`, 200},
	} {
		t.Run(class, func(t *testing.T) {
			send := func() answer { return b.raw(c.method, "/repos/acme/site"+c.path, token, c.body) }
			with := func(f control.Fault) (answer, control.Request) {
				f.Class, f.Times = class, 1
				b.fault(f)
				got := send()
				log, err := b.ctl.Requests(b.ctx, control.RequestFilter{Class: class})
				b.must(err)
				return got, log[len(log)-1]
			}
			if got := send(); got.status != c.status && class != "reactions.create" {
				t.Fatalf("%d %s", got.status, got.body)
			}
			if got, log := with(control.Fault{Lose: control.Lose502}); got.status != 502 || !log.Handled || log.Answered || log.Status != c.status {
				t.Errorf("lost: %d, %+v", got.status, log)
			}
			if got, log := with(control.Fault{Error: &control.ErrorFault{Status: 502, HTML: true}}); got.status != 502 || log.Handled || !strings.HasPrefix(string(got.body), "<html>") {
				t.Errorf("a page: %d, %+v", got.status, log)
			}
			if got, log := with(control.Fault{Delay: control.Duration(time.Millisecond)}); got.status != c.status || !log.Handled {
				t.Errorf("slow: %d, %+v", got.status, log)
			}
			for _, limit := range []control.LimitFault{{}, {Status: 429}, {Secondary: true, RetryAfter: 1}, {Secondary: true, Status: 429}} {
				want := max(limit.Status, 403)
				if got, log := with(control.Fault{Limit: &limit}); got.status != want || log.Handled || !log.Limited {
					t.Errorf("limited: %d, %+v", got.status, log)
				}
			}
		})
	}
}

// TestAConnectionThatClosesFirst writes nothing.
func TestAConnectionThatClosesFirst(t *testing.T) {
	b := newBench(t)
	b.open()
	b.fault(control.Fault{Class: "comments.create", Times: 1, Error: &control.ErrorFault{Close: true}})
	_, _, err := b.gh.Issues.CreateComment(b.ctx, "acme", "site", 1, &github.IssueComment{Body: github.String("gone")})
	if err == nil || len(b.truth()) != 0 {
		t.Fatalf("%v, %d comments", err, len(b.truth()))
	}
	b.comment("and again")
}
