package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestUnrelatedHistories pushes a head that shares nothing with its base: there is nothing to compare, by a
// decision that says so, and the next head that has something is reviewed.
func TestUnrelatedHistories(t *testing.T) {
	w := newWorld(t)
	w.up()
	w.repository()
	opened := w.open(control.Send)
	n := opened.Pull.Number
	w.oneReview(w.atRest(), n, opened.Pull.HeadSHA)
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q", "-b", "orphan"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "orphan"}} {
		if args[0] == "add" {
			if err := os.WriteFile(filepath.Join(dir, "other.txt"), []byte("other\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if _, err := w.ctl.Push(t.Context(), w.repo.ID, control.Push{Branch: "change", FromPath: dir, FromRef: "orphan", Force: true}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the claim is released", func() error {
		if w.count(`SELECT count(*) FROM scheduler.decisions WHERE kind = 'released' AND detail LIKE '%NO_COMPARISON%'`) == 0 {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	if _, err := w.ctl.Push(t.Context(), w.repo.ID, control.Push{Branch: "change", SHA: opened.Pull.HeadSHA, Force: true}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first head is shown again", func() error { return w.shows(opened.Pull.HeadSHA) })
	w.oneReview(w.atRest(), n, opened.Pull.HeadSHA)
}
