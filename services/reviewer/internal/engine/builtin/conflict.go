package builtin

import (
	"strings"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

const ruleConflict = "conflict/marker"

// conflicts finds merge-conflict markers, one finding per conflict. A line of seven "=" alone is
// never one: it underlines headings. Documents and test data may show conflicts on purpose; there
// only a complete one counts in documents, and none in test data.
func conflicts(f *file) {
	if within(f.path, "testdata", "fixtures", "__fixtures__") {
		return
	}
	document := hasSuffix(f.path, ".md", ".markdown", ".mdx", ".rst", ".adoc", ".txt")
	open, middle := 0, false // line of the last opening marker, 0 for none
	for l := range f.diff.AddedLines() {
		switch {
		case isMarker(l.Text, '<'):
			if open > 0 && !document {
				f.add(open, engine.Error, ruleConflict, "A merge conflict begins here and was committed unresolved.")
			}
			open, middle = l.Number, false
		case isMarker(l.Text, '=') && open > 0:
			middle = true
		case isMarker(l.Text, '>'):
			switch {
			case open > 0 && (middle || !document):
				f.add(open, engine.Error, ruleConflict, "A merge conflict begins here and was committed unresolved.")
			case open == 0 && !document:
				f.add(l.Number, engine.Error, ruleConflict, "The end marker of a merge conflict was left behind here.")
			}
			open, middle = 0, false
		}
	}
	if open > 0 && !document {
		f.add(open, engine.Error, ruleConflict, "The start marker of a merge conflict was left behind here.")
	}
}

// isMarker recognises the marker as git writes it: seven times at the start of the line, then
// nothing or a space and a label.
func isMarker(line string, mark byte) bool {
	line = strings.TrimSuffix(line, "\r")
	rest, ok := strings.CutPrefix(line, strings.Repeat(string(mark), 7))
	return ok && (rest == "" || rest[0] == ' ')
}

func hasSuffix(path string, suffixes ...string) bool {
	path = strings.ToLower(path)
	for _, s := range suffixes {
		if strings.HasSuffix(path, s) {
			return true
		}
	}
	return false
}
