package githubsim_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-github/v66/github"
)

func TestAPullRequestIsReadComparedAndCommentedOn(t *testing.T) {
	b := newBench(t)
	p := b.open()
	pr, _, err := b.gh.PullRequests.Get(b.ctx, "acme", "site", 1)
	b.must(err)
	if pr.GetHead().GetSHA() != p.HeadSHA || pr.Mergeable != nil {
		t.Fatalf("head %s, mergeable %v", pr.GetHead().GetSHA(), pr.Mergeable)
	}
	pr, _, err = b.gh.PullRequests.Get(b.ctx, "acme", "site", 1)
	b.must(err)
	if !pr.GetMergeable() {
		t.Fatal("the second read knows whether it merges")
	}
	cmp, _, err := b.gh.Repositories.CompareCommits(b.ctx, "acme", "site", "main", p.HeadSHA, nil)
	b.must(err)
	if len(cmp.Files) != 1 || cmp.Files[0].GetPatch() == "" || cmp.GetMergeBaseCommit().GetSHA() != p.BaseSHA {
		t.Fatalf("compare: %+v", cmp)
	}
	c, _, err := b.gh.Issues.CreateComment(b.ctx, "acme", "site", 1, &github.IssueComment{Body: github.String("hello")})
	b.must(err)
	if c.GetUser().GetLogin() != "fenceline[bot]" {
		t.Fatal(c.GetUser())
	}
	raw, _ := json.Marshal(cmp.Files[0])
	t.Log(string(raw))
	for _, r := range b.hook.list() {
		t.Log(len(r.body), r.header)
	}
}
