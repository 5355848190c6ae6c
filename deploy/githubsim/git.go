package githubsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// git runs the git binary in an environment of its own, so that no setting of the machine or the user changes
// what a diff looks like.
type git struct {
	root string
	env  []string
}

// errNoRevision is a name that leads to no object.
var errNoRevision = errors.New("no such revision")

func newGit(ctx context.Context, dir string) (*git, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("githubsim: folder: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(root, "repositories"), 0o755); err != nil {
		return nil, fmt.Errorf("githubsim: folder: %w", err)
	}
	// A repository given by path may belong to another user than the one who runs the simulator.
	settings := "[safe]\n\tdirectory = *\n[core]\n\tquotePath = false\n[diff]\n\trenames = true\n[gc]\n\tauto = 0\n" +
		"[uploadpack]\n\tallowAnySHA1InWant = true\n[init]\n\tdefaultBranch = main\n"
	file := filepath.Join(root, "gitconfig")
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		return nil, fmt.Errorf("githubsim: git settings: %w", err)
	}
	g := &git{root: root, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + root, "LC_ALL=C", "TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + file, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=GitHub", "GIT_AUTHOR_EMAIL=noreply@github.test",
		"GIT_COMMITTER_NAME=GitHub", "GIT_COMMITTER_EMAIL=noreply@github.test",
	}}
	return g, g.checkVersion(ctx)
}

// checkVersion refuses a git that cannot merge without a work tree.
func (g *git) checkVersion(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "git", "version")
	cmd.Env = g.env
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("githubsim: git: %w", err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(out), "git version %d.%d", &major, &minor); err != nil || major < 2 || major == 2 && minor < 38 {
		return fmt.Errorf("githubsim: needs git 2.38 or later, found %q", strings.TrimSpace(string(out)))
	}
	return nil
}

// gitDir is one bare repository.
type gitDir struct {
	*git
	path string
}

func (g *git) at(name string) gitDir {
	return gitDir{git: g, path: filepath.Join(g.root, "repositories", name)}
}

// run runs git in the repository and returns what it printed.
func (d gitDir) run(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--git-dir=" + d.path}, args...)...)
	cmd.Env = d.env
	cmd.Stdin = bytes.NewReader(stdin)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(problem.String()))
	}
	return out.Bytes(), nil
}

// line runs git and returns its output without the final newline.
func (d gitDir) line(ctx context.Context, args ...string) (string, error) {
	out, err := d.run(ctx, nil, args...)
	return strings.TrimRight(string(out), "\n"), err
}

// commit resolves a branch, tag, full ref or sha to a commit sha, branches first, as GitHub does.
func (d gitDir) commit(ctx context.Context, name string) (string, error) {
	if name == "" || strings.HasPrefix(name, "-") {
		return "", errNoRevision
	}
	tries := []string{"refs/heads/" + name, "refs/tags/" + name}
	if strings.HasPrefix(name, "refs/") || isHex(name) {
		tries = []string{name}
	}
	tries = append(tries, name)
	for _, try := range tries {
		if sha, err := d.line(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", try+"^{commit}"); err == nil {
			return sha, nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	return "", errNoRevision
}

// branches returns every branch and its tip.
func (d gitDir) branches(ctx context.Context) (map[string]string, error) {
	out, err := d.line(ctx, "for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads/")
	if err != nil {
		return nil, err
	}
	tips := map[string]string{}
	for one := range strings.Lines(out) {
		if sha, name, ok := strings.Cut(strings.TrimRight(one, "\n"), " "); ok {
			tips[name] = sha
		}
	}
	return tips, nil
}

// contains reports whether tip contains old.
func (d gitDir) contains(ctx context.Context, tip, old string) bool {
	_, err := d.run(ctx, nil, "merge-base", "--is-ancestor", old, tip)
	return err == nil
}

// isHex reports whether name is a full sha.
func isHex(name string) bool {
	if len(name) != 40 {
		return false
	}
	for _, c := range name {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
