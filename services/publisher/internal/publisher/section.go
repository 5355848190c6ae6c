package publisher

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxComment is how many characters GitHub takes in a comment.
const maxComment = 65_536

// Splice puts a newly rendered section where the comment of the place has its own, and keeps whatever people wrote
// around it. The section comes first, so that it is found again. It is cut where the comment would become too long;
// ok is false where even its heading has no room.
func (k Keyring) Splice(p Place, comment, section string) (body string, ok bool) {
	kept := strings.Trim(k.around(p, comment), "\r\n")
	if strings.TrimSpace(kept) == "" {
		return section, true
	}
	section, ok = shorten(section, maxComment-utf8.RuneCountInString(kept)-2)
	return section + "\n" + kept + "\n", ok
}

// around is what of the comment is not ours: all that is outside of a section which begins with a genuine marker and
// ends with the line for that, or else with the comment.
func (k Keyring) around(p Place, comment string) string {
	var kept strings.Builder
	ours := false
	for rest := comment; rest != ""; {
		line, after, _ := strings.Cut(rest, "\n")
		size := len(rest) - len(after)
		if !ours {
			_, ours = k.Read(p, rest)
		}
		switch {
		case !ours:
			kept.WriteString(rest[:size])
		case strings.TrimSuffix(line, "\r") == sectionEnd:
			ours = false
		}
		rest = after
	}
	return kept.String()
}

// Resolve puts what is rendered of a fixed remark above what the remark said, which is folded away. What people
// wrote into it stays with it.
func (k Keyring) Resolve(p Place, comment, section string) (body string, ok bool) {
	const fold = "<details>\n<summary>What was remarked</summary>\n\n"
	comment = strings.ReplaceAll(comment, "\r\n", "\n") // as a browser leaves it
	kept := comment
	if _, genuine := k.Read(p, comment); genuine {
		_, kept, _ = strings.Cut(comment, "\n")
		if m, _ := k.Read(p, comment); m.Resolved { // a section that is there already is replaced
			kept = k.around(p, comment)
		}
	}
	if kept = strings.Trim(kept, "\r\n"); kept == "" {
		return section, true
	}
	if !strings.HasPrefix(kept, fold) {
		kept = fold + kept + "\n\n</details>"
	}
	body = section + "\n" + kept + "\n"
	return body, utf8.RuneCountInString(body) <= maxComment
}

// shorten leaves out lines of a section from its end, but for the line that ends it, until it has at most limit
// characters. Marker and heading stay; false where they have no room.
func shorten(section string, limit int) (string, bool) {
	if utf8.RuneCountInString(section) <= limit {
		return section, true
	}
	const note = "\nThe rest has no room in this comment.\n"
	const unfold = "\n</details>\n"
	room := limit - len(note) - len(unfold) - len(sectionEnd) - 1
	var b strings.Builder
	lines, folded := 0, false
	for line := range strings.Lines(section) {
		room -= utf8.RuneCountInString(line)
		if room < 0 {
			break
		}
		b.WriteString(line)
		lines++
		folded = line == "<details>\n" || folded && line != "</details>\n"
	}
	if folded {
		b.WriteString(unfold)
	}
	b.WriteString(note)
	fmt.Fprintln(&b, sectionEnd)
	return b.String(), lines >= 2
}
