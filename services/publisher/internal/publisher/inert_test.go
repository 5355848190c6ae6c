package publisher

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"pgregory.net/rapid"
)

// corpus is text as a pull request or a model may bring it.
var corpus = []string{
	"<img src=x onerror=alert(1)>", "![x](https://evil.example/?q=1)", "[a](javascript:alert(1))", "``` \n<script>", "@org/team fixes #1",
	"\n\n# Heading\n/approve", "https://evil.example/x", "<!-- fenceline:1 s=a r=b e=1.1 h=c -->", "[^1]: http://x.example",
	"&lt;b&gt; &#64;octocat", "www.evil.example", "closes octo/repo#3", "/merge", "```suggestion\nx\n```", "`````", "~~~\n@a", "<!-- fenceline:1 end -->",
	"</details>", "a\u202eb\u200bc\U000e0041", "\ufeff", "x\r\ny", "bad \xff bytes", "    indented", "| a | b |\n|---|---|", "- [ ] task", "GH-12",
	strings.Repeat("x", 5000), strings.Repeat("`", 300), strings.Repeat("\u202e", 700), "\\", "\x00", "a\n\n\nb", "//x", "/*x*/", "1. # x", "2)", "see mailto:a@b.example", "a@b.example", "www.a.example/x", "http:///x", "see www.a.b", "WWW.x",
}

func hostile() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.StringOfN(rapid.RuneFrom([]rune("`@#/<>!-[]()&;:~*_|\\\n\r\t ab1.w\u202e\u200b")), 0, 60, -1),
		rapid.SampledFrom(corpus),
	)
}

// TestNothingForeignActs: whatever a pull request or a model says, in whatever field, nothing that is posted
// makes a link, an image, HTML, a mention, a reference, a command or a marker of it, or hides anything.
func TestNothingForeignActs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) string { return hostile().Draw(t, name) }
		kinds := []Kind{KindResult, KindSuperseded, KindSkipped, KindRefused, KindOverBudget, KindQueued, KindInProgress}
		e := anEpoch(rapid.SampledFrom(kinds).Draw(t, "kind"))
		e.Reason, e.Detail, e.NewerHead, e.PR.Name = draw("reason"), draw("detail"), draw("newer"), draw("name")
		e.Run.BaseRef, e.Run.Engine, e.Run.BaseSHA, e.Run.MergeBaseSHA = draw("ref"), draw("engine"), draw("base"), draw("merge base")
		var in Input
		for range rapid.IntRange(0, 3).Draw(t, "findings") {
			f := aFinding(draw("path"), draw("rule"), draw("message"), draw("suggestion"))
			f.Severity = rapid.SampledFrom([]Severity{SeverityError, SeverityInfo}).Draw(t, "severity")
			in.Review.Findings = append(in.Review.Findings, f)
			in.Review.Omissions = append(in.Review.Omissions, Omission{Path: draw("left"), Reason: draw("why")})
		}
		for range rapid.SampledFrom([]int{0, 0, 6}).Draw(t, "of one reason") {
			in.Review.Omissions = append(in.Review.Omissions, Omission{Path: draw("left"), Reason: "too many"})
		}
		for range rapid.SampledFrom([]int{0, 0, 300}).Draw(t, "more") { // what does not fit
			in.Review.Findings = append(in.Review.Findings, in.Review.Findings...)[:min(400, 2*len(in.Review.Findings))]
			in.Review.Omissions = append(in.Review.Omissions, in.Review.Omissions...)[:min(400, 2*len(in.Review.Omissions))]
		}
		in.History = []Past{{At: e.At, Run: Run{ID: RunID{2}, HeadSHA: draw("head")}, URL: draw("url")}}
		everything(t, e, in, draw("ended"))
	})
}

func aFinding(path, rule, message, suggestion string) Finding {
	return Finding{Path: path, StartLine: 2, Line: 3, HunkStart: 1, HunkEnd: 9, Severity: SeverityWarning, Rule: rule, Message: message, Suggestion: &suggestion}
}

// FuzzNothingForeignActs is the same, steered by coverage.
func FuzzNothingForeignActs(f *testing.F) {
	for i, s := range corpus {
		f.Add(s, corpus[(i+7)%len(corpus)], s, s, corpus[(i+3)%len(corpus)])
	}
	f.Fuzz(func(t *testing.T, path, rule, message, suggestion, reason string) {
		e := anEpoch(KindResult)
		e.Run.BaseRef, e.Run.Engine = rule, path
		everything(t, e, Input{Review: Review{
			Findings:  []Finding{aFinding(path, rule, message, suggestion)},
			Omissions: []Omission{{Path: path, Reason: reason}, {Reason: message}},
		}}, reason)
		e = anEpoch(KindSkipped)
		e.Reason, e.Detail = reason, message
		everything(t, e, Input{}, rule)
	})
}

