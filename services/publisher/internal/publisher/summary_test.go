package publisher

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

func anEpoch(kind Kind) Epoch {
	return Epoch{
		Tenant: Tenant{1}, Target: TargetID{2}, At: Position{1, 3}, Kind: kind,
		PR: PullRequest{Host: "github.com", Installation: 1, Repository: 42, Name: "octo/repo", Number: 7},
		Run: &Run{
			ID: RunID{3}, BaseRef: "main", BaseSHA: strings.Repeat("a", 40), HeadSHA: strings.Repeat("b", 40),
			MergeBaseSHA: strings.Repeat("c", 40), Ordinal: 1, Attempt: AttemptID{4}, Errors: 1, Warnings: 2,
			Engine: "builtin", CostMicros: 12500,
		},
		Traceparent: "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01",
	}
}

var aReview = Review{
	Findings: []Finding{
		{Path: "cmd/main.go", Line: 12, Severity: SeverityWarning, Rule: "go-syntax", Message: "expected ';', found x"},
		{Path: "deploy/key.pem", Line: 1, Severity: SeverityError, Rule: "private-key", Message: "A private key was added."},
		{Path: ".github/workflows/ci.yml", Line: 9, Severity: SeverityWarning, Rule: "actionlint", Message: "\"actions/checkout@v2\" is too old, ask @octocat (#12)"},
	},
	Omissions: []Omission{{"logo.png", "binary"}, {"vendor/big.js", "too large"}},
}

func TestGolden(t *testing.T) {
	t.Parallel()
	noRun := anEpoch(KindSkipped)
	noRun.Run, noRun.Reason = nil, "draft"
	superseded := anEpoch(KindSuperseded)
	superseded.NewerHead = strings.Repeat("d", 40)
	refused, over := anEpoch(KindRefused), anEpoch(KindOverBudget)
	refused.Reason, refused.Detail = "attempts_exhausted", "the engine failed 3 times"
	over.Reason = "budget_used_up"
	clean := anEpoch(KindResult)
	clean.Run.Clean, clean.Run.Errors, clean.Run.Warnings, clean.Run.Ordinal = true, 0, 0, 0
	posted := Intent{State: StateConfirmed, URL: "https://github.com/octo/repo/pull/7#issuecomment-1"}

	bodies := map[string]string{
		"result":       Summary("MARKER", anEpoch(KindResult), aReview),
		"clean":        Summary("MARKER", clean, Review{}),
		"superseded":   Summary("MARKER", superseded, Review{}),
		"skipped":      Summary("MARKER", noRun, Review{}),
		"refused":      Summary("MARKER", refused, Review{}),
		"overbudget":   Summary("MARKER", over, Review{}),
		"check-result": golden(CheckRun("MARKER", anEpoch(KindResult), aReview, posted)),
		"check-clean":  golden(CheckRun("MARKER", clean, Review{}, posted)),
		"check-over":   golden(CheckRun("MARKER", over, Review{}, Intent{State: StateEnded, Reason: ReasonNothing})),
		"check-no-comment": golden(CheckRun("MARKER", anEpoch(KindResult), Review{},
			Intent{State: StateEnded, Reason: "refused_forbidden"})),
	}
	for name, got := range bodies {
		file := filepath.Join("testdata", name+".md")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (run with -update to accept):\n%s", name, diff)
		}
	}
}

func golden(c Check) string {
	return fmt.Sprintf("head %s\nexternal id %s\nconclusion %s\ndetails %s\ntitle %s\n\n%s", c.HeadSHA, c.ExternalID, c.Conclusion, c.DetailsURL, c.Title, c.Summary)
}

