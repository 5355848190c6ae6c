package githubsim

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// copyFrom fills an empty repository from a local one: the named revisions as branches, or every branch.
func (d gitDir) copyFrom(ctx context.Context, source string, refs map[string]string) error {
	from, err := d.locate(ctx, source)
	if err != nil {
		return err
	}
	if len(refs) == 0 {
		_, err := d.run(ctx, nil, "fetch", "--quiet", "--update-shallow", from.path,
			"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
		return err
	}
	for _, branch := range slices.Sorted(maps.Keys(refs)) {
		sha, err := d.fetch(ctx, source, refs[branch])
		if err != nil {
			return fmt.Errorf("revision %q of %s: %w", refs[branch], source, err)
		}
		if err := d.setRef(ctx, "refs/heads/"+branch, sha); err != nil {
			return err
		}
	}
	return nil
}

// fetch brings one commit of a local repository here and returns its sha.
func (d gitDir) fetch(ctx context.Context, source, rev string) (string, error) {
	from, err := d.locate(ctx, source)
	if err != nil {
		return "", err
	}
	sha, err := from.line(ctx, "rev-parse", "--verify", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return "", err
	}
	_, err = d.run(ctx, nil, "fetch", "--quiet", "--update-shallow", "--no-tags", from.path, sha)
	return sha, err
}

// locate finds the git folder of a work tree, of a folder in one, or of a bare repository.
func (d gitDir) locate(ctx context.Context, source string) (gitDir, error) {
	cmd := exec.CommandContext(ctx, "git", "-C", source, "rev-parse", "--absolute-git-dir")
	cmd.Env = d.env
	out, err := cmd.Output()
	if err != nil {
		return gitDir{}, fmt.Errorf("%s is no git repository: %w", source, err)
	}
	return gitDir{git: d.git, path: strings.TrimSpace(string(out))}, nil
}

func (d gitDir) setRef(ctx context.Context, ref, sha string) error {
	_, err := d.run(ctx, nil, "update-ref", ref, sha)
	return err
}

// importCommits makes commits with git fast-import: one process for any number of them. Each goes onto its own
// branch, or onto the default branch where it names none.
func (d gitDir) importCommits(ctx context.Context, defaultBranch string, commits []control.Commit, now time.Time) error {
	tips, err := d.branches(ctx)
	if err != nil {
		return err
	}
	var in bytes.Buffer
	for i, c := range commits {
		branch := c.Branch
		if branch == "" {
			branch = defaultBranch
		}
		parent := tips[branch]
		if parent == "" {
			parent = tips[defaultBranch]
		}
		if c.Parent != "" {
			if mark, inStream := tips[c.Parent]; inStream {
				parent = mark
			} else if parent, err = d.commit(ctx, c.Parent); err != nil {
				return fmt.Errorf("parent %q: %w", c.Parent, err)
			}
		}
		writeCommit(&in, i+1, branch, parent, c, now)
		tips[branch] = ":" + strconv.Itoa(i+1)
	}
	in.WriteString("done\n")
	_, err = d.run(ctx, in.Bytes(), "fast-import", "--quiet", "--force", "--done")
	return err
}

func writeCommit(in *bytes.Buffer, mark int, branch, parent string, c control.Commit, now time.Time) {
	who, at := "A Person <person@example.test>", now
	if c.AuthorName != "" {
		who = c.AuthorName + " <" + c.AuthorEmail + ">"
	}
	if c.Date != nil {
		at = *c.Date
	}
	message := c.Message
	if message == "" {
		message = "Change files"
	}
	fmt.Fprintf(in, "commit refs/heads/%s\nmark :%d\nauthor %s %d +0000\ncommitter %s %d +0000\n",
		branch, mark, who, at.Unix(), who, at.Unix())
	writeData(in, []byte(message))
	if parent != "" {
		fmt.Fprintf(in, "from %s\n", parent)
	}
	for _, from := range slices.Sorted(maps.Keys(c.Rename)) {
		fmt.Fprintf(in, "R %s %s\n", quotePath(from), quotePath(c.Rename[from]))
	}
	for _, path := range c.Delete {
		fmt.Fprintf(in, "D %s\n", quotePath(path))
	}
	file := func(mode, path string, data []byte) {
		fmt.Fprintf(in, "M %s inline %s\n", mode, quotePath(path))
		writeData(in, data)
	}
	for _, path := range slices.Sorted(maps.Keys(c.Files)) {
		file("100644", path, []byte(c.Files[path]))
	}
	for _, path := range slices.Sorted(maps.Keys(c.Binary)) {
		file("100644", path, c.Binary[path])
	}
	for _, path := range slices.Sorted(maps.Keys(c.Symlinks)) {
		file("120000", path, []byte(c.Symlinks[path]))
	}
	in.WriteByte('\n')
}

func writeData(in *bytes.Buffer, data []byte) {
	fmt.Fprintf(in, "data %d\n", len(data))
	in.Write(data)
	in.WriteByte('\n')
}

// quotePath writes a path the way git's stream formats want it where it holds anything unusual.
func quotePath(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// mergeTree merges head into base without a work tree. ok is false where they conflict.
func (d gitDir) mergeTree(ctx context.Context, base, head string) (tree string, ok bool) {
	out, err := d.line(ctx, "merge-tree", "--write-tree", "--allow-unrelated-histories", base, head)
	if err != nil {
		return "", false
	}
	tree, _, _ = strings.Cut(out, "\n")
	return tree, true
}

func (d gitDir) commitTree(ctx context.Context, tree, message string, parents ...string) (string, error) {
	args := []string{"commit-tree", tree, "-m", message}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	return d.line(ctx, args...)
}
