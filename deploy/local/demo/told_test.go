package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/deploy/local"
	"github.com/fenceline-dev/fenceline/deploy/local/view"
)

// TestATimeThatIsNotToldIsADash shows steps with and without a time.
func TestATimeThatIsNotToldIsADash(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := &walk{t: view.New(&out), began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	w.happened("run", "scheduler", w.began.Add(1500*time.Millisecond), "told")
	w.happened("credit", "ledger", timeOf(nil), "not told")
	want := []string{"  +1.500 s  scheduler  run          told", "         —  ledger     credit       not told", ""}
	if diff := cmp.Diff(want, strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w.steps[0].Millis == nil || *w.steps[0].Millis != 1500 || w.steps[1].At != nil || w.steps[1].Millis != nil {
		t.Errorf("steps %+v", w.steps)
	}
}

func TestTheQuietWindowIsTheSchedulers(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{"": "1s", "3s": "3s", "1500ms": "1.5s"} {
		o := Options{Quiet: time.Second, Stack: local.Config{Env: map[string]string{quietSetting: set, "SCHEDULER_LEASE": "9s"}}}
		var err error
		if o.Quiet, err = effectiveQuiet(o); err != nil || o.Quiet.String() != want {
			t.Errorf("%q: %s, %v; want %s", set, o.Quiet, err, want)
		}
		if env := settings(o); env[quietSetting] != want || env["SCHEDULER_LEASE"] != "9s" {
			t.Errorf("%q: the scheduler is told %v", set, env)
		}
	}
	o := Options{Stack: local.Config{Env: map[string]string{quietSetting: "soon"}}}
	if err := Up(t.Context(), o); err == nil || !strings.Contains(err.Error(), "SCHEDULER_QUIET is no duration") {
		t.Errorf("a window that is none: %v", err)
	}
}

func TestAFileThatCannotBeWrittenIsSaidBeforeTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there := filepath.Join(dir, "there.json")
	if err := os.WriteFile(there, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{
		filepath.Join(dir, "new.json"): true, there: true, "": true,
		dir: false, filepath.Join(dir, "nonexistent", "x.json"): false, filepath.Join(there, "x.json"): false,
	} {
		if got, err := writable(path); ok != (err == nil) || ok && got != path {
			t.Errorf("%q: %q, %v; want it writable: %t", path, got, err, ok)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if content, err := os.ReadFile(there); string(content) != "before" {
		t.Errorf("the file holds %q, %v", content, err)
	}
	var out bytes.Buffer
	err = Run(t.Context(), Options{JSON: filepath.Join(dir, "nonexistent", "x.json"), Terminal: view.New(&out)})
	if err == nil || !strings.HasSuffix(err.Error(), "nonexistent/x.json, cannot be written: no such file or directory") || out.Len() > 0 {
		t.Errorf("%v, after the output %q", err, out.String())
	}
}

func TestCostIsRounded(t *testing.T) {
	t.Parallel()
	at := func(seconds float64) time.Time { return time.Unix(0, int64(seconds*1e9)) }
	service := local.Services[0]
	c := &Cost{Services: map[string]Share{}}
	c.less(counts{of: map[string]Share{service: {}}, at: at(0)},
		counts{of: map[string]Share{service: {Statements: 1, Commits: 1}}, at: at(3)},
		counts{of: map[string]Share{service: {Statements: 11, Commits: 5}}, at: at(5)})
	if c.Statements != 9 || c.Commits != 3 || c.Idle != (Idle{Statements: 0.3, Commits: 0.3}) || c.Services[service] != (Share{Statements: 9, Commits: 3}) {
		t.Errorf("cost %+v", c)
	}
}
