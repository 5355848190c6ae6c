package worker

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// TestAReportPlacesFindingsInThePinnedDiff does not believe the engine where its findings stand.
func TestAReportPlacesFindingsInThePinnedDiff(t *testing.T) {
	t.Parallel()
	instead := "z"
	in := engine.Input{Files: []engine.File{{Path: "a.go", Patch: "@@ -4,3 +4,3 @@\n x\n-y\n+z\n w"}}}
	out := engine.Output{
		Verdict: engine.Findings, Reviewed: 1, Usage: engine.Usage{DiffBytes: 31},
		Findings: []engine.Finding{
			{Path: "a.go", StartLine: 4, Line: 5, Severity: engine.Error, Rule: "r", Sentence: "s", Suggestion: &instead},
			{Path: "a.go", StartLine: 6, Line: 7, Severity: engine.Warning, Rule: "r", Sentence: "s", Suggestion: &instead},
			{Path: "b.go", Line: 1, Severity: engine.Info, Rule: "r", Sentence: "s"},
		},
		Skipped: []engine.Skip{{Path: "c.png", Reason: "binary", Minor: true}, {Path: "d.go", Reason: "too large"}},
	}
	want := reviewer.Report{
		Cost: 10, Seen: reviewer.Seen{Files: 1, DiffBytes: 31},
		Findings: []reviewer.Finding{
			{Path: "a.go", StartLine: 4, Line: 5, HunkStart: 4, HunkEnd: 6, Severity: reviewer.SeverityError, Rule: "r", Message: "s", Suggestion: &instead},
			{Path: "a.go", Line: 7, Severity: reviewer.SeverityWarning, Rule: "r", Message: "s"},
			{Path: "b.go", Line: 1, Severity: reviewer.SeverityInfo, Rule: "r", Message: "s"},
		},
		Omissions: []reviewer.Omission{{Path: "c.png", Reason: "binary", Minor: true}, {Path: "d.go", Reason: "too large"}},
	}
	if diff := cmp.Diff(want, report(in, out, engine.Price{PerKiB: 10, MaxKiB: 1})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