func TestCode(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"":                          "`(empty)`",
		"plain text":                "`plain text`",
		"@octocat, see #12":         "`＠octocat, see ＃12`",
		"actions/checkout@v4":       "`actions/checkout@v4`",
		"a `b` c":                   "`a 'b' c`",
		"one\n/deploy\r\ntwo":       "`one /deploy  two`",
		"<!-- fenceline:1 -->":      "`< !-- fenceline:1 -->`",
		"a\u202eb\u200bc\U000e0041": "`a⟨U+202E⟩b⟨U+200B⟩c⟨U+E0041⟩`",
		"bad \xff bytes":            "`bad \ufffd bytes`",
		"0123456789abcdef":          "`0123456789…`",
		"\x00\x1b[31m":              "`⟨U+0000⟩⟨U+001B⟩[31m`",
	}
	for in, want := range tests {
		if got := Code(in, 10_000); in != "0123456789abcdef" && got != want {
			t.Errorf("Code(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Code("0123456789abcdef", 10); got != tests["0123456789abcdef"] {
		t.Errorf("cut at 10: %q", got)
	}
}

// TestNothingOfAPullRequestActs: whatever paths, rules and messages say, the comment has no link, image
// or HTML but the marker, no mention, reference or command for who reads the raw text, nothing hidden, and
// stays within GitHub's bound with its marker first.
func TestNothingOfAPullRequestActs(t *testing.T) {
	t.Parallel()
	hostile := rapid.OneOf(
		rapid.String(),
		rapid.StringOfN(rapid.RuneFrom([]rune("`@#/<>!-[]()&;:~*_|\\\n\t ab1\u202e\u200b")), 0, 60, -1),
		rapid.SampledFrom([]string{
			"<img src=x onerror=alert(1)>", "![x](https://evil.example/?q=1)", "[a](javascript:alert(1))", "``` \n<script>", "@org/team fixes #1",
			"\n\n# Heading\n/approve", "https://evil.example/x", "<!-- fenceline:1 s=a r=b e=1.1 h=c -->", "[^1]: http://x.example", "&lt;b&gt; &#64;octocat",
			strings.Repeat("x", 5000), strings.Repeat("`", 300), strings.Repeat("\u202e", 700),
		}),
	)
	rapid.Check(t, func(t *rapid.T) {
		e := anEpoch(rapid.SampledFrom([]Kind{KindResult, KindSuperseded, KindSkipped, KindRefused, KindOverBudget}).Draw(t, "kind"))
		e.Reason, e.Detail, e.NewerHead = hostile.Draw(t, "reason"), hostile.Draw(t, "detail"), hostile.Draw(t, "newer")
		e.Run.BaseRef, e.Run.Engine = hostile.Draw(t, "ref"), hostile.Draw(t, "engine")
		var rv Review
		for range rapid.SampledFrom([]int{0, 1, 3, 300}).Draw(t, "findings") {
			if len(rv.Findings) > 3 {
				rv.Findings = append(rv.Findings, rv.Findings[0])
				rv.Omissions = append(rv.Omissions, rv.Omissions[0])
				continue
			}
			rv.Findings = append(rv.Findings, Finding{
				Path: hostile.Draw(t, "path"), Line: 3, Severity: SeverityWarning, Rule: hostile.Draw(t, "rule"), Message: hostile.Draw(t, "message"),
			})
			rv.Omissions = append(rv.Omissions, Omission{hostile.Draw(t, "path"), hostile.Draw(t, "reason")})
		}
		marker := ring.Marker(here, mark)
		body := Summary(marker, e, rv)
		inert(t, marker, body)
		check := CheckRun(marker, e, rv, Intent{State: StateEnded, Reason: hostile.Draw(t, "ended")})
		inert(t, marker, check.Summary)
	})
}

func inert(t *rapid.T, marker, body string) {
	rest, ok := strings.CutPrefix(body, marker+"\n")
	if !ok {
		t.Fatalf("the marker is not first: %q", body[:min(len(body), 300)])
	}
	if !utf8.ValidString(body) || utf8.RuneCountInString(body) > 65_000 {
		t.Fatalf("%d characters, valid %t", utf8.RuneCountInString(body), utf8.ValidString(body))
	}
	for _, r := range rest {
		if r != '\n' && hidden(r) {
			t.Fatalf("hidden character %U", r)
		}
	}
	if strings.Contains(rest, "<!--") {
		t.Fatal("a second comment")
	}
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "/") {
			t.Fatalf("a command: %q", line)
		}
	}
	doc := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader([]byte(rest)))
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link, *ast.Image, *ast.AutoLink, *ast.RawHTML, *ast.HTMLBlock, *ast.FencedCodeBlock, *ast.CodeBlock:
			return ast.WalkStop, fmt.Errorf("a %s", n.Kind())
		case *ast.CodeSpan:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if s := n.Value([]byte(rest)); entering && strings.ContainsAny(string(s), "@#<>`") {
				return ast.WalkStop, fmt.Errorf("text outside of a code span: %q", s)
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatalf("%v in\n%s", err, rest)
	}
}
