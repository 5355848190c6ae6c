package builtin

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// sentenceLimit is in bytes.
const sentenceLimit = 300

// plain makes one line of plain text of a sentence that a parser or linter may have built from
// the code under review: no control characters, no secret, no more than the limit.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
	s = redact(strings.Join(strings.Fields(s), " "))
	if len(s) > sentenceLimit {
		const more = "…"
		end := sentenceLimit - len(more)
		for !utf8.RuneStart(s[end]) {
			end--
		}
		s = strings.TrimRight(s[:end], " ") + more
	}
	return s
}

// firstSentence cuts a message of several sentences; the later ones are advice or lists.
func firstSentence(s string) string {
	if i := strings.Index(s, ". "); i > 0 {
		return s[:i]
	}
	return strings.TrimSuffix(s, ".")
}
