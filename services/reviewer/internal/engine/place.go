package engine

import (
	"strings"
	"unicode/utf8"
)

// MaxSuggestion bounds a suggestion in bytes. A longer one is dropped: half of one would not apply.
const MaxSuggestion = 10_000

// Placed is a finding with the hunk that holds it.
type Placed struct {
	Finding
	HunkStart, HunkEnd int // head-side lines of the hunk; 0 where no hunk holds the finding
}

// Place finds the hunk of each finding in the input's own diffs: they alone say where a comment can stand, and
// an engine's word is not taken for it. A finding whose lines no single hunk holds keeps its line and loses its
// range and its suggestion.
func (in Input) Place(found []Finding) []Placed {
	patches := make(map[string]string, len(in.Files))
	for _, f := range in.Files {
		patches[f.Path] = f.Patch
	}
	diffs := make(map[string]Diff)
	out := make([]Placed, 0, len(found))
	for _, f := range found {
		d, parsed := diffs[f.Path]
		if !parsed {
			d, _ = ParsePatch(patches[f.Path]) // one that does not parse holds no line
			diffs[f.Path] = d
		}
		out = append(out, d.place(f))
	}
	return out
}

func (d Diff) place(f Finding) Placed {
	h, ok := d.Hunk(f.First(), f.Line)
	if !ok {
		f.StartLine, f.Suggestion = 0, nil
		return Placed{Finding: f}
	}
	if f.StartLine <= 0 || f.StartLine == f.Line {
		f.StartLine = 0
	}
	if f.Suggestion != nil && !Applies(*f.Suggestion, h.Between(f.First(), f.Line)) {
		f.Suggestion = nil
	}
	return Placed{Finding: f, HunkStart: h.First(), HunkEnd: h.Last()}
}

// Applies says whether a suggestion can stand for the lines: it is text of bounded length, it changes
// something, and it does so without changing how lines end.
func Applies(suggestion string, lines []Line) bool {
	if len(suggestion) > MaxSuggestion || !utf8.ValidString(suggestion) || strings.ContainsAny(suggestion, "\r\x00") {
		return false
	}
	same := make([]string, len(lines))
	for i, l := range lines {
		if strings.Contains(l.Text, "\r") {
			return false // applied, the lines would end in another way than those around them
		}
		same[i] = l.Text
	}
	return suggestion == "" || suggestion != strings.Join(same, "\n")
}
