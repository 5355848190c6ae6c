package demo

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/deploy/local"
	"github.com/fenceline-dev/fenceline/deploy/local/view"
)

// stateDir is a folder that the user postgres can enter, which t.TempDir need not be.
func stateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "fenceline-demo-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func runDemo(t *testing.T, o Options) (string, Record) {
	t.Helper()
	var out bytes.Buffer
	o.JSON, o.Quiet, o.Terminal = filepath.Join(t.TempDir(), "demo.json"), 200*time.Millisecond, view.New(&out)
	o.Stack.Dir = stateDir(t)
	if err := Run(t.Context(), o); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	content, err := os.ReadFile(o.JSON)
	if err != nil {
		t.Fatal(err)
	}
	var r Record
	dec := json.NewDecoder(bytes.NewReader(content))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return out.String(), r
}

func TestDemoOfTheMadeRepository(t *testing.T) {
	out, r := runDemo(t, Options{})
	if strings.ContainsAny(out, "\x1b\r") {
		t.Error("piped output holds control characters")
	}
	for _, part := range []string{
		"quiet window: 200ms here, 30 s by default", "The page, as GitHub shows it", "Fenceline: 5 errors", "The review", "The check run",
		"The ledger's statement", "Why: the decisions", "The one trace, " + r.TraceID, "What one walk takes",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("the output lacks %q", part)
		}
	}
	var steps []string
	for _, s := range r.Steps {
		if s.Name != "intent" || steps[len(steps)-1] != "intent" {
			steps = append(steps, s.Name)
		}
	}
	want := []string{
		"opened", "webhook", "receipt", "activity", "due", "claim", "run", "reservation", "attempt", "result", "epoch",
		"settlement", "credit", "intent", "comment", "check run", "published",
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	// Comment, review and check run; what the check run says before may have been overtaken.
	if len(r.Comments) != 1 || len(r.CheckRuns) != 1 || len(r.Intents) < 3 || len(r.Intents) > 5 || len(r.Runs) != 1 || len(r.Attempts) != 1 || len(r.Findings) != 5 {
		t.Errorf("%d comments, %d check runs, %d intents, %d runs, %d attempts, %d findings",
			len(r.Comments), len(r.CheckRuns), len(r.Intents), len(r.Runs), len(r.Attempts), len(r.Findings))
	}
	if len(r.Reviews) != 1 || len(r.Reviews[0].Comments) != 5 || r.Reviews[0].CommitID != r.PullRequest.HeadSHA {
		t.Errorf("reviews %+v, want one of the head with 5 comments", r.Reviews)
	}
	for _, v := range r.FenceVerdicts {
		if !v.Held {
			t.Errorf("a fence did not hold: %+v", v)
		}
	}
	if len(r.FenceVerdicts) == 0 || r.Generation != 1 || r.Epoch != 1 || r.Ledger.Granted != r.Ledger.Available+r.Ledger.Spent || r.Ledger.Spent == 0 {
		t.Errorf("verdicts %v, generation %d, epoch %d, ledger %+v", r.FenceVerdicts, r.Generation, r.Epoch, r.Ledger)
	}
	roots, services := 0, map[string]bool{}
	for _, s := range r.Spans {
		services[s.Service] = true
		if s.ParentID == "" {
			roots++
		}
	}
	if roots != 1 || len(services) != len(local.Services) {
		t.Errorf("%d roots and %d services in the trace, want 1 and %d", roots, len(services), len(local.Services))
	}
	if c := r.Cost; c == nil || c.Statements <= 0 || c.Commits <= 0 || c.OwnMillis <= 0 {
		t.Errorf("cost %+v", c)
	}
}

func TestDemoOnlyReadsALocalRepository(t *testing.T) {
	repo := madeRepo(t)
	before := contents(t, repo)
	out, r := runDemo(t, Options{Repo: repo, Base: "main", Head: "feature"})
	if diff := cmp.Diff(before, contents(t, repo)); diff != "" {
		t.Errorf("the repository was written to:\n%s", diff)
	}
	if !strings.Contains(out, "local/my-project") || r.Repository.From != repo || len(r.Findings) != 1 || r.Findings[0]["rule"] != "json/syntax" {
		t.Errorf("repository %+v, findings %v", r.Repository, r.Findings)
	}
}

// contents is every file below a folder, with its time.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		all[path] = info.ModTime().String() + string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
