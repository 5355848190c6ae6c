package githubsim_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim"
	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// withStatuses grants statuses in place of checks.
func withStatuses(c *githubsim.Config) {
	c.Permissions = map[string]string{"metadata": "read", "contents": "read", "pull_requests": "write", "statuses": "write"}
}

func (b *bench) status(sha, state, name, description string) (*github.RepoStatus, error) {
	s, _, err := b.gh.Repositories.CreateStatus(b.ctx, "acme", "site", sha, &github.RepoStatus{State: &state, Context: &name, Description: &description})
	return s, err
}

func TestCommitStatuses(t *testing.T) {
	b := newBench(t, withStatuses)
	head := b.open().HeadSHA
	first, err := b.status(head, "pending", "fenceline", "queued")
	b.must(err)
	second, err := b.status(head, "success", "Fenceline", "done")
	b.must(err)
	_, err = b.status(head, "failure", "other", "no")
	b.must(err)
	if first.GetID() == second.GetID() || first.GetCreator().GetLogin() != "fenceline[bot]" || first.GetContext() != "fenceline" {
		t.Fatalf("%+v", first)
	}
	list, res, err := b.gh.Repositories.ListStatuses(b.ctx, "acme", "site", "feature", &github.ListOptions{PerPage: 2})
	b.must(err)
	if len(list) != 2 || res.NextPage != 2 || list[1].GetDescription() != "done" {
		t.Fatalf("newest first, paged: %v", list)
	}
	all, _, err := b.gh.Repositories.GetCombinedStatus(b.ctx, "acme", "site", head, nil)
	b.must(err)
	if all.GetState() != "failure" || all.GetTotalCount() != 2 || all.GetSHA() != head {
		t.Fatalf("%+v", all)
	}
	_, err = b.status(head, "success", "other", "")
	b.must(err)
	page, err := b.ctl.Page(b.ctx, b.repo.ID, 1)
	b.must(err)
	if len(page.Statuses) != 2 || page.Statuses[0].State != "success" || page.Statuses[0].Context != "Fenceline" {
		t.Fatalf("%+v", page.Statuses)
	}
	truth, err := b.ctl.Statuses(b.ctx, b.repo.ID, head)
	b.must(err)
	if len(truth) != 4 || truth[0].Description != "queued" {
		t.Fatalf("%+v", truth)
	}
	b.fault(control.Fault{Class: "statuses.create", Times: 1, Hide: &control.HideFault{For: control.Duration(time.Hour)}})
	_, err = b.status(head, "error", "other", "hidden")
	b.must(err)
	if all, _, err = b.gh.Repositories.GetCombinedStatus(b.ctx, "acme", "site", head, nil); err != nil || all.GetState() != "success" {
		t.Fatalf("%v %s", err, all.GetState())
	}
	b.must(b.ctl.Settle(b.ctx))
	if all, _, err = b.gh.Repositories.GetCombinedStatus(b.ctx, "acme", "site", head, nil); err != nil || all.GetState() != "failure" {
		t.Fatalf("%v %s", err, all.GetState())
	}
}

func TestRefusedStatuses(t *testing.T) {
	b := newBench(t, withStatuses)
	head := b.repo.Branches["feature"]
	_, err := b.status(head, "success", "x", strings.Repeat("ä", 140))
	b.must(err)
	_, err = b.status(head, "success", "x", strings.Repeat("ä", 141))
	refused(t, err, 422, "custom", "description")
	_, err = b.status(head, "neutral", "x", "")
	refused(t, err, 422, "custom", "state")
	for _, sha := range []string{strings.Repeat("1", 40), "feature"} {
		_, err = b.status(sha, "success", "x", "")
		refused(t, err, 422, "", "")
	}
	_, _, err = b.gh.Repositories.CreateStatus(b.ctx, "acme", "site", head, &github.RepoStatus{State: github.String("success"), TargetURL: github.String("javascript:alert(1)")})
	refused(t, err, 422, "custom", "target_url")
	_, _, err = b.gh.Checks.CreateCheckRun(b.ctx, "acme", "site", github.CreateCheckRunOptions{Name: "x", HeadSHA: head})
	refused(t, err, 403, "", "")
}

func TestAThousandStatusesOfAContext(t *testing.T) {
	b := newBench(t, withStatuses)
	head := b.repo.Branches["feature"]
	for range 1000 {
		_, err := b.status(head, "pending", "x", "")
		b.must(err)
	}
	_, err := b.status(head, "success", "X", "")
	refused(t, err, 422, "", "")
	_, err = b.status(head, "success", "y", "")
	b.must(err)
}

// TestPermissionsAreTheInstallations: what an installation grants can change while the App is at work.
func TestPermissionsAreTheInstallations(t *testing.T) {
	b := newBench(t)
	head := b.open().HeadSHA
	_, err := b.status(head, "success", "x", "")
	refused(t, err, 403, "", "")
	in, err := b.ctl.SetPermissions(b.ctx, b.inst.ID, control.Permissions{Permissions: map[string]string{
		"metadata": "read", "contents": "read", "pull_requests": "write", "statuses": "write",
	}})
	b.must(err)
	got := b.last(in.Deliveries, "installation")
	checkHook(t, "installation", "new_permissions_accepted", got.body)
	// A token keeps no more than its installation grants, and gets no more than it was minted with.
	_, res, err := b.gh.Checks.CreateCheckRun(b.ctx, "acme", "site", github.CreateCheckRunOptions{Name: "x", HeadSHA: head})
	refused(t, err, 403, "", "")
	if need := res.Header.Get("X-Accepted-GitHub-Permissions"); need != "checks=write" || res.StatusCode != http.StatusForbidden {
		t.Errorf("needs %q", need)
	}
	_, err = b.status(head, "success", "x", "")
	refused(t, err, 403, "", "")
	b.gh = b.tokenClient(b.mint(nil))
	_, err = b.status(head, "success", "x", "")
	b.must(err)
	// Without checks, nothing is heard of check suites.
	out := b.push(control.Push{Branch: "feature", Commits: []control.Commit{{Files: map[string]string{"x": "y\n"}}}})
	if len(out.Deliveries) != 1 || out.Deliveries[0].Event != "pull_request" {
		t.Fatalf("%+v", out.Deliveries)
	}
}
