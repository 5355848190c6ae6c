package builtin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

// checkOutput holds what must be true of any output.
func checkOutput(t interface{ Fatalf(string, ...any) }, e *Engine, in engine.Input, out engine.Output) {
	if (out.Verdict == engine.Findings) != (len(out.Findings) > 0) {
		t.Fatalf("verdict %s with %d findings", out.Verdict, len(out.Findings))
	}
	if !slices.IsSortedFunc(out.Findings, byPlace) || len(out.Findings) > e.limits.Findings {
		t.Fatalf("%d findings, or out of order", len(out.Findings))
	}
	for _, f := range out.Findings {
		inDiff := slices.ContainsFunc(in.Files, func(x engine.File) bool { return x.Path == f.Path && headLines(x.Patch)[f.Line] })
		if !inDiff {
			t.Fatalf("%s:%d is not in the diff", f.Path, f.Line)
		}
		if f.Sentence == "" || len(f.Sentence) > sentenceLimit || !utf8.ValidString(f.Sentence) || strings.ContainsAny(f.Sentence, "\n\r\x00") || redact(f.Sentence) != f.Sentence {
			t.Fatalf("sentence %q", f.Sentence)
		}
		placed := in.Place([]engine.Finding{f})[0]
		if placed.HunkStart == 0 || placed.StartLine != f.StartLine || (placed.Suggestion != nil) != (f.Suggestion != nil) {
			t.Fatalf("%+v is placed as %+v", f, placed)
		}
		if f.Suggestion != nil && redact(*f.Suggestion) != *f.Suggestion {
			t.Fatalf("suggestion %q", *f.Suggestion)
		}
		if f.Rule == "" || f.Severity < engine.Info || f.Severity > engine.Error {
			t.Fatalf("finding %+v", f)
		}
	}
	if cost, most := e.Price().Cost(out.Usage), e.Price().Maximum(in.DiffBytes()); cost > most || cost <= 0 {
		t.Fatalf("cost %d, reserved %d", cost, most)
	}
}

// headLines reads a patch in another way than the engine does: by counting.
func headLines(patch string) map[int]bool {
	lines, number := map[int]bool{}, 0
	for line := range strings.Lines(patch) {
		var a, b, c int
		switch {
		case strings.HasPrefix(line, "@@ "):
			if n, _ := fmt.Sscanf(line, "@@ -%d,%d +%d", &a, &b, &c); n == 3 {
				number = c
			} else if n, _ := fmt.Sscanf(line, "@@ -%d +%d", &a, &c); n == 2 {
				number = c
			}
		case strings.HasPrefix(line, "-"), strings.HasPrefix(line, `\`):
		default:
			lines[number] = true
			number++
		}
	}
	return lines
}

// line draws what the rules care about.
func line() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"<<<<<<< HEAD", "=======", ">>>>>>> topic", "package a", "func f() {", "}", "var a = = 1", `{"a": 1,`, "}", "[1, 2", "",
			"on: push", "jobs:", "  a:", "    runs-on: ubuntu-latest", "    steps:", "      - run: ${{ x }}", "    needs: [a, b]", "// comment", "/*", "*/",
			"ghp_" + long(36), "AKIA" + "Q7X2M4N8P5R9T3V6", "-----BEGIN RSA PRIVATE KEY-----", long(64), "\r", "\t", "\"", "`", `\ No newline`,
			`var s = "ghp_` + long(36) + `" "x"`, "${{ ghp_" + long(36) + " }}: 1",
		}),
		rapid.StringMatching(`[ -~]{0,30}`),
		rapid.Map(rapid.String(), func(s string) string { return strings.ReplaceAll(s, "\n", "") }),
	)
}

// edited draws a file before and after, as hunks and as the text at the head.
func edited() *rapid.Generator[engine.File] {
	return rapid.Custom(func(t *rapid.T) engine.File {
		path := rapid.SampledFrom([]string{"a.go", "b.json", ".github/workflows/c.yml", "d.md", "e.c", "testdata/f.pem", "package.json"}).Draw(t, "path")
		var patch, head strings.Builder
		old, now := 1, 1
		for range rapid.IntRange(1, 3).Draw(t, "hunks") {
			for range rapid.IntRange(1, 4).Draw(t, "gap") {
				head.WriteString(strings.ReplaceAll(line().Draw(t, "between"), "\n", "") + "\n")
				old, now = old+1, now+1
			}
			var body strings.Builder
			oldLines, newLines := 0, 0
			for i := range rapid.IntRange(1, 8).Draw(t, "lines") {
				op := rapid.SampledFrom([]string{" ", "+", "+", "-"}).Draw(t, "op")
				if i == 0 {
					op = "+"
				}
				text := line().Draw(t, "text")
				body.WriteString(op + text + "\n")
				if op != "+" {
					oldLines++
				}
				if op != "-" {
					newLines++
					head.WriteString(text + "\n")
				}
			}
			fmt.Fprintf(&patch, "@@ -%d,%d +%d,%d @@\n%s", old, oldLines, now, newLines, body.String())
			old, now = old+oldLines, now+newLines
		}
		f := engine.File{Path: path, Status: engine.Modified, Patch: patch.String(), Content: []byte(head.String())}
		if rapid.Bool().Draw(t, "damaged") {
			f.Patch = damaged(t, f.Patch)
		}
		return f
	})
}

func damaged(t *rapid.T, s string) string {
	at := rapid.IntRange(0, len(s)-1).Draw(t, "at")
	return s[:at] + rapid.SampledFrom([]string{"", "\n", "@@", "+", "\x00", "é"}).Draw(t, "put") + s[at+1:]
}

func TestEveryFindingLiesInTheDiff(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(l *Limits) { l.Findings = 10 })
	parsed, found := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		f := edited().Draw(t, "file")
		in := engine.Input{Files: []engine.File{f}}
		out, err := e.Review(t.Context(), in)
		if err != nil {
			t.Fatalf("review: %v", err)
		}
		checkOutput(t, e, in, out)
		parsed, found = parsed+out.Reviewed, found+len(out.Findings)
	})
	if parsed == 0 || found == 0 {
		t.Errorf("vacuous: %d files parsed, %d findings", parsed, found)
	}
}

func FuzzReview(f *testing.F) {
	f.Add("a.go", "@@ -1,2 +1,3 @@\n package a\n-b\n+func f( {\n+d", "package a\nfunc f( {\nd\n")
	f.Add(".github/workflows/a.yml", "@@ -0,0 +1,2 @@\n+on: push\n+jobs: {a: {steps: [{run: \"${{ x }}\"}]}}", "")
	f.Add("a.json", "@@ -0,0 +1 @@\n+{\"a\": /* */ 1,}", "")
	f.Add("a", "@@ -0,0 +1,2 @@\n+-----BEGIN RSA PRIVATE KEY-----\n+"+long(64), "")
	e := newEngine(f)
	f.Fuzz(func(t *testing.T, path, patch, content string) {
		in := engine.Input{Files: []engine.File{{Path: path, Status: engine.Modified, Patch: patch, Content: []byte(content)}}}
		out, err := e.Review(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		checkOutput(t, e, in, out)
	})
}
