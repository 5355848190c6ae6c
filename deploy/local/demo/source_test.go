package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// madeRepo is a repository with main, a branch ahead of it, one behind, and one without common history.
func madeRepo(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "my project")
	script := `
set -e
git init -q -b main "$1" && cd "$1"
git config user.name A && git config user.email a@test
echo one >a.txt && git add . && git commit -qm one
git branch behind
echo two >a.txt && git commit -qam two
git switch -qc feature
printf '{"a" 1}\n' >b.json && git add . && git commit -qm "Add \"b\""
git switch -q --orphan alone && echo x >x.txt && git add . && git commit -qm alone
git switch -q feature && git tag v1
echo uncommitted >>a.txt
`
	cmd := exec.Command("bash", "-c", script, "bash", dir)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

func TestChooseSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	repo := madeRepo(t)
	empty := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", empty).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file := filepath.Join(empty, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"no folder":         {Options{Repo: filepath.Join(repo, "nowhere")}, "there is no folder"},
		"a file":            {Options{Repo: file}, "is no folder"},
		"no repository":     {Options{Repo: t.TempDir()}, "is no git repository"},
		"an empty one":      {Options{Repo: empty}, "names no commit"},
		"unknown base":      {Options{Repo: repo, Base: "nope", Head: "feature"}, "BASE=nope names no commit in " + repo + "; its latest branches are"},
		"unknown head":      {Options{Repo: repo, Base: "main", Head: "nope"}, "HEAD=nope names no commit"},
		"a head of dashes":  {Options{Repo: repo, Base: "main", Head: "--all"}, "HEAD=--all names no commit"},
		"the same commit":   {Options{Repo: repo, Base: "feature", Head: "v1"}, "are the same commit"},
		"no common history": {Options{Repo: repo, Base: "main", Head: "alone"}, "have no common history"},
		"nothing new":       {Options{Repo: repo, Base: "main", Head: "behind"}, "HEAD=behind has no commit that BASE=main lacks"},
		"base without repo": {Options{Base: "main"}, "name it too"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := choose(t.Context(), c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a sentence with %q", err, c.want)
			}
		})
	}
}

func TestChooseNamesTheEnds(t *testing.T) {
	t.Parallel()
	repo := madeRepo(t)
	for name, c := range map[string]struct {
		repo, base, head   string
		wantBase, wantHead string
	}{
		"branches":           {repo, "main", "feature", "main", "feature"},
		"defaults":           {repo, "", "", "main", "feature"},
		"a folder inside it": {filepath.Join(repo, ".git"), "main", "feature", "main", "feature"},
		"full refs":          {repo, "refs/heads/main", "refs/tags/v1", "main", "head"},
		"relative revisions": {repo, "main~1", "feature", "base", "feature"},
		"behind and tag":     {repo, "behind", "v1", "behind", "v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := choose(t.Context(), Options{Repo: c.repo, Base: c.base, Head: c.head})
			if err != nil {
				t.Fatal(err)
			}
			if s.base != c.wantBase || s.head != c.wantHead || s.title != `Add "b"` || len(s.create.Refs) != 2 {
				t.Errorf("got %+v", s)
			}
		})
	}
}
