package builtin

import (
	"slices"
	"strings"
	"testing"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

func TestConflicts(t *testing.T) {
	t.Parallel()
	const whole = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> topic\n"
	for name, c := range map[string]struct {
		path, text string
		want       []string
	}{
		"whole":                 {"a.c", whole, []string{"1-5 conflict/marker"}},
		"two":                   {"a.c", whole + "x\n" + whole, []string{"1-5 conflict/marker", "7-11 conflict/marker"}},
		"diff3":                 {"a.c", "<<<<<<< HEAD\na\n||||||| base\nc\n=======\nb\n>>>>>>> topic\n", []string{"1-7 conflict/marker"}},
		"windows":               {"a.c", strings.ReplaceAll(whole, "\n", "\r\n"), []string{"1-5 conflict/marker"}},
		"end left behind":       {"a.c", "a\n>>>>>>> topic\n", []string{"2 conflict/marker"}},
		"start left behind":     {"a.c", "<<<<<<< HEAD\na\n", []string{"1 conflict/marker"}},
		"start, then whole":     {"a.c", "<<<<<<< HEAD\n" + whole, []string{"1 conflict/marker", "2-6 conflict/marker"}},
		"no label":              {"a.c", "<<<<<<<\na\n=======\n>>>>>>>\n", []string{"1-4 conflict/marker"}},
		"heading":               {"a.rst", "Heading\n=======\n", nil},
		"heading in code":       {"a.c", "/*\n=======\n*/\n", nil},
		"shift":                 {"a.c", "x <<<<<<< y\n", nil},
		"indented":              {"a.c", "  <<<<<<< HEAD\n", nil},
		"eight":                 {"a.c", "<<<<<<<< HEAD\n>>>>>>>> x\n", nil},
		"heredoc":               {"a.sh", "cat <<<<<<<EOF\n", nil},
		"document, whole":       {"a.md", whole, []string{"1-5 conflict/marker"}},
		"document, quoted part": {"a.md", "git writes\n<<<<<<< HEAD\n", nil},
		"document, quote depth": {"a.txt", ">>>>>>> deeply quoted\n", nil},
		"test data":             {"pkg/testdata/a.c", whole, nil},
	} {
		out := review(t, newEngine(t), added(c.path, c.text))
		if got := places(out); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestGoSyntax(t *testing.T) {
	t.Parallel()
	edit := func(patch, content string) engine.File {
		return engine.File{Path: "a.go", Status: engine.Modified, Patch: patch, Content: []byte(content)}
	}
	for name, c := range map[string]struct {
		file engine.File
		want []string
	}{
		"fine":              {added("a.go", "package a\n\nfunc f[T any](x T) T { return x }\n"), nil},
		"new file":          {added("a.go", "package a\n\nfunc f( {\n}\n"), []string{"3 go/syntax"}},
		"unclosed":          {added("a.go", "package a\n\nfunc f() {\n\n\n"), []string{"3 go/syntax"}},
		"//line directive":  {added("a.go", "package a\n//line x.y:500\nfunc f( {\n}\n"), []string{"3 go/syntax"}},
		"many":              {added("a.go", "package a\nvar a = = 1\nvar b = = 1\nvar c = = 1\nvar d = = 1\nvar e = = 1\n"), []string{"2 go/syntax"}},
		"not Go":            {added("a.gox", "package"), nil},
		"testdata":          {added("x/testdata/a.go", "package"), nil},
		"template":          {added("{{name}}/a.go", "package {{name}}"), nil},
		"in the hunk":       {edit("@@ -2,2 +2,2 @@\n \n-var a = 1\n+var a = = 1", "package a\n\nvar a = = 1\n"), []string{"3 go/syntax"}},
		"in its context":    {edit("@@ -2,3 +2,3 @@\n \n-var a = 1\n+var a = 2\n var b = = 1", "package a\n\nvar a = 2\nvar b = = 1\n"), []string{"4 go/syntax"}},
		"outside the hunks": {edit("@@ -2,2 +2,2 @@\n \n-var a = 1\n+var a = 2", "package a\n\nvar a = 2\nvar b = 1\n\n\nvar c = = 1\n"), nil},
	} {
		out := review(t, newEngine(t), c.file)
		if got := places(out); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v (%+v)", name, got, c.want, out.Skipped)
		}
	}
}

func TestGoSyntaxRepeatsNoLiteral(t *testing.T) {
	t.Parallel()
	out := review(t, newEngine(t), added("a.go", "package a\n\nvar a = f(\"hunter2\" \"correct horse\")\n"))
	if len(out.Findings) == 0 {
		t.Fatal("nothing found")
	}
	for _, f := range out.Findings {
		if strings.Contains(f.Sentence, "horse") || strings.Contains(f.Sentence, "hunter") {
			t.Errorf("got %q", f.Sentence)
		}
	}
}

func TestJSONSyntax(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, text string
		want       []string
	}{
		"fine":                     {"a.json", `{"a": [1, {"b": "//"}]}`, nil},
		"missing comma":            {"a.json", "{\n \"a\": 1\n \"b\": 2\n}\n", []string{"2 json/syntax"}},
		"cut off":                  {"a.json", "{\n \"a\": [1,\n\n", []string{"2 json/syntax"}},
		"comment":                  {"tsconfig.json", "{\n // yes\n \"a\": 1, /* and\n this */ \"b\": 2\n}", nil},
		"trailing comma":           {"a.json", "{\n \"a\": [1, 2,],\n}", nil},
		"comment and error":        {"a.json", "{\n // yes\n \"a\": ,\n \"b\": 1\n}", []string{"3 json/syntax"}},
		"commas in strings":        {"a.json", `{"a": ",}", "b": "/* \" */"}`, nil},
		"trailing comma, strict":   {"web/package.json", "{\n \"a\": 1,\n}", []string{"2 json/syntax"}},
		"comment, strict":          {"package.json", "{\n // no\n \"a\": 1\n}", []string{"2 json/syntax"}},
		"byte order mark":          {"a.json", "\ufeff{}", nil},
		"empty":                    {"a.json", "\n", nil},
		"template":                 {"a.json", "{\n \"a\": {{ .Values.a }}\n}", nil},
		"test data":                {"x/fixtures/a.json", "{", nil},
		"not JSON":                 {"a.jsonl", "{", nil},
		"unclosed comment":         {"a.json", "{ /* ", []string{"1 json/syntax"}},
		"unclosed string":          {"a.json", "{\"a\n: 1}", []string{"1 json/syntax"}},
		"deep":                     {"a.json", strings.Repeat("[", 100_000), []string{"1 json/syntax"}},
		"a slash where it may not": {"a.json", "{\"a\": 1}/", []string{"1 json/syntax"}},
	} {
		out := review(t, newEngine(t), added(c.path, c.text))
		if got := places(out); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v (%+v)", name, got, c.want, out.Skipped)
		}
	}
}

