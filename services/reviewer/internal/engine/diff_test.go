package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		patch string
		want  Diff
		bad   bool
	}{
		"empty":    {"", Diff{}, false},
		"new file": {"@@ -0,0 +1,2 @@\n+a\n+b", Diff{Whole: true, Hunks: []Hunk{{Lines: []Line{{1, "a", true, false}, {2, "b", true, false}}}}}, false},
		"without newline": {"@@ -0,0 +1 @@\n+a\n\\ No newline at end of file", Diff{Whole: true, Hunks: []Hunk{{Lines: []Line{
			{1, "a", true, true},
		}}}}, false},
		"edit": {"@@ -4,3 +4,3 @@ func f() {\n x\n-y\n+z\n \n@@ -20 +20,2 @@\n q\n+r\n", Diff{Hunks: []Hunk{
			{Lines: []Line{{4, "x", false, false}, {5, "z", true, false}, {6, "", false, false}}},
			{Lines: []Line{{20, "q", false, false}, {21, "r", true, false}}},
		}}, false},
		"newline taken away": {"@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file", Diff{Hunks: []Hunk{{Lines: []Line{{1, "b", true, true}}}}}, false},
		"newline added":      {"@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a", Diff{Hunks: []Hunk{{Lines: []Line{{1, "a", true, false}}}}}, false},
		"emptied":            {"@@ -1 +0,0 @@\n-a", Diff{}, false},
		"carriage return":    {"@@ -1 +1 @@\n-a\n+b\r", Diff{Hunks: []Hunk{{Lines: []Line{{1, "b\r", true, false}}}}}, false},
		"looks like a header": {"@@ -1 +1,2 @@\n-a\n+++ b/f\n+@@ -1 +1 @@", Diff{Hunks: []Hunk{{Lines: []Line{
			{1, "++ b/f", true, false}, {2, "@@ -1 +1 @@", true, false},
		}}}}, false},
		"another file behind": {"@@ -1 +1 @@\n-a\n+b\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b", Diff{}, true},
		"lines behind":        {"@@ -1 +1 @@\n-a\n+b\n+c", Diff{}, true},
		"cut off":             {"@@ -1,3 +1,3 @@\n-a\n+b", Diff{}, true},
		"no hunk":             {"+a", Diff{}, true},
		"out of order":        {"@@ -9 +9 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b", Diff{}, true},
		"overlapping":         {"@@ -1,2 +1,2 @@\n-a\n+b\n c\n@@ -2 +2 @@\n-a\n+b", Diff{}, true},
		"line zero":           {"@@ -0 +0 @@\n-a\n+b", Diff{}, true},
		"negative":            {"@@ -1 +-5 @@\n-a\n+b", Diff{}, true},
		"huge":                {"@@ -1 +9223372036854775807 @@\n-a\n+b", Diff{}, true},
		"not a number":        {"@@ -x +y @@\n-a\n+b", Diff{}, true},
	} {
		got, err := ParsePatch(c.patch)
		if (err != nil) != c.bad || err != nil && !errors.Is(err, ErrPatch) {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestPatchErrorsQuoteNothing(t *testing.T) {
	t.Parallel()
	_, err := ParsePatch("@@ -1 +1 @@\n*hunter2")
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

func TestTextAndMatches(t *testing.T) {
	t.Parallel()
	for patch, want := range map[string]string{
		"@@ -0,0 +1,2 @@\n+a\n+b":                               "a\nb\n",
		"@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file": "a\nb",
	} {
		d, err := ParsePatch(patch)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Text(); got != want || !d.Matches(got) {
			t.Errorf("got %q, want %q", got, want)
		}
		if d.Matches("a\n") || d.Matches("") || d.Matches("b\na\n") {
			t.Error("matches another text")
		}
	}
}

func FuzzParsePatch(f *testing.F) {
	f.Add("@@ -1,2 +1,3 @@ f\n a\n-b\n+c\n+d\n\\ No newline at end of file")
	f.Add("@@ -0,0 +1 @@\n+a")
	f.Fuzz(func(t *testing.T, patch string) {
		d, err := ParsePatch(patch)
		if err != nil {
			return
		}
		last := 0
		for _, h := range d.Hunks {
			for _, l := range h.Lines {
				if l.Number <= last {
					t.Fatalf("line %d after %d", l.Number, last)
				}
				last = l.Number
				if got, ok := d.Line(l.Number); !ok || got != l {
					t.Fatalf("line %d is not found", l.Number)
				}
				if !strings.Contains(patch, l.Text) {
					t.Fatalf("line %d is not in the patch", l.Number)
				}
			}
		}
		if _, ok := d.Line(last + 1); ok {
			t.Fatal("a line after the last")
		}
		if d.Whole && !d.Matches(d.Text()) {
			t.Fatal("the whole does not match itself")
		}
	})
}