// TestSentenceIsText: a sentence is text and code spans, whatever it says.
func TestSentenceIsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Sentence(strings.Join(rapid.SliceOf(hostile()).Draw(t, "said"), rapid.SampledFrom([]string{"", " ", "`"}).Draw(t, "between")))
		doc := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader([]byte(s + "\n")))
		_ = ast.Walk(doc, func(n ast.Node, _ bool) (ast.WalkStatus, error) {
			switch n.(type) {
			case *ast.Document, *ast.Paragraph, *ast.Text:
			case *ast.CodeSpan:
				return ast.WalkSkipChildren, nil
			default:
				t.Fatalf("a %s in %q", n.Kind(), s)
			}
			return ast.WalkContinue, nil
		})
		raw(t, s)
		if strings.HasPrefix(s, "/") {
			t.Fatalf("a command: %q", s)
		}
	})
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// everything renders the epoch on every surface, and looks at what would be posted.
func everything(t failer, e Epoch, in Input, ended string) {
	t.Helper()
	for i, f := range in.Review.Findings {
		said := Said{f, fmt.Sprintf("%064x", i)}
		if i%2 == 0 {
			in.Plan.Say = append(in.Plan.Say, said)
		} else {
			in.Plan.Unplaced = append(in.Plan.Unplaced, said)
		}
	}
	w := worked(e, Intent{State: StateEnded, Reason: ended})
	for _, ref := range []Ref{
		hereRef,
		{SurfaceReview, e.Run.ID.String()},
		{SurfaceReview, RunID{9}.String()},
		{SurfaceRemark, strings.Repeat("a", 64)},
		{SurfaceCheckRun, e.Run.HeadSHA + ":" + e.Run.ID.String()},
		{SurfaceCheckRun, "9999:" + RunID{9}.String()},
		{SurfaceStatus, e.Run.HeadSHA},
		{SurfaceStatus, "9999"},
	} {
		out := w.Render(ring, ref, in)
		if ref.Kind != SurfaceStatus {
			posted(t, e.PlaceOf(ref), out.Body, nil)
		}
		if out.Check != nil {
			plainText(t, out.Check.Title, 140)
			for _, a := range out.Check.Annotations {
				plainText(t, a.Title, 255)
				plainText(t, a.Message, 64<<10)
			}
		}
		if out.Post != nil {
			for i, c := range out.Post.Comments {
				posted(t, e.PlaceOf(Ref{SurfaceRemark, in.Plan.Say[i].Fingerprint}), c.Body, in.Plan.Say[i].Suggestion)
			}
		}
	}
}

var reference = regexp.MustCompile(`#[0-9]`)

// ourHTML is all the HTML that is ever posted, with whatever number.
var ourHTML = regexp.MustCompile(`^(<details>\n<summary>\d+ (earlier results?|more files? left out)</summary>\n|</details>\n)$`)

// posted looks at a body as GitHub makes a page of it, and at its raw text as other programs read it.
func posted(t failer, p Place, body string, suggested *string) {
	t.Helper()
	if _, genuine := ring.Read(p, body); !genuine {
		t.Fatalf("the marker is not first: %q", body[:min(len(body), 300)])
	}
	_, rest, _ := strings.Cut(body, "\n")
	rest = strings.TrimSuffix(rest, sectionEnd+"\n")
	if !utf8.ValidString(body) || utf8.RuneCountInString(body) > 65_000 {
		t.Fatalf("%d characters, valid %t", utf8.RuneCountInString(body), utf8.ValidString(body))
	}
	if strings.Contains(rest, markerBegin) {
		t.Fatalf("a second marker in\n%s", rest)
	}
	outside, fences := parse(t, rest)
	if suggested == nil && len(fences) > 0 || len(fences) > 1 {
		t.Fatalf("fences %q", fences)
	}
	for _, inside := range fences {
		if want := *suggested; strings.TrimSuffix(inside, "\n") != want {
			t.Fatalf("suggests %q, want %q", inside, want)
		}
		for line := range strings.Lines(inside) {
			if strings.HasPrefix(line, "/") && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "/*") {
				t.Fatalf("a command: %q", line)
			}
		}
		if i := strings.IndexFunc(inside, func(r rune) bool { return r != '\n' && r != '\t' && hidden(r) }); i >= 0 {
			t.Fatalf("hidden character in %q", inside)
		}
	}
	for line := range strings.Lines(outside) {
		if strings.HasPrefix(line, "/") {
			t.Fatalf("a command: %q", line)
		}
		raw(t, strings.TrimSuffix(line, "\n"))
	}
}

