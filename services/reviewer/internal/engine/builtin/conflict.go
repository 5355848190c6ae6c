package builtin

import (
	"slices"
	"strings"

	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

const ruleConflict = "conflict/marker"

// What is said of conflicts.
const (
	conflictWhole = "A merge conflict begins here and was committed unresolved."
	conflictStart = "The start marker of a merge conflict was left behind here."
	conflictEnd   = "The end marker of a merge conflict was left behind here."
)

// conflicts finds merge-conflict markers, one finding per conflict. A line of seven "=" alone is
// never one: it underlines headings. Documents and test data may show conflicts on purpose; there
// only a complete one counts in documents, and none in test data.
func conflicts(f *file) {
	if within(f.path, "testdata", "fixtures", "__fixtures__") {
		return
	}
	document := hasSuffix(f.path, ".md", ".markdown", ".mdx", ".rst", ".adoc", ".txt")
	var open *conflict
	for l := range f.diff.AddedLines() {
		switch {
		case isMarker(l.Text, '<'):
			if open != nil && !document {
				f.conflict(open.start, open.start, conflictWhole, nil)
			}
			open = &conflict{start: l.Number, last: l.Number}
			continue
		case isMarker(l.Text, '>'):
			switch {
			case open != nil && (open.middle() || !document):
				open.line(l)
				f.conflict(open.start, l.Number, conflictWhole, open.resolved())
			case open == nil && !document:
				f.conflict(l.Number, l.Number, conflictEnd, f.leftBehind())
			}
			open = nil
		}
		if open != nil {
			open.line(l)
		}
	}
	if open != nil && !document {
		f.conflict(open.start, open.start, conflictStart, f.leftBehind())
	}
}

func (f *file) conflict(first, last int, sentence string, instead *string) {
	f.remark(remark{first: first, last: last, severity: engine.Error, rule: ruleConflict, sentence: sentence, instead: instead})
}

// conflict is one that is being read.
type conflict struct {
	start, last int
	broken      bool        // other lines lie between its own
	sides       [3][]string // ours, theirs, and what both came from
	side        int
	met         [3]bool
}

func (c *conflict) middle() bool { return c.met[1] }

func (c *conflict) line(l engine.Line) {
	c.broken = c.broken || l.Number != c.last+1
	c.last = l.Number
	switch {
	case isMarker(l.Text, '|') && !c.met[1] && !c.met[2]:
		c.side, c.met[2] = 2, true
	case isMarker(l.Text, '=') && !c.met[1]:
		c.side, c.met[1] = 1, true
	case isMarker(l.Text, '>'):
	default:
		c.sides[c.side] = append(c.sides[c.side], l.Text)
	}
}

// resolved is what the conflict should be instead, where both sides say the same. Which of two others is meant,
// only its author knows.
func (c *conflict) resolved() *string {
	text := strings.Join(c.sides[0], "\n")
	if c.broken || !c.middle() || !slices.Equal(c.sides[0], c.sides[1]) || text == "" && len(c.sides[0]) > 0 {
		return nil
	}
	return &text
}

// leftBehind deletes a marker, where it is the only one of the file: then nothing is left to choose from.
func (f *file) leftBehind() *string {
	markers := 0
	for l := range f.diff.AddedLines() {
		if strings.ContainsAny(l.Text[:min(len(l.Text), 1)], "<|=>") && isMarker(l.Text, l.Text[0]) {
			markers++
		}
	}
	if !f.diff.Whole || markers != 1 {
		return nil
	}
	return new(string)
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
