package publisher

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSentence(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Say `/fenceline review`.":         "Say `/fenceline review`.",
		"`/fenceline` a":                   "`/fenceline` a",
		"/fenceline review":                "\\/fenceline review",
		"# big":                            "\\# big",
		"- a list":                         "\\- a list",
		"1. # a list":                      "1\\. # a list",
		"``` a fence":                      "''' a fence",
		"":                                 "(empty)",
		"one\n\ntwo":                       "one  two",
		"cc @acme/team, fixes #12":         "cc ＠acme/team, fixes ＃12",
		"<!-- fenceline:1 x -->":           "\\< \\!-- fenceline:1 x --\\>",
		"<img src=x>":                      "\\<img src=x\\>",
		"![x](http://x) *a* _b_":           "\\!\\[x\\](http：//x) \\*a\\* \\_b\\_",
		"an `open end @me":                 "an 'open end ＠me",
		"`a <b> *c*` <b>":                  "`a <b> *c*` \\<b\\>",
		"a\u202eb":                         "a⟨U+202E⟩b",
		strings.Repeat("x", maxSentence+9): strings.Repeat("x", maxSentence) + "…",
	} {
		if got := Sentence(in); got != want {
			t.Errorf("%.40q became %.80q, want %.80q", in, got, want)
		}
	}
}

var mention = regexp.MustCompile(`(^|[^A-Za-z0-9_])@[A-Za-z0-9]`)

// TestSentenceActsOnNothing: whatever is said, it is one line without a mention, a reference, a command, or a
// marker.
func TestSentenceActsOnNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		got := Sentence(strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
			"@", "#", "1", "a", " ", "\n", "/", "`", "<", "!", "--", ">", "*", "[", "]", "\\", "\u200b", "fixes", "fenceline",
		})).Draw(t, "words"), ""))
		if mention.MatchString(got) {
			t.Fatalf("%q mentions somebody", got)
		}
		for _, bad := range []string{"\n", "#1", "<!--", markerPrefix} {
			if strings.Contains(got, bad) {
				t.Fatalf("%q holds %q", got, bad)
			}
		}
		if strings.HasPrefix(got, "/") || strings.Count(got, "`")%2 != 0 {
			t.Fatalf("%q", got)
		}
	})
}

func TestReplyIsWhole(t *testing.T) {
	t.Parallel()
	whole := Reply{ID: "x", Comment: 1, Reaction: Eyes}
	e := Epoch{Kind: KindReply, Reply: &whole}
	if err := e.Validate(); err != nil || len(e.Refs()) != 1 || e.IntentKey(e.Refs()[0]) != "reply:x:reaction" {
		t.Errorf("%v, %v", err, e.Refs())
	}
	whole.Sentence = "No."
	if refs := e.Refs(); len(refs) != 2 || refs[1] != (Ref{Kind: SurfaceReply, Key: "x"}) {
		t.Errorf("%v", refs)
	}
	for _, r := range []Reply{{Comment: 1, Reaction: Eyes}, {ID: "x", Reaction: Eyes}, {ID: "x", Comment: 1}} {
		if err := (Epoch{Kind: KindReply, Reply: &r}).Validate(); !errors.Is(err, ErrInvalidEpoch) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	e := Epoch{Kind: KindResult, Run: &Run{ID: RunID{1}, HeadSHA: "bbbb", BaseSHA: "aaaa", BaseRef: "main", Attempt: AttemptID{2}, Errors: 1, Engine: "builtin"}}
	got := Preview(e, Input{Review: Review{Findings: []Finding{{Path: "a.go", Line: 3, Severity: SeverityError, Rule: "r", Message: "m"}}}})
	if !strings.HasPrefix(got, "### Fenceline: 1 error\n") || strings.Contains(got, markerPrefix) || strings.Contains(got, "epoch") || !strings.Contains(got, "a.go:3") {
		t.Errorf("previewed\n%s", got)
	}
}
