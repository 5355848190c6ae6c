package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestHostilePullRequests reviews what a fork may send: each ends with one comment of ours that says what
// was and what was not looked at, whatever the names and contents are.
func TestHostilePullRequests(t *testing.T) {
	names := map[string]string{}
	for n, name := range []string{
		"a b.txt", "quo\"te'.txt", "per%20cent#frag?q=1.txt", "-rf.txt", "back`tick`.txt", "<!-- fenceline:1 s=0 -->.txt", "@everyone.txt",
		"fixes #1.txt", "\u202egpj.txt", "ze\u200bro.txt", "new\nline.txt", "tab\t.txt", "[x](javascript:1).txt", "![i](https:evil.example).txt",
		"…/…/x.txt", strings.Repeat("d/", 60) + strings.Repeat("n", 200) + ".txt", "emoji😀.txt", ".github/workflows/x@y.yml",
	} {
		names[name] = fmt.Sprintf("%d\n%s", n, conflicted)
	}
	many := map[string]string{}
	for n := range 320 {
		many[fmt.Sprintf("f/%03d.txt", n)] = conflicted
	}
	for name, c := range map[string]struct {
		commit control.Commit
		says   []string // in the comment
		silent bool     // nothing found
	}{
		"names":         {commit: control.Commit{Files: names}},
		"320 files":     {commit: control.Commit{Files: many}, says: []string{"20 more findings, over the limit of 300"}},
		"a huge file":   {commit: control.Commit{Files: map[string]string{"huge.txt": strings.Repeat(conflicted, 40_000)}}, says: []string{"huge.txt"}, silent: true},
		"3 MB of diffs": {commit: control.Commit{Files: large(12, 250_000)}, says: []string{"large"}},
		"one long line": {commit: control.Commit{Files: map[string]string{"line.txt": strings.Repeat("x", 300_000)}}, silent: true},
		"binary":        {commit: control.Commit{Binary: map[string][]byte{"logo.png": {0, 1, 2, 0xff, 0xfe, 0}}}, silent: true},
		"a symlink":     {commit: control.Commit{Symlinks: map[string]string{"link": "/proc/self/environ"}}, silent: true},
		"a rename":      {commit: control.Commit{Rename: map[string]string{"README.md": "docs/README.md"}}, silent: true},
		"a deletion":    {commit: control.Commit{Delete: []string{"README.md"}}, silent: true},
		"no valid text": {commit: control.Commit{Binary: map[string][]byte{"latin.txt": []byte("caf\xe9\n<<<<<<< a\n=======\n>>>>>>> b\n\xff\xfe\n")}}},
		"nothing":       {commit: control.Commit{Message: "empty"}, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.up()
			w.repository()
			c.commit.Message = "change"
			pushed, err := w.ctl.Push(t.Context(), w.repo.ID, control.Push{Branch: "change", Commits: []control.Commit{c.commit}, Options: control.Options{Webhook: control.None}})
			if err != nil {
				t.Fatal(err)
			}
			opened, err := w.ctl.OpenPull(t.Context(), w.repo.ID, control.OpenPull{Title: "@everyone <!-- fenceline:1 -->", Head: "change", Base: "main"})
			if err != nil {
				t.Fatal(err)
			}
			at := w.atRest()
			w.settled(at.GetTenant())
			w.atPeace()
			p := w.page(opened.Pull.Number, pushed.After)
			if len(p.comments) != 1 || len(p.checks) != 1 || at.GetPage() != "result" {
				t.Fatalf("%d comments, %d check runs, page %s", len(p.comments), len(p.checks), at.GetPage())
			}
			body := p.comments[0].Body
			if c.silent != strings.Contains(body, "nothing found") {
				t.Errorf("found nothing: %t is not so:\n%.2000s", c.silent, body)
			}
			for _, s := range c.says {
				if !strings.Contains(body, s) {
					t.Errorf("the comment does not say %q:\n%.2000s", s, body)
				}
			}
			harmless(t, body)
		})
	}
}

// large makes files that are large together.
func large(files, size int) map[string]string {
	out := map[string]string{}
	for n := range files {
		out[fmt.Sprintf("large/%02d.txt", n)] = conflicted + strings.Repeat(fmt.Sprintf("%063d\n", n), size/64)
	}
	return out
}

// harmless checks that nothing of a pull request acts in the comment.
func harmless(t *testing.T, body string) {
	t.Helper()
	_, rest, _ := strings.Cut(body, "\n")
	rest = strings.TrimSuffix(rest, "<!-- fenceline:1 end -->\n") // where people's own text may begin
	for _, bad := range []string{"<!--", "@everyone", "fixes #1", "\u202e", "\u200b"} {
		if strings.Contains(rest, bad) {
			t.Errorf("the comment holds %q", bad)
		}
	}
	for _, line := range strings.Split(rest, "\n") {
		// Everything foreign is in code spans: outside of them there is no markup of its making.
		for n, part := range strings.Split(line, "`") {
			if n%2 == 0 && strings.ContainsAny(part, "[]<>!") {
				t.Errorf("markup outside of code: %q", line)
			}
		}
		if strings.HasPrefix(line, "/") {
			t.Errorf("a line reads as a command: %q", line)
		}
	}
}
