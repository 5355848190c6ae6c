package publisher

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Code shows text that is not ours, at most limit characters of it, as one inline code span: the one
// place in a comment where GitHub makes no mention, link, image, reference or HTML of anything. What
// other readers of the raw text act upon is defused as well, and what can't be seen is spelled out.
func Code(s string, limit int) string {
	var b strings.Builder
	b.WriteByte('`')
	b.WriteString(plain(s, limit))
	b.WriteByte('`')
	return b.String()
}

// plain is the inside of a code span: one line, never empty, no backtick, nothing hidden.
func plain(s string, limit int) string {
	return strings.ReplaceAll(plainMarked(s, limit), "`", "'")
}

// plainMarked is plain, but for its backticks.
func plainMarked(s string, limit int) string {
	var b strings.Builder
	var last rune
	text := []rune(strings.TrimSpace(strings.ToValidUTF8(s, "\ufffd")))
	for i, r := range text {
		if i == limit {
			b.WriteString("…")
			break
		}
		next := ' '
		if i+1 < len(text) {
			next = text[i+1]
		}
		r = visible(r)
		switch {
		case hidden(r):
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		case r == '@' && !word(last) && word(next):
			b.WriteRune('＠') // no mention, for whoever reads the raw text
		case r == '#' && unicode.IsDigit(next):
			b.WriteRune('＃') // no reference
		case r == '!' && last == '<':
			b.WriteString(" !") // no comment, so no marker
		default:
			b.WriteRune(r)
		}
		last = r
	}
	if b.Len() == 0 {
		return "(empty)"
	}
	return b.String()
}

// visible makes a line of several: whatever separates becomes a space.
func visible(r rune) rune {
	if r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029' || r == '\u0085' {
		return ' '
	}
	return r
}

// hidden tells characters that can't be seen, or that change how others are shown: controls, bidi,
// zero width, tags, variation selectors, fillers, private use and what is no character.
func hidden(r rune) bool {
	switch {
	case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point):
		return true
	case unicode.IsSpace(r) && r != ' ':
		return true
	case r == '\u034f', r >= '\u17b4' && r <= '\u17b5', r >= '\u180b' && r <= '\u180f', r == '\u2800':
		return true
	}
	return false
}

func word(r rune) bool {
	return r == '_' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// count writes "1 error", "3 errors".
func count[N int | int32](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// money writes micro-units of the deployment's currency without trailing zeros.
func money(micros int64) string {
	sign := ""
	if micros < 0 {
		sign, micros = "-", -micros
	}
	s := fmt.Sprintf("%s%d.%06d", sign, micros/1_000_000, micros%1_000_000)
	whole, frac, _ := strings.Cut(s, ".")
	frac = strings.TrimRight(frac, "0")
	if len(frac) < 2 {
		frac += strings.Repeat("0", 2-len(frac))
	}
	return whole + "." + frac
}
