package githubsim_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

func TestAPullRequestIsRead(t *testing.T) {
	b := newBench(t)
	p := b.open()
	pr, _, err := b.gh.PullRequests.Get(b.ctx, "acme", "site", 1)
	b.must(err)
	if pr.GetHead().GetSHA() != p.HeadSHA || pr.Mergeable != nil || pr.GetMergeCommitSHA() != "" {
		t.Fatalf("first read: head %s, mergeable %v, merge %s", pr.GetHead().GetSHA(), pr.Mergeable, pr.GetMergeCommitSHA())
	}
	pr, _, err = b.gh.PullRequests.Get(b.ctx, "acme", "site", 1)
	b.must(err)
	if !pr.GetMergeable() || pr.GetMergeCommitSHA() == "" {
		t.Fatal("the second read knows whether it merges")
	}
	if pr.GetUser().GetLogin() != "ann" || pr.GetTitle() != "Change main" || pr.GetAdditions() != 1 || pr.GetChangedFiles() != 1 {
		t.Fatalf("%+v", pr)
	}
	list, _, err := b.gh.PullRequests.List(b.ctx, "acme", "site", nil)
	b.must(err)
	if len(list) != 1 || list[0].GetNumber() != 1 {
		t.Fatalf("%d pull requests", len(list))
	}
	commits, _, err := b.gh.PullRequests.ListCommits(b.ctx, "acme", "site", 1, nil)
	b.must(err)
	if len(commits) != 1 || commits[0].GetSHA() != p.HeadSHA {
		t.Fatalf("%d commits", len(commits))
	}
	if _, res, err := b.gh.PullRequests.Get(b.ctx, "acme", "site", 9); err == nil || res.StatusCode != 404 {
		t.Fatalf("a pull request that is not there: %v", err)
	}
}

// TestNumericAndEnterprisePaths reads one pull request by its repository's id, and below /api/v3.
func TestNumericAndEnterprisePaths(t *testing.T) {
	b := newBench(t)
	b.open()
	for _, path := range []string{
		fmt.Sprintf("repositories/%d/pulls/1", b.repo.ID), fmt.Sprintf("api/v3/repositories/%d/pulls/1", b.repo.ID),
		"api/v3/repos/acme/site/pulls/1", "repos/ACME/Site/pulls/1",
	} {
		var pr github.PullRequest
		res := b.get(path, &pr)
		if res.StatusCode == http.StatusMovedPermanently || pr.GetNumber() != 1 {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	for _, path := range []string{"repos/acme/site/pulls/1/", "repos/acme/site//pulls/1", "repos/acme/none", "repositories/1", "nothing"} {
		req, err := b.gh.NewRequest(http.MethodGet, path, nil)
		b.must(err)
		if res, err := b.gh.Do(b.ctx, req, nil); err == nil || res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// get reads a path with the installation's token.
func (b *bench) get(path string, into any) *github.Response {
	b.t.Helper()
	req, err := b.gh.NewRequest(http.MethodGet, path, nil)
	b.must(err)
	res, err := b.gh.Do(b.ctx, req, into)
	b.must(err)
	return res
}

// TestCompareIsGits moves base and head apart and compares with what git says.
func TestCompareIsGits(t *testing.T) {
	b := newBench(t)
	begin := b.repo.Branches["main"]
	_, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "main", Commits: []control.Commit{{Files: map[string]string{"other.txt": "x\n"}}}})
	b.must(err)
	_, err = b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "topic/a", SHA: begin})
	b.must(err)
	out, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "topic/a", Commits: []control.Commit{{
		Message: "All kinds", Rename: map[string]string{"old.txt": "new name.txt"}, Delete: []string{"README.md"},
		Files:    map[string]string{"main.go": lines(19) + "changed\n", "ü.txt": "no newline"},
		Binary:   map[string][]byte{"logo.png": {0, 1, 2, 255}},
		Symlinks: map[string]string{"link": "main.go"},
	}}})
	b.must(err)
	got, _, err := b.gh.Repositories.CompareCommits(b.ctx, "acme", "site", "main", "topic/a", nil)
	b.must(err)
	if got.GetStatus() != "diverged" || got.GetAheadBy() != 1 || got.GetBehindBy() != 1 || got.GetTotalCommits() != 1 {
		t.Fatalf("%s, %d ahead, %d behind", got.GetStatus(), got.GetAheadBy(), got.GetBehindBy())
	}
	if got.GetMergeBaseCommit().GetSHA() != begin || got.GetBaseCommit().GetSHA() == begin || got.Commits[0].GetSHA() != out.After {
		t.Fatalf("merge base %s, base %s", got.GetMergeBaseCommit().GetSHA(), got.GetBaseCommit().GetSHA())
	}
	type file struct {
		Status, Previous string
		Add, Del         int
		Patch            bool
	}
	files := map[string]file{}
	for _, f := range got.Files {
		files[f.GetFilename()] = file{f.GetStatus(), f.GetPreviousFilename(), f.GetAdditions(), f.GetDeletions(), f.Patch != nil}
	}
	want := map[string]file{
		"README.md": {"removed", "", 0, 1, true}, "main.go": {"modified", "", 1, 1, true},
		"new name.txt": {"renamed", "old.txt", 0, 0, false}, "ü.txt": {"added", "", 1, 0, true},
		"logo.png": {"added", "", 0, 0, false}, "link": {"added", "", 1, 0, true},
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Fatal(diff)
	}
	for _, f := range got.Files {
		if f.GetFilename() == "ü.txt" && f.GetPatch() != "@@ -0,0 +1 @@\n+no newline\n\\ No newline at end of file" {
			t.Errorf("patch %q", f.GetPatch())
		}
	}
}