func TestSymbolicLinksHaveNoSyntax(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"a.go", "a.json", ".github/workflows/a.yml"} {
		link := engine.File{Path: path, Status: engine.Added, Patch: "@@ -0,0 +1 @@\n+../b/" + path + "\n\\ No newline at end of file"}
		if out := review(t, newEngine(t), link); len(out.Findings)+len(out.Skipped) != 0 {
			t.Errorf("%s: %+v, %+v", path, out.Findings, out.Skipped)
		}
	}
}

func TestWorkflow(t *testing.T) {
	t.Parallel()
	const head = "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n"
	for name, c := range map[string]struct {
		path, text string
		want       []string
	}{
		"fine":            {".github/workflows/ci.yml", head + "      - run: make\n", nil},
		"own runner":      {".github/workflows/ci.yml", strings.Replace(head, "ubuntu-latest", "our-own-box", 1) + "      - run: make\n", nil},
		"broken YAML":     {".github/workflows/ci.yaml", "on: push\njobs: [\n", []string{"2 workflow/syntax-check"}},
		"unknown key":     {".github/workflows/ci.yml", head + "      - runs: make\n", []string{"6 workflow/syntax-check"}},
		"bad expression":  {".github/workflows/ci.yml", head + "      - run: echo ${{ github.nothing }}\n", []string{"6 workflow/expression"}},
		"injection":       {".github/workflows/ci.yml", head + "      - run: echo ${{ github.event.pull_request.title }}\n", []string{"6 workflow/expression"}},
		"missing need":    {".github/workflows/ci.yml", "on: push\njobs:\n  a:\n    needs: b\n    runs-on: ubuntu-latest\n    steps:\n      - run: make\n", []string{"3 workflow/job-needs"}},
		"elsewhere":       {"deploy/workflows/ci.yml", "on: push\njobs: [\n", nil},
		"composite":       {".github/workflows/sub/ci.yml", "on: push\njobs: [\n", nil},
		"shell is left":   {".github/workflows/ci.yml", head + "      - run: echo $undefined [ a == b\n", nil},
		"local action":    {".github/workflows/ci.yml", head + "      - uses: ./../../../etc\n", nil},
		"local workflow":  {".github/workflows/ci.yml", "on: push\njobs:\n  a:\n    uses: ./.github/workflows/other.yml\n", nil},
		"anchors":         {".github/workflows/ci.yml", "on: push\njobs:\n  a: &a\n    runs-on: ubuntu-latest\n    steps:\n      - run: make\n  b: *a\n", nil},
		"deeply bracket":  {".github/workflows/ci.yml", head + "      - run: ${{ " + strings.Repeat("(", 60_000) + " }}\n", []string{"6 workflow/expression"}},
		"deeply nested":   {".github/workflows/ci.yml", "on: " + strings.Repeat("[", 9_000) + "\n", []string{"1 workflow/syntax-check"}},
		"not a mapping":   {".github/workflows/ci.yml", "- a\n", []string{"1 workflow/syntax-check"}},
		"empty but space": {".github/workflows/ci.yml", "\n\n", nil},
	} {
		out := review(t, newEngine(t), added(c.path, c.text))
		if got := places(out); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v (%+v, %+v)", name, got, c.want, out.Findings, out.Skipped)
		}
	}
}

