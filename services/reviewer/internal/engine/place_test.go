package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// twoHunks has the head-side lines 4 to 6 and 20 to 21; the last one ends in a carriage return.
const twoHunks = "@@ -4,3 +4,3 @@ func f() {\n x\n-y\n+z\n \n@@ -20 +20,2 @@\n q\n+r\r\n"

func text(s string) *string { return &s }

func TestPlace(t *testing.T) {
	t.Parallel()
	in := Input{Files: []File{{Path: "a.go", Patch: twoHunks}, {Path: "cut.go", Patch: "@@ -1,9 +1,9 @@\n x"}, {Path: "b.png"}}}
	for name, c := range map[string]struct {
		given Finding
		want  Placed
	}{
		"a line":                 {Finding{Path: "a.go", Line: 5}, Placed{Finding{Path: "a.go", Line: 5}, 4, 6}},
		"of the other hunk":      {Finding{Path: "a.go", Line: 20}, Placed{Finding{Path: "a.go", Line: 20}, 20, 21}},
		"a range":                {Finding{Path: "a.go", StartLine: 4, Line: 6}, Placed{Finding{Path: "a.go", StartLine: 4, Line: 6}, 4, 6}},
		"a range of one":         {Finding{Path: "a.go", StartLine: 5, Line: 5}, Placed{Finding{Path: "a.go", Line: 5}, 4, 6}},
		"over two hunks":         {Finding{Path: "a.go", StartLine: 5, Line: 20, Suggestion: text("x")}, Placed{Finding{Path: "a.go", Line: 20}, 0, 0}},
		"backwards":              {Finding{Path: "a.go", StartLine: 6, Line: 4}, Placed{Finding{Path: "a.go", Line: 4}, 0, 0}},
		"between the hunks":      {Finding{Path: "a.go", Line: 7, Suggestion: text("x")}, Placed{Finding{Path: "a.go", Line: 7}, 0, 0}},
		"before the first":       {Finding{Path: "a.go", StartLine: 3, Line: 4}, Placed{Finding{Path: "a.go", Line: 4}, 0, 0}},
		"after the last":         {Finding{Path: "a.go", Line: 22}, Placed{Finding{Path: "a.go", Line: 22}, 0, 0}},
		"no patch":               {Finding{Path: "b.png", Line: 1}, Placed{Finding{Path: "b.png", Line: 1}, 0, 0}},
		"a patch cut off":        {Finding{Path: "cut.go", Line: 1}, Placed{Finding{Path: "cut.go", Line: 1}, 0, 0}},
		"no such file":           {Finding{Path: "c.go", Line: 1}, Placed{Finding{Path: "c.go", Line: 1}, 0, 0}},
		"suggestion":             {Finding{Path: "a.go", Line: 5, Suggestion: text("w")}, Placed{Finding{Path: "a.go", Line: 5, Suggestion: text("w")}, 4, 6}},
		"deletion":               {Finding{Path: "a.go", Line: 6, Suggestion: text("")}, Placed{Finding{Path: "a.go", Line: 6, Suggestion: text("")}, 4, 6}},
		"changes nothing":        {Finding{Path: "a.go", StartLine: 4, Line: 5, Suggestion: text("x\nz")}, Placed{Finding{Path: "a.go", StartLine: 4, Line: 5}, 4, 6}},
		"of windows lines":       {Finding{Path: "a.go", Line: 21, Suggestion: text("s")}, Placed{Finding{Path: "a.go", Line: 21}, 20, 21}},
		"with a carriage return": {Finding{Path: "a.go", Line: 5, Suggestion: text("s\r\nt")}, Placed{Finding{Path: "a.go", Line: 5}, 4, 6}},
		"no text":                {Finding{Path: "a.go", Line: 5, Suggestion: text("\xff")}, Placed{Finding{Path: "a.go", Line: 5}, 4, 6}},
		"with a zero byte":       {Finding{Path: "a.go", Line: 5, Suggestion: text("a\x00")}, Placed{Finding{Path: "a.go", Line: 5}, 4, 6}},
		"too long":               {Finding{Path: "a.go", Line: 5, Suggestion: text(strings.Repeat("x", MaxSuggestion+1))}, Placed{Finding{Path: "a.go", Line: 5}, 4, 6}},
	} {
		if diff := cmp.Diff([]Placed{c.want}, in.Place([]Finding{c.given})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestPlacedFindingsLieInTheirHunk holds whatever an engine says.
func TestPlacedFindingsLieInTheirHunk(t *testing.T) {
	t.Parallel()
	in := Input{Files: []File{{Path: "a.go", Patch: twoHunks}}}
	number := rapid.IntRange(-2, 30)
	rapid.Check(t, func(t *rapid.T) {
		f := Finding{Path: "a.go", StartLine: number.Draw(t, "start"), Line: number.Draw(t, "line"), Suggestion: text(rapid.String().Draw(t, "suggestion"))}
		p := in.Place([]Finding{f})[0]
		if p.Line != f.Line {
			t.Fatalf("the line moved: %+v", p)
		}
		if p.HunkStart == 0 {
			if p.HunkEnd != 0 || p.StartLine != 0 || p.Suggestion != nil {
				t.Fatalf("half an anchor: %+v", p)
			}
			return
		}
		if p.First() < p.HunkStart || p.First() > p.Line || p.Line > p.HunkEnd || p.StartLine < 0 || p.StartLine == p.Line {
			t.Fatalf("outside of its hunk: %+v", p)
		}
	})
}
