package githubsim_test

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim"
	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

func (b *bench) push(p control.Push) control.Pushed {
	b.t.Helper()
	out, err := b.ctl.Push(b.ctx, b.repo.ID, p)
	b.must(err)
	return out
}

// TestForcePushAndBackAgain goes A -> B -> A: every step is a synchronize, and A is the same sha.
func TestForcePushAndBackAgain(t *testing.T) {
	b := newBench(t)
	first := b.open()
	onto := []control.Commit{{Parent: "main", Message: "Another way", Files: map[string]string{"main.go": "rewritten\n"}}}
	if _, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "feature", Commits: onto}); err == nil {
		t.Fatal("a push that loses commits needs force")
	}
	away := b.push(control.Push{Branch: "feature", Commits: onto, Force: true})
	if away.Before != first.HeadSHA || len(away.Pulls) != 1 || away.Pulls[0].HeadSHA != away.After {
		t.Fatalf("%+v", away)
	}
	pr, _, err := b.getPull()
	b.must(err)
	if pr.GetHead().GetSHA() != away.After || pr.Mergeable != nil {
		t.Fatalf("%s", pr.GetHead().GetSHA())
	}
	back := b.push(control.Push{Branch: "feature", SHA: first.HeadSHA, Force: true})
	if back.After != first.HeadSHA || back.Before != away.After {
		t.Fatalf("%+v", back)
	}
	pr, _, err = b.getPull()
	b.must(err)
	if pr.GetHead().GetSHA() != first.HeadSHA || pr.GetAdditions() != 1 {
		t.Fatalf("%s", pr.GetHead().GetSHA())
	}
	if same := b.push(control.Push{Branch: "feature", SHA: first.HeadSHA}); len(same.Deliveries) != 0 {
		t.Fatal("a push of nothing new tells nobody")
	}
	// What was force-pushed away can still be read, as on GitHub.
	_, _, err = b.gh.Repositories.GetCommit(b.ctx, "acme", "site", away.After, nil)
	b.must(err)
}

func TestAdvancingTheBaseTellsNobody(t *testing.T) {
	b := newBench(t, func(c *githubsim.Config) { c.Events = []string{"pull_request"} })
	first := b.open()
	moved := b.push(control.Push{Branch: "main", Commits: []control.Commit{{Files: map[string]string{"other": "x"}}}})
	if len(moved.Pulls) != 0 || len(moved.Deliveries) != 0 {
		t.Fatalf("%+v", moved)
	}
	pr, _, err := b.getPull()
	b.must(err)
	if pr.GetBase().GetSHA() != first.BaseSHA {
		t.Fatal("base.sha stays behind until the pull request itself moves")
	}
	cmp, _, err := b.gh.Repositories.CompareCommits(b.ctx, "acme", "site", "main", first.HeadSHA, nil)
	b.must(err)
	if cmp.GetBaseCommit().GetSHA() != moved.After || cmp.GetMergeBaseCommit().GetSHA() != first.BaseSHA {
		t.Fatal("the comparison has the base as it is")
	}
}

func TestConflictsAreDirty(t *testing.T) {
	b := newBench(t)
	b.open()
	b.push(control.Push{Branch: "main", Commits: []control.Commit{{Files: map[string]string{"main.go": "something else\n"}}}})
	b.push(control.Push{Branch: "feature", Commits: []control.Commit{{Files: map[string]string{"y": "y"}}}})
	_, _, err := b.getPull()
	b.must(err)
	pr, _, err := b.getPull()
	b.must(err)
	if pr.Mergeable == nil || *pr.Mergeable || pr.GetMergeableState() != "dirty" {
		t.Fatalf("mergeable %v, %s", pr.Mergeable, pr.GetMergeableState())
	}
	if _, err := b.ctl.Act(b.ctx, b.repo.ID, 1, control.Act{Action: control.Merge}); err == nil {
		t.Fatal("merged in spite of a conflict")
	}
}

func TestPushesWhileClosedCountAtReopen(t *testing.T) {
	b := newBench(t)
	first := b.open()
	b.act(control.Act{Action: control.Close})
	later := b.push(control.Push{Branch: "feature", Commits: []control.Commit{{Files: map[string]string{"x": "y"}}}})
	if len(later.Pulls) != 0 {
		t.Fatal("a closed pull request does not move")
	}
	pr, _, err := b.getPull()
	b.must(err)
	if pr.GetHead().GetSHA() != first.HeadSHA || pr.ClosedAt == nil {
		t.Fatal("it keeps its head")
	}
	out := b.act(control.Act{Action: control.Reopen})
	if out.Pull.HeadSHA != later.After || out.Pull.State != "open" {
		t.Fatalf("%+v", out.Pull)
	}
	squash := b.act(control.Act{Action: control.Merge, Squash: true})
	repo, err := b.ctl.GetRepository(b.ctx, b.repo.ID)
	b.must(err)
	commit, _, err := b.gh.Repositories.GetCommit(b.ctx, "acme", "site", repo.Branches["main"], nil)
	b.must(err)
	if !squash.Pull.Merged || len(commit.Parents) != 1 {
		t.Fatalf("%d parents", len(commit.Parents))
	}
}