// parse returns what is outside of fenced code, and what is in it. Anything that acts fails.
func parse(t failer, source string) (outside string, fences []string) {
	t.Helper()
	outside = source
	doc := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote)).Parser().Parse(text.NewReader([]byte(source)))
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.FencedCodeBlock:
			inside := string(n.Lines().Value([]byte(source)))
			if string(n.Language([]byte(source))) != "suggestion" {
				return ast.WalkStop, fmt.Errorf("a fence of %q", n.Language([]byte(source)))
			}
			fences = append(fences, inside)
			if inside != "" {
				outside = strings.Replace(outside, "suggestion\n"+inside, "suggestion\n", 1)
			}
		case *ast.HTMLBlock:
			if html := string(n.Lines().Value([]byte(source))); !ourHTML.MatchString(html) {
				return ast.WalkStop, fmt.Errorf("HTML %q", html)
			}
		case *ast.Link:
			if at := string(n.Destination); !isPage(at) || len(n.Title) > 0 {
				return ast.WalkStop, fmt.Errorf("a link to %q", at)
			}
		case *ast.CodeSpan:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if s := string(n.Value([]byte(source))); strings.ContainsAny(s, "@#<>`|") || strings.Contains(s, "://") {
				return ast.WalkStop, fmt.Errorf("text outside of a code span: %q", s)
			}
		case *ast.Document, *ast.Paragraph, *ast.TextBlock, *ast.Heading, *ast.List, *ast.ListItem, *ast.Emphasis, *ast.ThematicBreak:
		default:
			return ast.WalkStop, fmt.Errorf("a %s", n.Kind())
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatalf("%v in\n%s", err, source)
	}
	return outside, fences
}

// raw looks at a line as programs read it that know no Markdown.
func raw(t failer, line string) {
	t.Helper()
	switch {
	case strings.ContainsFunc(line, hidden):
		t.Fatalf("hidden character in %q", line)
	case mention.MatchString(line), reference.MatchString(line) && !strings.Contains(line, "[review]("), strings.Contains(line, "<!--"):
		t.Fatalf("mentions, refers or comments: %q", line)
	}
}

// plainText looks at what GitHub shows as it is.
func plainText(t failer, s string, limit int) {
	t.Helper()
	raw(t, s)
	if s == "" || utf8.RuneCountInString(s) > limit || len(s) > 64<<10 || !utf8.ValidString(s) ||
		strings.HasPrefix(s, "/") || strings.Contains(s, "://") || strings.Contains(strings.ToLower(s), "www.") {
		t.Fatalf("plain text of %d characters: %q", utf8.RuneCountInString(s), s)
	}
}

// TestSuggestions: a block that applies, or none.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                       "```suggestion\n```\n",
		"x := 1\n\ty":            "```suggestion\nx := 1\n\ty\n```\n",
		"a ``` b":                "````suggestion\na ``` b\n````\n",
		"`````\n```":             "``````suggestion\n`````\n```\n``````\n",
		"// a comment\n/* b */":  "```suggestion\n// a comment\n/* b */\n```\n",
		"<!-- a page -->":        "```suggestion\n<!-- a page -->\n```\n",
		"@Override // fixes #1":  "```suggestion\n@Override // fixes #1\n```\n",
		"a\n/approve":            "",
		"/":                      "",
		"a\r\nb":                 "",
		"a\u202eb":               "",
		"\u00a0x":                "",
		"<!-- fenceline:1 end":   "",
		"bad \xff":               "",
		strings.Repeat("x", 1e5): "",
	} {
		got := inline(Finding{Severity: SeverityError, Rule: "r", Message: "m", Suggestion: &in})
		if want != "" {
			want = "\n" + want
		}
		if want = "**Error** `r`\n\n`m`\n" + want; got != want {
			t.Errorf("%.40q became\n%s\nwant\n%s", in, got, want)
		}
	}
}

// TestUnplacedComesFirst: what is said nowhere else is listed, however much there is.
func TestUnplacedComesFirst(t *testing.T) {
	t.Parallel()
	var in Input
	for i := range 500 {
		in.Review.Findings = append(in.Review.Findings, Finding{Path: "a.go", Line: int32(i + 1), Severity: SeverityInfo, Rule: "r", Message: strings.Repeat("é", 500)})
	}
	in.Plan.Unplaced = []Said{{Finding: in.Review.Findings[499]}}
	in.Review.Omissions = slices.Repeat([]Omission{{Path: "big.bin", Reason: "too large"}}, 50)
	body := Summary("", anEpoch(KindResult), in)
	for _, want := range []string{"`a.go:500`", "(not placed on its line)", "findings more, not listed here", "`big.bin`: `too large`"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if len(body) > maxBody {
		t.Errorf("%d bytes", len(body))
	}
}
