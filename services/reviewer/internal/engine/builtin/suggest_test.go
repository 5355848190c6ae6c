package builtin

import (
	"encoding/json"
	"go/format"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

// applied is the text with every suggestion in its place, as GitHub puts it there.
func applied(text string, found []engine.Finding) string {
	end := ""
	if strings.HasSuffix(text, "\n") {
		text, end = text[:len(text)-1], "\n"
	}
	lines := strings.Split(text, "\n")
	for _, f := range slices.Backward(found) {
		if f.Suggestion == nil {
			continue
		}
		var instead []string
		if *f.Suggestion != "" {
			instead = strings.Split(*f.Suggestion, "\n")
		}
		lines = slices.Replace(lines, f.First()-1, f.Line, instead...)
	}
	return strings.Join(lines, "\n") + end
}

func suggestions(found []engine.Finding) int {
	n := 0
	for _, f := range found {
		if f.Suggestion != nil {
			n++
		}
	}
	return n
}

// TestSuggestionsApply puts suggestions in the place of what they remark; what comes of it has no finding.
func TestSuggestionsApply(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, text, want string }{
		"conflict, both sides agree":    {"a.c", "a\n<<<<<<< HEAD\nb\nc\n=======\nb\nc\n>>>>>>> topic\nd\n", "a\nb\nc\nd\n"},
		"conflict, agree, with base":    {"a.c", "a\n<<<<<<< HEAD\nb\n||||||| base\n=======\nb\n>>>>>>> topic\nd\n", "a\nb\nd\n"},
		"conflict, nothing on any side": {"a.c", "a\n<<<<<<< HEAD\n=======\n>>>>>>> topic\nd\n", "a\nd\n"},
		"two conflicts":                 {"a.c", "<<<<<<< HEAD\na\n=======\na\n>>>>>>> x\nb\n<<<<<<< HEAD\nc\n=======\nc\n>>>>>>> x\n", "a\nb\nc\n"},
		"start marker alone":            {"a.c", "a\n<<<<<<< HEAD\nb\n", "a\nb\n"},
		"end marker alone":              {"a.c", "a\nb\n>>>>>>> topic\n", "a\nb\n"},
		"trailing comma":                {"web/package.json", "{\n  \"a\": 1,\n  \"b\": [1, 2],\n}\n", "{\n  \"a\": 1,\n  \"b\": [1, 2]\n}\n"},
		"trailing commas":               {"package.json", "{\n  \"a\": [1, 2,], \"b\": {\"c\": \",}\",},\n}\n", "{\n  \"a\": [1, 2], \"b\": {\"c\": \",}\"}\n}\n"},
		"trailing commas of lines":      {"package.json", "{\n  \"a\": [\n    1,\n  ],\n}\n", "{\n  \"a\": [\n    1\n  ]\n}\n"},
		"comma on a line of its own":    {"package.json", "{\n  \"a\": 1\n  ,\n}\n", "{\n  \"a\": 1\n}\n"},
		"missing comma":                 {"a.json", "{\n  \"a\": 1\n  \"b\": 2\n}\n", "{\n  \"a\": 1,\n  \"b\": 2\n}\n"},
		"missing comma in an array":     {"a.json", "[\n  {\"a\": 1}\n\n  {\"b\": 2}\n]\n", "[\n  {\"a\": 1},\n\n  {\"b\": 2}\n]\n"},
		"missing comma and a comment":   {"a.json", "{\n  \"a\": 1 // one\n  \"b\": 2,\n}\n", "{\n  \"a\": 1, // one\n  \"b\": 2,\n}\n"},
		"gofmt, one line":               {"a.go", "package a\n\nvar  a=1\n", "package a\n\nvar a = 1\n"},
		"gofmt, a block":                {"a.go", "package a\n\nfunc f() {\n    g( )\n    h ()\n}\n", "package a\n\nfunc f() {\n\tg()\n\th()\n}\n"},
		"gofmt, several blocks":         {"a.go", "package a\n\nfunc f() {\n  g()\n\n\th()\n  i()\n}\n", "package a\n\nfunc f() {\n\tg()\n\n\th()\n\ti()\n}\n"},
		"gofmt, alignment":              {"a.go", "package a\n\ntype t struct {\n\ta int // one\n\tlonger int // two\n}\n", "package a\n\ntype t struct {\n\ta      int // one\n\tlonger int // two\n}\n"},
	} {
		out := review(t, newEngine(t), added(c.path, c.text))
		if n := suggestions(out.Findings); n == 0 || n != len(out.Findings) {
			t.Errorf("%s: %d suggestions for %d findings", name, n, len(out.Findings))
		}
		got := applied(c.text, out.Findings)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if again := review(t, newEngine(t), added(c.path, got)); len(again.Findings) != 0 {
			t.Errorf("%s: applied, there is %+v", name, again.Findings)
		}
	}
}

