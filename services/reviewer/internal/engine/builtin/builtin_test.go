package builtin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

func newEngine(t testing.TB, change ...func(*Limits)) *Engine {
	t.Helper()
	limits := DefaultLimits()
	for _, c := range change {
		c(&limits)
	}
	e, err := New(limits, 250)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// added is the diff of a new file.
func added(path, text string) engine.File {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	return engine.File{
		Path: path, Status: engine.Added, Changes: len(lines),
		Patch: fmt.Sprintf("@@ -0,0 +1,%d @@\n+%s", len(lines), strings.Join(lines, "+")),
	}
}

func review(t testing.TB, e *Engine, files ...engine.File) engine.Output {
	t.Helper()
	out, err := e.Review(t.Context(), engine.Input{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// places renders findings as "line rule", or "first-last rule".
func places(out engine.Output) []string {
	var got []string
	for _, f := range out.Findings {
		place := strconv.Itoa(f.Line)
		if f.StartLine > 0 {
			place = fmt.Sprintf("%d-%d", f.StartLine, f.Line)
		}
		got = append(got, place+" "+f.Rule)
	}
	return got
}

func TestReviewFindsWhatWasAdded(t *testing.T) {
	t.Parallel()
	patch := "@@ -1,4 +1,8 @@\n package a\n \n+<<<<<<< HEAD\n+var a = 1\n+=======\n+var a = 2\n+>>>>>>> other\n func f() {}\n"
	out := review(t, newEngine(t), engine.File{Path: "a.txt.cfg", Status: engine.Modified, Patch: strings.Replace(patch, "-1,4", "-1,3", 1)})
	want := engine.Output{
		Verdict: engine.Findings, Reviewed: 1,
		Usage: engine.Usage{DiffBytes: int64(len(patch))},
		Findings: []engine.Finding{{
			Path: "a.txt.cfg", StartLine: 3, Line: 7, Severity: engine.Error, Rule: "conflict/marker",
			Sentence: "A merge conflict begins here and was committed unresolved.",
		}},
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
}

func TestCleanReview(t *testing.T) {
	t.Parallel()
	out := review(t, newEngine(t), added("main.go", "package main\n\nfunc main() {}\n"), added("a.json", `{"a": [1, 2]}`))
	if out.Verdict != engine.Clean || len(out.Findings) != 0 || len(out.Skipped) != 0 || out.Reviewed != 2 {
		t.Errorf("got %+v", out)
	}
}

func TestPriceIsPerStartedKiBUpToTheLimit(t *testing.T) {
	t.Parallel()
	p := newEngine(t, func(l *Limits) { l.DiffBytes = 4 << 10 }).Price()
	for bytes, want := range map[int64]int64{0: 250, 1: 250, 1024: 250, 1025: 500, 4096: 1000, 1 << 30: 1000} {
		if got := p.Maximum(bytes); got != want {
			t.Errorf("Maximum(%d) = %d, want %d", bytes, got, want)
		}
	}
}

func TestEveryLimitSaysWhatItLeftOut(t *testing.T) {
	t.Parallel()
	big := added("b.txt", strings.Repeat("x\n", 200))
	markers := added("c.go.in", strings.Repeat("<<<<<<< a\n=======\n>>>>>>> b\n", 5))
	for name, c := range map[string]struct {
		limit func(*Limits)
		files []engine.File
		want  []engine.Skip
	}{
		"files":      {func(l *Limits) { l.Files = 1 }, []engine.File{big, added("a.txt", "x")}, []engine.Skip{{Path: "b.txt", Reason: "over the limit of 1 files"}}},
		"one diff":   {func(l *Limits) { l.FileDiffBytes = 100 }, []engine.File{big}, []engine.Skip{{Path: "b.txt", Reason: "diff of 617 bytes, over the limit of 100 for one file"}}},
		"all diffs":  {func(l *Limits) { l.DiffBytes = 620 }, []engine.File{big, added("a.txt", "x")}, []engine.Skip{{Path: "b.txt", Reason: "over the limit of 620 bytes of diff"}}},
		"findings":   {func(l *Limits) { l.Findings = 2 }, []engine.File{markers}, []engine.Skip{{Reason: "3 more findings, over the limit of 2"}}},
		"content":    {func(l *Limits) { l.ContentBytes = 10 }, []engine.File{added("a.go", "package main\n")}, []engine.Skip{{Path: "a.go", Reason: "Go syntax not checked: 13 bytes, over the limit of 10"}}},
		"workflow":   {func(l *Limits) { l.WorkflowBytes = 10 }, []engine.File{added(".github/workflows/a.yml", "name: long enough")}, []engine.Skip{{Path: ".github/workflows/a.yml", Reason: "workflow not checked: 18 bytes, over the limit of 10"}}},
		"no patch":   {func(*Limits) {}, []engine.File{{Path: "a.png", Status: engine.Added}}, []engine.Skip{{Path: "a.png", Reason: "no text diff: binary, or only its mode changed", Minor: true}}},
		"withheld":   {func(*Limits) {}, []engine.File{{Path: "a.c", Status: engine.Modified, Changes: 9, NoPatch: "too large for GitHub"}}, []engine.Skip{{Path: "a.c", Reason: "too large for GitHub"}}},
		"lock file":  {func(*Limits) {}, []engine.File{{Path: "web/yarn.lock", Status: engine.Modified, Changes: 9, NoPatch: "too large for GitHub"}}, []engine.Skip{{Path: "web/yarn.lock", Reason: "too large for GitHub", Minor: true}}},
		"generated":  {func(l *Limits) { l.Files = 1 }, []engine.File{added("a.pb.go", "package a\n"), big}, []engine.Skip{{Path: "a.pb.go", Reason: "over the limit of 1 files", Minor: true}}},
		"empty":      {func(*Limits) {}, []engine.File{{Path: "__init__.py", Status: engine.Added, Empty: true}}, nil},
		"malformed":  {func(*Limits) {}, []engine.File{{Path: "a.c", Patch: "@@ what @@"}}, []engine.Skip{{Path: "a.c", Reason: "its diff does not parse"}}},
		"renamed":    {func(*Limits) {}, []engine.File{{Path: "a.c", Status: engine.Renamed}}, nil},
		"removed":    {func(*Limits) {}, []engine.File{{Path: "a.c", Status: engine.Removed, Patch: "@@ -1 +0,0 @@\n-x", Changes: 1}}, nil},
		"no content": {func(*Limits) {}, []engine.File{{Path: "a.go", Status: engine.Modified, Patch: "@@ -1 +1 @@\n-x\n+y", NoContent: "too many files"}}, []engine.Skip{{Path: "a.go", Reason: "Go syntax not checked: too many files"}}},
		"other head": {func(*Limits) {}, []engine.File{{Path: "a.go", Status: engine.Modified, Patch: "@@ -1 +1 @@\n-x\n+y", Content: []byte("z\n")}}, []engine.Skip{{Path: "a.go", Reason: "Go syntax not checked: its content is not that of the diff"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := review(t, newEngine(t, c.limit), c.files...)
			if diff := cmp.Diff(c.want, out.Skipped); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatTheSourceLeftOutIsRepeated(t *testing.T) {
	t.Parallel()
	want := []engine.Skip{{Reason: "12 files are beyond GitHub's limit of 300"}}
	out, err := newEngine(t).Review(t.Context(), engine.Input{LeftOut: want})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.Skipped); diff != "" {
		t.Error(diff)
	}
}

func TestTheGravestFindingsAreKept(t *testing.T) {
	t.Parallel()
	key := strings.Join(pemKey(), "\n")
	out := review(t, newEngine(t, func(l *Limits) { l.Findings = 1 }), added("a/testdata/k.pem", key), added("z.go.in", "<<<<<<< a\n=======\n>>>>>>> b\n"))
	if got, want := places(out), []string{"1-3 conflict/marker"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOutputDoesNotDependOnTheOrderOfFiles(t *testing.T) {
	t.Parallel()
	files := []engine.File{added("b.json", "{"), added("a.json", "["), added("c.cfg", ">>>>>>> x")}
	e := newEngine(t, func(l *Limits) { l.Files = 2 })
	want := review(t, e, files...)
	slices.Reverse(files)
	if diff := cmp.Diff(want, review(t, e, files...)); diff != "" {
		t.Error(diff)
	}
}

func TestReviewEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newEngine(t).Review(ctx, engine.Input{Files: []engine.File{added("a.txt", "x")}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestManySkipsAreShortened(t *testing.T) {
	t.Parallel()
	files := make([]engine.File, 150)
	for i := range files {
		files[i] = engine.File{Path: fmt.Sprintf("%03d.png", i), Status: engine.Added}
	}
	out := review(t, newEngine(t), files...)
	if n := len(out.Skipped); n != mostSkips+1 || out.Skipped[n-1] != (engine.Skip{Reason: "50 more notes of this kind", Minor: true}) {
		t.Errorf("%d notes, the last %+v", n, out.Skipped[n-1])
	}
	// What was reviewable is among those that are kept.
	files = append(files, engine.File{Path: "z.c", Status: engine.Added, Changes: 1, NoPatch: "too large"})
	out = review(t, newEngine(t), files...)
	if n := len(out.Skipped); n != mostSkips+1 || out.Skipped[n-2] != (engine.Skip{Path: "z.c", Reason: "too large"}) || !out.Skipped[n-1].Minor {
		t.Errorf("%d notes, the last %+v", n, out.Skipped[n-2:])
	}
}

func TestGeneratedFilesAreKnownByTheirNames(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"go.sum": true, "a/b/package-lock.json": true, "vendor/x/y.go": true, "web/node_modules/a.js": true, "api/v1/a.pb.go": true, "js/a.min.js": true,
		"Cargo.lock": true, "vendor.go": false, "a/go.sum.go": false, "package.json": false, "map.go": false, "": false,
	} {
		if isGenerated(path) != want {
			t.Errorf("%q: %t", path, !want)
		}
	}
}
