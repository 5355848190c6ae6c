package demo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// source is what the pull request compares: the made repository, or two revisions of a local one. It is
// only read.
type source struct {
	create     control.NewRepository
	base, head string // branches
	title      string
	rules      []string // that the review must find broken
}

// choose finds what is to be reviewed and says in a sentence what is wrong with it.
func choose(ctx context.Context, o Options) (source, error) {
	if o.Repo == "" {
		if o.Base != "" || o.Head != "" {
			return source{}, errors.New("BASE and HEAD name revisions of a repository: name it too, with REPO=/path")
		}
		return source{create: sample(), base: "main", head: "checkout", title: "Add checkout", rules: expected}, nil
	}
	g, err := openGit(ctx, o.Repo)
	if err != nil {
		return source{}, err
	}
	return g.compare(ctx, o.Base, o.Head)
}

// localGit reads a repository of the user's with the git binary.
type localGit struct{ path string }

func openGit(ctx context.Context, path string) (localGit, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return localGit{}, fmt.Errorf("the repository %s: %w", path, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return localGit{}, fmt.Errorf("there is no folder %s: REPO takes the path of a local git repository", path)
	case err != nil:
		return localGit{}, fmt.Errorf("the folder %s can't be read: %w", path, err)
	case !info.IsDir():
		return localGit{}, fmt.Errorf("%s is no folder: REPO takes the path of a local git repository", path)
	}
	g := localGit{path}
	if _, err := g.line(ctx, "rev-parse", "--absolute-git-dir"); err != nil {
		return localGit{}, fmt.Errorf("%s is no git repository: REPO takes the path of a local one", path)
	}
	return g, nil
}

// compare checks that the two revisions can be the two ends of a pull request.
func (g localGit) compare(ctx context.Context, base, head string) (source, error) {
	if base == "" {
		base = g.defaultBranch(ctx)
	}
	head = cmp.Or(head, "HEAD")
	shas := map[string]string{}
	for name, rev := range map[string]string{"BASE": base, "HEAD": head} {
		sha, err := g.resolve(ctx, rev)
		if err != nil {
			return source{}, fmt.Errorf("%s=%s names no commit in %s%s", name, rev, g.path, g.known(ctx))
		}
		shas[name] = sha
	}
	if shas["BASE"] == shas["HEAD"] {
		return source{}, fmt.Errorf("BASE=%s and HEAD=%s are the same commit %.12s: there is nothing to review", base, head, shas["HEAD"])
	}
	merge, err := g.line(ctx, "merge-base", shas["BASE"], shas["HEAD"])
	if err != nil || merge == "" {
		return source{}, fmt.Errorf("BASE=%s and HEAD=%s have no common history, so GitHub would open no pull request between them", base, head)
	}
	if merge == shas["HEAD"] {
		return source{}, fmt.Errorf("HEAD=%s has no commit that BASE=%s lacks: there is nothing to review", head, base)
	}
	s := source{base: g.branch(ctx, base, "base"), head: g.branch(ctx, head, "head")}
	if s.base == s.head {
		s.head += "-head"
	}
	s.title, err = g.line(ctx, "show", "--no-patch", "--format=%s", shas["HEAD"])
	if err != nil {
		return source{}, fmt.Errorf("read the commit %s: %w", shas["HEAD"], err)
	}
	s.title = cmp.Or(s.title, s.head)
	s.create = control.NewRepository{
		Owner: "local", Name: g.name(), DefaultBranch: s.base, FromPath: g.path,
		Refs: map[string]string{s.base: shas["BASE"], s.head: shas["HEAD"]},
	}
	return s, nil
}

func (g localGit) resolve(ctx context.Context, rev string) (string, error) {
	return g.line(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
}

// defaultBranch is what BASE means where it is not given.
func (g localGit) defaultBranch(ctx context.Context) string {
	for _, name := range []string{"main", "master"} {
		if _, err := g.resolve(ctx, "refs/heads/"+name); err == nil {
			return name
		}
	}
	return "main"
}

// known lists branches for whoever spelled one wrong.
func (g localGit) known(ctx context.Context) string {
	out, err := g.line(ctx, "for-each-ref", "--count=8", "--sort=-committerdate", "--format=%(refname:lstrip=2)", "refs/heads/")
	if err != nil || out == "" {
		return ", which has no branches"
	}
	return "; its latest branches are " + strings.Join(strings.Fields(out), ", ")
}

// branch is a name under which a revision can stand in the simulated repository.
func (g localGit) branch(ctx context.Context, rev, otherwise string) string {
	if rev == "HEAD" {
		if name, err := g.line(ctx, "symbolic-ref", "--short", "--quiet", "HEAD"); err == nil {
			return name
		}
		return otherwise
	}
	rev = strings.TrimPrefix(rev, "refs/heads/")
	if _, err := g.line(ctx, "check-ref-format", "--branch", rev); err != nil || len(rev) == 40 || strings.HasPrefix(rev, "refs/") {
		return otherwise
	}
	return rev
}

// name is the repository's folder, as GitHub would allow it in a name.
func (g localGit) name() string {
	base := strings.TrimSuffix(filepath.Base(g.path), ".git")
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, base)
	return cmp.Or(strings.Trim(name, ".-"), "repository")
}

// line runs git, which takes no locks and asks nothing, and returns what it prints.
func (g localGit) line(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*", "-C", g.path}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(problem.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