// TestNoSuggestionWhereItIsNotCertain has findings, and nobody but an author who knows what to do about them.
func TestNoSuggestionWhereItIsNotCertain(t *testing.T) {
	t.Parallel()
	token := "ghp_" + long(36)
	for name, f := range map[string]engine.File{
		"sides differ":            added("a.c", "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> topic\n"),
		"one side is empty":       added("a.c", "<<<<<<< HEAD\na\n=======\n>>>>>>> topic\n"),
		"a blank line":            added("a.c", "<<<<<<< HEAD\n\n=======\n\n>>>>>>> topic\n"),
		"windows":                 added("a.c", "<<<<<<< HEAD\r\na\r\n=======\r\na\r\n>>>>>>> topic\r\n"),
		"no middle":               added("a.c", "<<<<<<< HEAD\na\n>>>>>>> topic\n"),
		"two markers":             added("a.c", ">>>>>>> a\nb\n>>>>>>> c\n"),
		"a heading or a marker":   added("a.c", "a\n=======\nb\n>>>>>>> c\n"),
		"marker in an edit":       {Path: "a.c", Status: engine.Modified, Patch: "@@ -1 +1,2 @@\n a\n+>>>>>>> topic"},
		"other lines between":     {Path: "a.c", Status: engine.Modified, Patch: "@@ -1,2 +1,7 @@\n+<<<<<<< HEAD\n+a\n+=======\n x\n+a\n+>>>>>>> topic\n y"},
		"a secret on both":        added("a.c", "<<<<<<< HEAD\n"+token+"\n=======\n"+token+"\n>>>>>>> topic\n"),
		"two commas missing":      added("a.json", "{\n  \"a\": 1\n  \"b\": 2\n  \"c\": 3\n}\n"),
		"comma and more":          added("package.json", "{\n  \"a\": 1,,\n}\n"),
		"comma and a comment":     added("package.json", "{\n  // no\n  \"a\": 1,\n}\n"),
		"not an element":          added("a.json", "{\n  \"a\": 1 2\n}\n"),
		"byte order mark":         added("package.json", "\ufeff{\"a\": 1,}\n"),
		"comma outside the hunks": {Path: "package.json", Status: engine.Modified, Patch: "@@ -3 +3 @@\n-]\n+}", Content: []byte("{\n  \"a\": 1,\n}\n")},
		"syntax error":            added("a.go", "package a\n\nfunc  f( {\n}\n"),
	} {
		out := review(t, newEngine(t), f)
		if len(out.Findings) == 0 || suggestions(out.Findings) != 0 {
			t.Errorf("%s: %+v", name, out.Findings)
		}
	}
}

// TestFormatIsRemarkedOnWhatWasAdded looks at an edit of a file that was never formatted.
func TestFormatIsRemarkedOnWhatWasAdded(t *testing.T) {
	t.Parallel()
	const content = "package a\n\nvar  x=1\nvar  y=2\n\nfunc f() {\n  g()\n  h()\n  i()\n}\n"
	edit := func(patch, content string) engine.File {
		return engine.File{Path: "a.go", Status: engine.Modified, Patch: patch, Content: []byte(content)}
	}
	for name, c := range map[string]struct {
		file engine.File
		want []string
	}{
		"nothing of it":       {edit("@@ -5,2 +5,2 @@\n \n-func x() {\n+func f() {", content), nil},
		"one line of a block": {edit("@@ -6,3 +6,4 @@\n func f() {\n   g()\n+  h()\n   i()", content), []string{"7-9 go/format"}},
		"in two hunks":        {edit("@@ -3 +3 @@\n-var  x=0\n+var  x=1\n@@ -9,2 +9,2 @@\n-  j()\n+  i()\n }", content), []string{"3 go/format", "9 go/format"}},
		"generated":           {added("a.go", "// Code generated by x. DO NOT EDIT.\n\npackage a\n\nvar  x=1\n"), nil},
		"testdata":            {added("testdata/a.go", "package a\n\nvar  x=1\n"), nil},
		"windows":             {added("a.go", "package a\r\n\r\nvar  x=1\r\n"), nil},
		"lines are moved":     {added("a.go", "package a\n\nimport (\n\t\"b\"\n\t\"a\"\n)\n\nvar  x=1\n"), nil},
		"lines are joined":    {added("a.go", "package a\n\nfunc f() { g(); h()\n}\n"), nil},
		"blank lines alone":   {added("a.go", "package a\n\n\n\nvar x = 1\n\n\n"), nil},
		"a string over lines": {added("a.go", "package a\n\nvar x = `\n  a  b\n`\n"), nil},
	} {
		out := review(t, newEngine(t), c.file)
		if got := places(out); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v (%+v)", name, got, c.want, out.Skipped)
		}
	}
	out := review(t, newEngine(t), added("a.go", "package a\n"+strings.Repeat("\nvar  _=1\n", 25)))
	last := out.Findings[len(out.Findings)-1]
	if len(out.Findings) != mostFormat || last.Sentence != "gofmt writes this with other space, and so 15 further places of the file." {
		t.Errorf("%d findings, the last %q", len(out.Findings), last.Sentence)
	}
}

