package reviewer

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func suggest(s string) *string { return &s }

func TestAnchorsHoldTogetherOrAreDropped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ given, want Finding }{
		"none":                {Finding{Line: 5}, Finding{Line: 5}},
		"a line":              {Finding{Line: 5, HunkStart: 5, HunkEnd: 5}, Finding{Line: 5, HunkStart: 5, HunkEnd: 5}},
		"a range":             {Finding{Line: 5, StartLine: 3, HunkStart: 3, HunkEnd: 9}, Finding{Line: 5, StartLine: 3, HunkStart: 3, HunkEnd: 9}},
		"a range of one":      {Finding{Line: 5, StartLine: 5, HunkStart: 3, HunkEnd: 9}, Finding{Line: 5, HunkStart: 3, HunkEnd: 9}},
		"starts before it":    {Finding{Line: 5, StartLine: 2, HunkStart: 3, HunkEnd: 9}, Finding{Line: 5}},
		"ends after it":       {Finding{Line: 10, StartLine: 5, HunkStart: 3, HunkEnd: 9}, Finding{Line: 10}},
		"backwards":           {Finding{Line: 5, StartLine: 6, HunkStart: 3, HunkEnd: 9}, Finding{Line: 5}},
		"half a hunk":         {Finding{Line: 5, HunkStart: 3}, Finding{Line: 5}},
		"without a hunk":      {Finding{Line: 5, StartLine: 3, Suggestion: suggest("x")}, Finding{Line: 5}},
		"suggestion":          {Finding{Line: 5, HunkStart: 5, HunkEnd: 5, Suggestion: suggest("x")}, Finding{Line: 5, HunkStart: 5, HunkEnd: 5, Suggestion: suggest("x")}},
		"deletion":            {Finding{Line: 5, HunkStart: 5, HunkEnd: 5, Suggestion: suggest("")}, Finding{Line: 5, HunkStart: 5, HunkEnd: 5, Suggestion: suggest("")}},
		"suggestion too long": {Finding{Line: 5, HunkStart: 5, HunkEnd: 5, Suggestion: suggest(strings.Repeat("x", 10_001))}, Finding{Line: 5, HunkStart: 5, HunkEnd: 5}},
		"suggestion no text":  {Finding{Line: 5, HunkStart: 5, HunkEnd: 5, Suggestion: suggest("\xff")}, Finding{Line: 5, HunkStart: 5, HunkEnd: 5}},
		"suggestion with NUL": {Finding{Line: 5, HunkStart: 5, HunkEnd: 5, Suggestion: suggest("\x00")}, Finding{Line: 5, HunkStart: 5, HunkEnd: 5}},
		"suggestion with CR":  {Finding{Line: 5, HunkStart: 5, HunkEnd: 5, Suggestion: suggest("a\r\nb")}, Finding{Line: 5, HunkStart: 5, HunkEnd: 5}},
		"negative":            {Finding{Line: 5, StartLine: -1, HunkStart: 5, HunkEnd: 5}, Finding{Line: 5, HunkStart: 5, HunkEnd: 5}},
	} {
		c.want.Sequence = 1
		if diff := cmp.Diff([]Finding{c.want}, Report{Findings: []Finding{c.given}}.Bounded(1).Findings); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestBoundedAnchors holds what the table of findings demands of any row.
func TestBoundedAnchors(t *testing.T) {
	t.Parallel()
	number := rapid.IntRange(-1, 6)
	rapid.Check(t, func(t *rapid.T) {
		f := Finding{
			Line: number.Draw(t, "line"), StartLine: number.Draw(t, "start"),
			HunkStart: number.Draw(t, "from"), HunkEnd: number.Draw(t, "to"), Suggestion: suggest(rapid.String().Draw(t, "suggestion")),
		}
		got := Report{Findings: []Finding{f}}.Bounded(1).Findings[0]
		if got.HunkStart == 0 {
			if got.HunkEnd != 0 || got.StartLine != 0 || got.Suggestion != nil {
				t.Fatalf("half an anchor: %+v", got)
			}
			return
		}
		if first := max(got.StartLine, 0); got.Line > got.HunkEnd || got.Line < got.HunkStart || first > 0 && (first < got.HunkStart || first >= got.Line) {
			t.Fatalf("outside of its hunk: %+v", got)
		}
	})
}

func TestWhatWasReviewableIsKeptFirst(t *testing.T) {
	t.Parallel()
	minor, major := Omission{Path: "a.png", Reason: "binary", Minor: true}, Omission{Path: "z.go", Reason: "too large"}
	r := Report{Omissions: append(slices.Repeat([]Omission{minor}, maxOmissions), major), Findings: make([]Finding, 2)}
	got := r.Bounded(1).Omissions
	if len(got) != maxOmissions || got[0].Reason != "1 more findings, over the limit of 1" || got[1] != major {
		t.Fatalf("%d omissions, the first %+v", len(got), got[:2])
	}
	if last := got[maxOmissions-1]; last.Reason != "3 more notes of this kind" || !last.Minor {
		t.Errorf("the last is %+v", last)
	}
	r.Omissions = slices.Repeat([]Omission{major}, maxOmissions+1)
	if last := r.Bounded(2).Omissions[maxOmissions-1]; last.Minor {
		t.Errorf("the last is %+v", last)
	}
}