func TestWorkflowRemarksOldLinesOnlyWhenBroken(t *testing.T) {
	t.Parallel()
	content := "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ github.nothing }}\n      - run: make\n"
	out := review(t, newEngine(t), engine.File{
		Path: ".github/workflows/ci.yml", Status: engine.Modified, Content: []byte(content),
		Patch: "@@ -6 +6,2 @@\n       - run: echo ${{ github.nothing }}\n+      - run: make",
	})
	if len(out.Findings) != 0 || len(out.Skipped) != 0 {
		t.Errorf("got %+v, %+v", out.Findings, out.Skipped)
	}
}

func TestWants(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file engine.File
		want bool
	}{
		"edited Go":        {engine.File{Path: "a.go", Status: engine.Modified, Patch: "@@"}, true},
		"renamed workflow": {engine.File{Path: ".github/workflows/a.yml", Status: engine.Renamed, Patch: "@@"}, true},
		"edited JSON":      {engine.File{Path: "a.JSON", Status: engine.Changed, Patch: "@@"}, true},
		"new Go":           {engine.File{Path: "a.go", Status: engine.Added, Patch: "@@"}, false},
		"removed Go":       {engine.File{Path: "a.go", Status: engine.Removed, Patch: "@@"}, false},
		"binary":           {engine.File{Path: "a.go", Status: engine.Modified}, false},
		"C":                {engine.File{Path: "a.c", Status: engine.Modified, Patch: "@@"}, false},
	} {
		if got := Wants(c.file); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