func TestCompareRefusesWhatHasNoMergeBase(t *testing.T) {
	b := newBench(t)
	_, err := b.ctl.CreateRepository(b.ctx, control.NewRepository{Owner: "acme", Name: "other", Commits: []control.Commit{
		{Files: map[string]string{"a": "1"}},
	}})
	b.must(err)
	lonely, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "lonely", FromPath: b.other("other").GitDir, FromRef: "main"})
	b.must(err)
	for _, span := range [][2]string{{"main", "lonely"}, {"main", "nowhere"}, {"nowhere", "main"}, {"main", strings.Repeat("0", 40)}} {
		_, res, err := b.gh.Repositories.CompareCommits(b.ctx, "acme", "site", span[0], span[1], nil)
		if err == nil || res.StatusCode != http.StatusNotFound {
			t.Errorf("%v (%s): %v", span, lonely.After, err)
		}
	}
}

func (b *bench) other(name string) control.Repository {
	b.t.Helper()
	r, _, err := b.gh.Repositories.Get(b.ctx, "acme", name)
	b.must(err)
	out, err := b.ctl.GetRepository(b.ctx, r.GetID())
	b.must(err)
	return out
}

// TestManyFilesAreCut has more files than a comparison shows, and than a page holds.
func TestManyFilesAreCut(t *testing.T) {
	b := newBench(t)
	many := map[string]string{}
	for i := range 310 {
		many[fmt.Sprintf("f%03d.txt", i)] = "x\n"
	}
	_, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "feature", Commits: []control.Commit{{Files: many}}})
	b.must(err)
	b.open()
	cmpr, _, err := b.gh.Repositories.CompareCommits(b.ctx, "acme", "site", "main", "feature", &github.ListOptions{PerPage: 1})
	b.must(err)
	if len(cmpr.Files) != 300 || len(cmpr.Commits) != 1 || cmpr.GetTotalCommits() != 2 {
		t.Fatalf("page 1: %d files, %d commits", len(cmpr.Files), len(cmpr.Commits))
	}
	cmpr, _, err = b.gh.Repositories.CompareCommits(b.ctx, "acme", "site", "main", "feature", &github.ListOptions{PerPage: 1, Page: 2})
	b.must(err)
	if len(cmpr.Files) != 0 || len(cmpr.Commits) != 1 {
		t.Fatalf("page 2: %d files, %d commits", len(cmpr.Files), len(cmpr.Commits))
	}
	names := map[string]bool{}
	opts := &github.ListOptions{PerPage: 1000}
	for pages := 1; ; pages++ {
		files, res, err := b.gh.PullRequests.ListFiles(b.ctx, "acme", "site", 1, opts)
		b.must(err)
		if len(files) > 100 {
			t.Fatalf("%d files on a page", len(files))
		}
		for _, f := range files {
			names[f.GetFilename()] = true
		}
		if res.NextPage == 0 {
			if pages != 4 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		opts.Page = res.NextPage
	}
	if len(names) != 311 {
		t.Fatalf("%d files", len(names))
	}
	_, res, err := b.gh.PullRequests.GetRaw(b.ctx, "acme", "site", 1, github.RawOptions{Type: github.Diff})
	if err == nil || res.StatusCode != http.StatusNotAcceptable {
		t.Fatalf("a diff of 311 files: %v", err)
	}
}

