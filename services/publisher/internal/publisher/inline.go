package publisher

import (
	"fmt"
	"strings"
)

const (
	maxInlineMessage = 1000
	maxSuggestion    = 20_000
	// maxSuggested bounds the suggestions of one review, in bytes; further findings are said without.
	maxSuggested = 500_000
)

// post is the review in one call: every remark with its own marker, on its lines of the reviewed head.
func post(keys Keyring, e Epoch, p Plan) *Post {
	out := &Post{HeadSHA: e.Run.HeadSHA, Comments: Inlines(p.Say)}
	for i, s := range p.Say {
		place := e.PlaceOf(Ref{Kind: SurfaceRemark, Key: s.Fingerprint})
		out.Comments[i].Body = keys.Marker(place, Mark{At: e.At, Run: e.Run.ID}) + "\n" + out.Comments[i].Body
	}
	return out
}

// Inlines renders what is to be said on lines of the diff, without the markers: as a preview shows it.
func Inlines(say []Said) []Inline {
	out := make([]Inline, 0, len(say))
	left := maxSuggested
	for _, s := range say {
		if s.Suggestion != nil {
			if left -= len(*s.Suggestion); left < 0 {
				s.Suggestion = nil
			}
		}
		in := Inline{Path: s.Path, Line: s.Line, Body: inline(s.Finding)}
		if s.StartLine > 0 && s.StartLine < s.Line {
			in.StartLine = s.StartLine
		}
		out = append(out, in)
	}
	return out
}

// inline says one finding where it is, with what the lines should be instead.
func inline(f Finding) string {
	text := fmt.Sprintf("**%s** %s\n\n%s\n", severityName(f.Severity), Code(f.Rule, maxWord), Code(f.Message, maxInlineMessage))
	if f.Suggestion != nil && suggestible(*f.Suggestion) {
		text += "\n" + suggestion(*f.Suggestion)
	}
	return text
}

// suggestion is the block that GitHub offers to apply: a fence that nothing in the text closes.
func suggestion(s string) string {
	longest, run := 0, 0
	for _, r := range s {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	fence := strings.Repeat("`", max(3, longest+1))
	if s != "" {
		s += "\n"
	}
	return fence + "suggestion\n" + s + fence + "\n"
}

// suggestible tells text that a person can judge by looking at it, and that is not acted upon by whoever reads
// comments raw: nothing hidden, no marker, no command at the start of a line.
func suggestible(s string) bool {
	if len(s) > maxSuggestion || strings.ToValidUTF8(s, "") != s || strings.Contains(s, markerBegin) {
		return false
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && hidden(r) {
			return false
		}
	}
	for line := range strings.Lines(s) {
		if rest, slash := strings.CutPrefix(line, "/"); slash && (rest == "" || !strings.ContainsAny(rest[:1], "/*")) {
			return false
		}
	}
	return true
}

// review is the text above the inline comments. One that is brought up to date says nothing anew.
func review(marker string, e Epoch, p Plan) string {
	head := "remarks on this head"
	if n := len(p.Say); n > 0 {
		head = count(n, "new remark")
	}
	return fmt.Sprintf("%s\n### Fenceline: %s\n\nOf %s, against %s.\n\nRun %s\n%s\n", marker, head,
		Code(e.Run.HeadSHA, 64), Code(e.Run.BaseSHA, 64), Code(e.Run.ID.String(), 36), sectionEnd)
}

// reviewTakenBack is what a review of a head says once the page says something else. The head is empty where it is not
// known any more.
func reviewTakenBack(marker string, e Epoch, head string) string {
	what := "remarks on an older head"
	if e.Run != nil && e.Run.HeadSHA == head && e.Kind != KindSuperseded {
		what = "remarks of an earlier run"
	}
	return fmt.Sprintf("%s\n### Fenceline: %s\n%s%s\n", marker, what, takenBack(e, head), sectionEnd)
}

// resolved is what is put above a remark once it is found no more.
func resolved(marker string, e Epoch) string {
	at := ""
	if e.Run != nil && e.Run.HeadSHA != "" {
		at = " at " + Code(e.Run.HeadSHA, 64)
	}
	return fmt.Sprintf("%s\n**Fixed**: not found any more%s.\n%s\n", marker, at, sectionEnd)
}

// bare shows text that is not ours where GitHub shows plain text, at most limit characters of it: what plain does,
// and no address that anything makes a link of, and no command at its start.
func bare(s string, limit int) string {
	var b strings.Builder
	var before [3]rune
	n := 0
	for i, r := range plain(s, limit) {
		if n == limit {
			b.WriteString("…")
			break
		}
		switch {
		case r == '/' && before[2] == '/' && before[1] == ':':
			r = '⁄'
		case r == '.' && strings.EqualFold(string(before[:]), "www"):
			r = '．'
		case r == '/' && i == 0:
			r = '⁄'
		}
		b.WriteRune(r)
		before = [3]rune{before[1], before[2], r}
		n++
	}
	return b.String()
}

// Duplicate is what is said of an output that is too many and can't be removed.
const Duplicate = "A duplicate: the answer of GitHub to the first write was lost. It says nothing."