func TestForksThatGo(t *testing.T) {
	b := newBench(t)
	fork, err := b.ctl.CreateRepository(b.ctx, control.NewRepository{Owner: "eve", Name: "site", ForkOf: "acme/site"})
	b.must(err)
	pushed, err := b.ctl.Push(b.ctx, fork.ID, control.Push{Branch: "patch", Commits: []control.Commit{{Files: map[string]string{"evil": "x\n"}}}})
	b.must(err)
	out, err := b.ctl.OpenPull(b.ctx, b.repo.ID, control.OpenPull{Head: "eve:patch", Options: control.Options{Sender: "eve"}})
	b.must(err)
	checkHook(t, "pull_request", "opened", b.last(out.Deliveries, "pull_request").body)
	pr, _, err := b.getPull()
	b.must(err)
	if !pr.GetHead().GetRepo().GetFork() || pr.GetHead().GetLabel() != "eve:patch" || pr.GetHead().GetSHA() != pushed.After {
		t.Fatalf("%+v", pr.GetHead())
	}
	cmp, _, err := b.gh.Repositories.CompareCommits(b.ctx, "acme", "site", "main", "eve:patch", nil)
	b.must(err)
	if len(cmp.Files) != 1 || cmp.Files[0].GetFilename() != "evil" {
		t.Fatalf("%+v", cmp.Files)
	}
	run, _, err := b.gh.Checks.CreateCheckRun(b.ctx, "acme", "site", github.CreateCheckRunOptions{Name: "fenceline", HeadSHA: pushed.After})
	b.must(err)
	if len(run.PullRequests) != 0 {
		t.Fatal("heads of forks are not listed")
	}
	moved, err := b.ctl.Push(b.ctx, fork.ID, control.Push{Branch: "patch", Commits: []control.Commit{{Files: map[string]string{"evil": "xx\n"}}}})
	b.must(err)
	if len(moved.Pulls) != 1 || moved.Pulls[0].RepositoryID != b.repo.ID || len(moved.Deliveries) != 1 {
		t.Fatalf("a push to the fork moves the pull request: %+v", moved)
	}
	b.must(b.ctl.DeleteRepository(b.ctx, fork.ID, control.Options{}))
	pr, _, err = b.plain().PullRequests.Get(b.ctx, "acme", "site", 1)
	b.must(err)
	if pr.GetHead().Repo != nil {
		t.Fatal("the fork is gone")
	}
	files, _, err := b.gh.PullRequests.ListFiles(b.ctx, "acme", "site", 1, nil)
	b.must(err)
	if len(files) != 1 {
		t.Fatalf("its commits are not: %d files", len(files))
	}
	b.must(b.ctl.DeleteRepository(b.ctx, b.repo.ID, control.Options{}))
	_, _, err = b.gh.Repositories.GetByID(b.ctx, b.repo.ID)
	refused(t, err, http.StatusNotFound, "", "")
}

// TestAnyLocalRepository copies revisions of a work tree and pushes from it.
func TestAnyLocalRepository(t *testing.T) {
	b := newBench(t)
	tree := filepath.Join(t.TempDir(), "tree")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", tree, "-c", "user.name=A", "-c", "user.email=a@example.test"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if out, err := exec.Command("git", "init", "-q", "-b", "trunk", tree).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	git("commit", "-q", "--allow-empty", "-m", "one")
	git("tag", "v1")
	git("commit", "-q", "--allow-empty", "-m", "two")
	picked, err := b.ctl.CreateRepository(b.ctx, control.NewRepository{Owner: "acme", Name: "picked", DefaultBranch: "main", FromPath: tree, Refs: map[string]string{"main": "v1", "change": "HEAD"}})
	b.must(err)
	if len(picked.Branches) != 2 || picked.Branches["main"] == picked.Branches["change"] {
		t.Fatalf("%v", picked.Branches)
	}
	whole, err := b.ctl.CreateRepository(b.ctx, control.NewRepository{Owner: "acme", Name: "whole", DefaultBranch: "trunk", FromPath: filepath.Join(tree, ".git")})
	b.must(err)
	if whole.Branches["trunk"] != picked.Branches["change"] {
		t.Fatalf("%v", whole.Branches)
	}
	git("commit", "-q", "--allow-empty", "-m", "three")
	out, err := b.ctl.Push(b.ctx, picked.ID, control.Push{Branch: "change", FromPath: tree})
	b.must(err)
	if out.Before != picked.Branches["change"] || out.After == out.Before {
		t.Fatalf("%+v", out)
	}
	for name, in := range map[string]control.NewRepository{
		"no repository": {Owner: "acme", Name: "x", FromPath: t.TempDir()}, "no revision": {Owner: "acme", Name: "y", FromPath: tree, Refs: map[string]string{"main": "none"}},
		"no name": {Owner: "acme"}, "taken": {Owner: "acme", Name: "site"}, "no parent": {Owner: "eve", Name: "z", ForkOf: "acme/none"},
	} {
		if _, err := b.ctl.CreateRepository(b.ctx, in); err == nil {
			t.Errorf("%s: made", name)
		}
	}
}

func TestPeopleEditAndDeleteAnyComment(t *testing.T) {
	b := newBench(t)
	b.open()
	mine := b.comment("the App's")
	_, err := b.ctl.EditComment(b.ctx, mine.GetID(), control.NewComment{Body: "a person's now", Options: control.Options{Sender: "ann"}})
	b.must(err)
	got, _, err := b.gh.Issues.GetComment(b.ctx, "acme", "site", mine.GetID())
	b.must(err)
	if got.GetBody() != "a person's now" || got.GetUser().GetLogin() != "fenceline[bot]" {
		t.Fatalf("%q by %s", got.GetBody(), got.GetUser().GetLogin())
	}
	_, err = b.ctl.DeleteComment(b.ctx, mine.GetID(), control.Options{Sender: "ann"})
	b.must(err)
	_, _, err = b.gh.Issues.EditComment(b.ctx, "acme", "site", mine.GetID(), &github.IssueComment{Body: github.String("x")})
	refused(t, err, 404, "", "")
	truth := b.truth()
	if len(truth) != 1 || truth[0].DeletedAt == nil || len(truth[0].History) != 3 || truth[0].History[1].By != "ann" {
		t.Fatalf("%+v", truth)
	}
}