func TestDiffMediaType(t *testing.T) {
	b := newBench(t)
	b.open()
	diff, _, err := b.gh.PullRequests.GetRaw(b.ctx, "acme", "site", 1, github.RawOptions{Type: github.Diff})
	b.must(err)
	same, _, err := b.gh.Repositories.CompareCommitsRaw(b.ctx, "acme", "site", "main", "feature", github.RawOptions{Type: github.Diff})
	b.must(err)
	if !strings.HasPrefix(diff, "diff --git a/main.go b/main.go\n") || diff != same {
		t.Fatalf("%q\n%q", diff, same)
	}
	_, err = b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "feature", Commits: []control.Commit{{Files: map[string]string{"big.txt": strings.Repeat("x\n", 20001)}}}})
	b.must(err)
	_, res, err := b.gh.PullRequests.GetRaw(b.ctx, "acme", "site", 1, github.RawOptions{Type: github.Diff})
	if err == nil || res.StatusCode != http.StatusNotAcceptable {
		t.Fatalf("a diff of 20,001 lines: %v", err)
	}
	files, _, err := b.gh.PullRequests.ListFiles(b.ctx, "acme", "site", 1, nil)
	b.must(err)
	if files[0].GetFilename() != "big.txt" || files[0].Patch != nil || files[0].GetAdditions() != 20001 {
		t.Fatalf("a large file has no patch: %v", files[0].GetFilename())
	}
}

func TestContentsBlobCommitAndRef(t *testing.T) {
	b := newBench(t)
	out, err := b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "topic/x", SHA: "main"})
	b.must(err)
	_, err = b.ctl.Push(b.ctx, b.repo.ID, control.Push{Branch: "topic/x", Commits: []control.Commit{{
		Files: map[string]string{"docs/a b.md": "text\n", "docs/c.md": "", "huge.txt": strings.Repeat("y", 1<<20+1)}, Symlinks: map[string]string{"docs/link": "a b.md", "gone": "nowhere"},
	}}})
	b.must(err)
	at := &github.RepositoryContentGetOptions{Ref: "topic/x"}
	read := func(path string) (*github.RepositoryContent, []*github.RepositoryContent) {
		t.Helper()
		file, dir, _, err := b.gh.Repositories.GetContents(b.ctx, "acme", "site", path, at)
		b.must(err)
		return file, dir
	}
	file, _ := read("docs/a b.md")
	if text, err := file.GetContent(); err != nil || text != "text\n" {
		t.Fatalf("%q %v", text, err)
	}
	if _, dir := read("docs"); len(dir) != 3 {
		t.Fatalf("%d entries", len(dir))
	}
	if _, dir := read(""); len(dir) != 6 {
		t.Fatalf("%d entries at the root", len(dir))
	}
	if followed, _ := read("docs/link"); followed.GetType() != "file" || followed.GetPath() != "docs/a b.md" {
		t.Fatalf("a link is followed: %v", followed)
	}
	if link, _ := read("gone"); link.GetType() != "symlink" || link.GetTarget() != "nowhere" {
		t.Fatalf("a link to nothing: %v", link)
	}
	if huge, _ := read("huge.txt"); huge.GetEncoding() != "none" || huge.GetSize() != 1<<20+1 {
		t.Fatalf("above 1 MiB: %s", huge.GetEncoding())
	}
	blob, _, err := b.gh.Git.GetBlob(b.ctx, "acme", "site", file.GetSHA())
	b.must(err)
	if text, _ := base64.StdEncoding.DecodeString(blob.GetContent()); string(text) != "text\n" {
		t.Fatalf("blob %q", blob.GetContent())
	}
	raw, _, err := b.gh.Git.GetBlobRaw(b.ctx, "acme", "site", file.GetSHA())
	b.must(err)
	if string(raw) != "text\n" {
		t.Fatalf("raw blob %q", raw)
	}
	ref, _, err := b.gh.Git.GetRef(b.ctx, "acme", "site", "heads/topic/x")
	b.must(err)
	commit, _, err := b.gh.Repositories.GetCommit(b.ctx, "acme", "site", ref.GetObject().GetSHA(), nil)
	b.must(err)
	if commit.Parents[0].GetSHA() != out.After || len(commit.Files) != 5 || commit.GetStats().GetAdditions() == 0 {
		t.Fatalf("%d files of %s", len(commit.Files), commit.GetSHA())
	}
	for name, call := range map[string]func(context.Context) (*github.Response, error){
		"ref by prefix": func(ctx context.Context) (*github.Response, error) {
			_, res, err := b.gh.Git.GetRef(ctx, "acme", "site", "heads/topic")
			return res, err
		},
		"file": func(ctx context.Context) (*github.Response, error) {
			_, _, res, err := b.gh.Repositories.GetContents(ctx, "acme", "site", "none.txt", at)
			return res, err
		},
		"blob": func(ctx context.Context) (*github.Response, error) {
			_, res, err := b.gh.Git.GetBlob(ctx, "acme", "site", strings.Repeat("1", 40))
			return res, err
		},
	} {
		if res, err := call(b.ctx); err == nil || res.StatusCode != http.StatusNotFound {
			t.Errorf("%s that is not there: %v", name, err)
		}
	}
}
