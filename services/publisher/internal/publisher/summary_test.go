package publisher

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func anEpoch(kind Kind) Epoch {
	return Epoch{
		Tenant: Tenant{1}, Target: TargetID{2}, At: Position{1, 3, 0}, Kind: kind,
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
		{Path: "cmd/main.go", Line: 12, HunkStart: 8, HunkEnd: 16, Severity: SeverityWarning, Rule: "go-syntax", Message: "expected ';', found x"},
		{Path: "deploy/key.pem", StartLine: 1, Line: 27, HunkStart: 1, HunkEnd: 27, Severity: SeverityError, Rule: "private-key", Message: "A private key was added.", Suggestion: new(string)},
		{Path: ".github/workflows/ci.yml", Line: 9, Severity: SeverityWarning, Rule: "actionlint", Message: "\"actions/checkout@v2\" is too old, ask @octocat (#12)"},
	},
	Omissions: []Omission{{Path: "logo.png", Reason: "binary", Minor: true}, {Path: "vendor/big.js", Reason: "too large"}},
	Files:     4, DiffBytes: 2500,
}

func anInput() Input {
	f := aReview.Findings
	return Input{
		Review: aReview,
		Plan: Plan{
			Say: []Said{{f[1], strings.Repeat("e", 64)}}, Standing: 1, Unplaced: []Said{{f[2], strings.Repeat("f", 64)}},
			Fixed: []Remark{{ID: 5}, {ID: 6}},
		},
		History: []Past{
			{At: Position{1, 2, 0}, Run: Run{ID: RunID{2}, HeadSHA: strings.Repeat("9", 40), Infos: 1}, URL: "https://github.com/octo/repo/pull/7#pullrequestreview-80"},
			{At: Position{1, 1, 0}, Run: Run{ID: RunID{1}, HeadSHA: strings.Repeat("8", 40)}},
		},
	}
}

// worked is an epoch whose comment has been posted, or has ended as the intent says.
func worked(e Epoch, comment Intent) Work {
	comment.Ref = hereRef
	return Work{Epoch: e, Cells: []Cell{{Intent: comment}}}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	skipped, superseded := anEpoch(KindSkipped), anEpoch(KindSuperseded)
	skipped.Run, skipped.Reason = nil, "draft"
	superseded.NewerHead = strings.Repeat("d", 40)
	refused, over := anEpoch(KindRefused), anEpoch(KindOverBudget)
	refused.Reason, refused.Detail = "attempts_exhausted", "the engine failed 3 times"
	over.Reason = "budget_used_up"
	clean, result := anEpoch(KindResult), anEpoch(KindResult)
	clean.Run.Clean, clean.Run.Errors, clean.Run.Warnings, clean.Run.Ordinal = true, 0, 0, 0
	queued, started := anEpoch(KindQueued), anEpoch(KindInProgress)
	queued.At, started.At = Position{1, 0, 2}, Position{1, 0, 3}
	posted := Intent{State: StateConfirmed, URL: "https://github.com/octo/repo/pull/7#issuecomment-1"}

	summary, review := hereRef, Ref{SurfaceReview, RunID{3}.String()}
	remark := Ref{SurfaceRemark, strings.Repeat("e", 64)}
	check := Ref{SurfaceCheckRun, strings.Repeat("b", 40) + ":" + RunID{3}.String()}
	older := Ref{SurfaceCheckRun, strings.Repeat("9", 40) + ":" + RunID{2}.String()}
	cases := map[string]struct {
		work Work
		ref  Ref
		in   Input
	}{
		"result":           {worked(result, Intent{}), summary, anInput()},
		"result-alone":     {worked(result, Intent{}), summary, Input{Review: aReview}},
		"clean":            {worked(clean, Intent{}), summary, Input{Review: Review{Files: 1, DiffBytes: 10}}},
		"superseded":       {worked(superseded, Intent{}), summary, Input{}},
		"skipped":          {worked(skipped, Intent{}), summary, Input{}},
		"refused":          {worked(refused, Intent{}), summary, Input{}},
		"overbudget":       {worked(over, Intent{}), summary, Input{}},
		"review":           {worked(result, Intent{}), review, anInput()},
		"review-part":      {worked(result, Intent{}), Ref{SurfaceReview, review.Key + "/1"}, anInput()},
		"review-again":     {worked(result, Intent{}), review, Input{}},
		"review-older":     {worked(superseded, Intent{}), Ref{SurfaceReview, RunID{2}.String()}, Input{}},
		"remark-fixed":     {worked(result, Intent{}), remark, anInput()},
		"check-queued":     {worked(queued, Intent{}), check, Input{}},
		"check-started":    {worked(started, Intent{}), check, Input{}},
		"check-result":     {worked(result, posted), check, anInput()},
		"check-clean":      {worked(clean, posted), check, Input{}},
		"check-omitted":    {worked(clean, posted), check, Input{Review: Review{Omissions: aReview.Omissions}}},
		"check-over":       {worked(over, Intent{State: StateEnded, Reason: ReasonNothing}), check, Input{}},
		"check-no-comment": {worked(result, Intent{State: StateEnded, Reason: "refused_forbidden"}), check, Input{}},
		"check-older":      {worked(result, posted), older, anInput()},
		"check-closed":     {worked(skipped, Intent{}), older, Input{}},
		"status-result":    {worked(result, posted), Ref{SurfaceStatus, strings.Repeat("b", 40)}, anInput()},
		"status-older":     {worked(result, posted), Ref{SurfaceStatus, strings.Repeat("9", 40)}, anInput()},
	}
	for name, c := range cases {
		got := golden(c.work, c.ref, c.work.Render(ring, c.ref, c.in))
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

// golden is an output as it is posted, but for its markers, which a key is needed to read.
func golden(w Work, ref Ref, out Output) string {
	var b strings.Builder
	if c := out.Check; c != nil {
		fmt.Fprintf(&b, "head %s\nexternal id %s\nstatus %s\nconclusion %s\nnot run %t\ndetails %s\ntitle %s\n",
			c.HeadSHA, c.ExternalID, c.Status, c.Conclusion, c.NotRun, c.DetailsURL, c.Title)
		for _, a := range c.Annotations {
			fmt.Fprintf(&b, "annotation %s:%d-%d %s %q %q\n", a.Path, a.StartLine, a.EndLine, a.Level, a.Title, a.Message)
		}
		b.WriteByte('\n')
	}
	b.WriteString(unmarked(w.Epoch.PlaceOf(ref), out.Body))
	if out.Post != nil {
		for _, c := range out.Post.Comments {
			fmt.Fprintf(&b, "\n=== %s, %s:%d-%d\n", out.Post.HeadSHA, c.Path, c.StartLine, c.Line)
			b.WriteString(unmarked(w.Epoch.PlaceOf(Ref{SurfaceRemark, strings.Repeat("e", 64)}), c.Body))
		}
	}
	return b.String()
}

// unmarked puts a word in the place of a genuine marker.
func unmarked(p Place, body string) string {
	m, ok := ring.Read(p, body)
	if !ok {
		return body
	}
	_, rest, _ := strings.Cut(body, "\n")
	return fmt.Sprintf("MARKER %+v\n%s", m.At, rest)
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
