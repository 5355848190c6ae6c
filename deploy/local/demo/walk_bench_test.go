package demo

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/local/view"
	"github.com/fenceline-dev/fenceline/pkg/benchtest"
)

// BenchmarkWalk counts what one whole walk takes, from webhook to comment, as the demo measures it.
func BenchmarkWalk(b *testing.B) {
	dir, err := os.MkdirTemp("/tmp", "fenceline-walk-") //nolint:usetesting // the user postgres must be able to enter
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	o := Options{JSON: filepath.Join(b.TempDir(), "walk.json"), Quiet: 500 * time.Millisecond, Terminal: view.New(io.Discard)}
	o.Stack.Dir, o.Stack.Fsync = dir, true
	for walked := false; b.Loop(); walked = true {
		if walked {
			continue
		}
		if err := Run(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
	content, err := os.ReadFile(o.JSON)
	if err != nil {
		b.Fatal(err)
	}
	var r Record
	if err := json.Unmarshal(content, &r); err != nil || r.Cost == nil {
		b.Fatalf("the record tells no cost: %v", err)
	}
	for name, share := range r.Cost.Services {
		b.Logf("%-10s %5.1f statements in %5.1f commits", name, share.Statements, share.Commits)
	}
	b.ReportMetric(0, "ns/op")
	benchtest.Report(b,
		benchtest.Figure{What: "statements of one whole walk", Ratio: benchtest.Exactly(r.Cost.Statements), AtMost: 100},
		benchtest.Figure{What: "commits of one whole walk", Ratio: benchtest.Exactly(r.Cost.Commits), AtMost: 35},
		benchtest.Figure{What: "own milliseconds of one whole walk, without quiet window, GitHub and engine", Ratio: benchtest.Exactly(r.Cost.OwnMillis), AtMost: 60},
	)
}