// TestSuggestionsKeepWhatTheyDoNotMend applies whatever is suggested for any text: of JSON comes JSON, Go stays the
// same program, and what is remarked of the form of Go is mended.
func TestSuggestionsKeepWhatTheyDoNotMend(t *testing.T) {
	t.Parallel()
	e, suggested := newEngine(t), map[string]int{}
	for _, path := range []string{"a.go", "b.json", "package.json", "c.c"} {
		rapid.Check(t, func(t *rapid.T) {
			text := drawn(t, path)
			out, err := e.Review(t.Context(), engine.Input{Files: []engine.File{added(path, text)}})
			if err != nil {
				t.Fatal(err)
			}
			if suggestions(out.Findings) == 0 {
				return
			}
			suggested[path]++
			got := applied(text, out.Findings)
			if !keeps(path, text, got) {
				t.Fatalf("%q became %q", text, got)
			}
			again, err := e.Review(t.Context(), engine.Input{Files: []engine.File{added(path, got)}})
			if err != nil || suggestions(again.Findings) != 0 && path != "c.c" {
				t.Fatalf("%q became %q, of which %+v", text, got, again.Findings)
			}
		})
	}
	if len(suggested) < 4 {
		t.Errorf("vacuous: %v", suggested)
	}
}

// keeps says whether a text is still what its path wants, and means the same where that can be told.
func keeps(path, before, after string) bool {
	switch path {
	case "a.go":
		was, err1 := format.Source([]byte(before))
		is, err2 := format.Source([]byte(after))
		return err1 == nil && err2 == nil && spaceless(string(was)) == spaceless(string(is))
	case "package.json":
		return json.Valid([]byte(after))
	case "b.json":
		return json.Valid([]byte(withoutComments(after)))
	}
	return true
}

// drawn is a text that has, now and then, what a rule can mend.
func drawn(t *rapid.T, path string) string {
	switch path {
	case "a.go":
		lines := []string{"\tx()", "  x( )", "\ty := a+b", "\ty  := 1 // c", "\t// d", "", "\tif  a {", "\t}", "`", "\tx();y()"}
		return "package a\n\nfunc  f() {\n" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(lines), 0, 8).Draw(t, "lines"), "\n") + "\n}\n"
	case "c.c":
		lines := []string{"<<<<<<< a\n", "x\n=======\nx\n", "=======\n", ">>>>>>> b\n", "||||||| c\n", "x\n", "y\n", "\n"}
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(lines), 1, 12).Draw(t, "lines"), "")
	}
	return drawnJSON(t)
}

// drawnJSON has few faults, if any.
func drawnJSON(t *rapid.T) string {
	space := rapid.SampledFrom([]string{"", "", " ", "\n", "\n  ", "\t", " // x\n"})
	faults := rapid.IntRange(0, 2).Draw(t, "faults")
	comma := func(want string) string {
		if faults == 0 || !rapid.Bool().Draw(t, "fault") {
			return want
		}
		faults--
		return map[string]string{",": "", "": ","}[want]
	}
	var b strings.Builder
	var value func(depth int)
	value = func(depth int) {
		brackets := "[]"
		switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
		case depth == 2, depth > 0 && kind > 1:
			b.WriteString(rapid.SampledFrom([]string{"1", "null", `"a,}"`, `"\""`, "2", "3", "4", "tru"}).Draw(t, "value"))
			return
		case kind%2 == 1:
			brackets = "{}"
		}
		b.WriteByte(brackets[0])
		n := rapid.IntRange(1, 4).Draw(t, "elements")
		for i := range n {
			b.WriteString(space.Draw(t, "before"))
			if brackets == "{}" {
				b.WriteString(`"k":`)
			}
			value(depth + 1)
			if i < n-1 {
				b.WriteString(comma(","))
			} else {
				b.WriteString(comma(""))
			}
			b.WriteString(space.Draw(t, "behind"))
		}
		b.WriteByte(brackets[1])
	}
	value(0)
	return b.String() + "\n"
}
