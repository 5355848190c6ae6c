package engine

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// ErrPatch marks a patch that is not the sequence of hunks that git writes.
var ErrPatch = errors.New("malformed patch")

// Diff is the head side of a file's hunks: the only lines that a finding may name.
type Diff struct {
	Hunks []Hunk
	Whole bool // the hunks are the whole file: it is new
}

// Hunk is a run of consecutive head-side lines, at least one.
type Hunk struct {
	Lines []Line
}

// Line is a line of the head side.
type Line struct {
	Number int    // from 1
	Text   string // without its newline
	Added  bool   // false for context
	NoEOL  bool   // the file ends here, without a newline
}

// ParsePatch reads the hunks that GitHub gives per file. Its input is not trusted: whatever does
// not add up is ErrPatch, never a panic.
func ParsePatch(patch string) (d Diff, err error) {
	if patch == "" {
		return Diff{}, nil
	}
	if !strings.HasSuffix(patch, "\n") {
		patch += "\n" // GitHub leaves it off; that says nothing about the file
	}
	defer func() {
		if p := recover(); p != nil {
			d, err = Diff{}, fmt.Errorf("%w: parser gave up", ErrPatch)
		}
	}()
	files, _, err := gitdiff.Parse(strings.NewReader("diff --git a/f b/f\n--- a/f\n+++ b/f\n" + patch))
	if err != nil {
		// The parser's words quote the patch, which may hold a secret.
		return Diff{}, fmt.Errorf("%w: hunks do not parse", ErrPatch)
	}
	if len(files) != 1 || lineCount(patch) != parsedLines(files[0].TextFragments) {
		return Diff{}, fmt.Errorf("%w: more than hunks", ErrPatch)
	}
	return headSide(files[0].TextFragments)
}

func headSide(fragments []*gitdiff.TextFragment) (Diff, error) {
	var d Diff
	var last int64
	for _, f := range fragments {
		if f.NewLines == 0 {
			continue // only deletions, down to an empty file: nothing of the head to show
		}
		if f.NewPosition <= last || f.NewPosition > math.MaxInt32 {
			return Diff{}, fmt.Errorf("%w: hunks out of order", ErrPatch)
		}
		h := Hunk{Lines: make([]Line, 0, f.NewLines)}
		number := f.NewPosition
		for _, l := range f.Lines {
			if !l.New() {
				continue
			}
			h.Lines = append(h.Lines, Line{
				Number: int(number), Text: strings.TrimSuffix(l.Line, "\n"), Added: l.Op == gitdiff.OpAdd, NoEOL: l.NoEOL(),
			})
			number++
		}
		last = number - 1
		d.Hunks = append(d.Hunks, h)
	}
	if len(fragments) == 1 && fragments[0].OldLines == 0 && fragments[0].OldPosition == 0 && fragments[0].NewPosition == 1 {
		d.Whole = true
	}
	return d, nil
}

// lineCount counts the lines of a patch but for "\ No newline at end of file".
func lineCount(patch string) int {
	n := 0
	for line := range strings.Lines(patch) {
		if !strings.HasPrefix(line, `\ `) {
			n++
		}
	}
	return n
}

func parsedLines(fragments []*gitdiff.TextFragment) int {
	n := 0
	for _, f := range fragments {
		n += 1 + len(f.Lines)
	}
	return n
}

// AddedLines yields what the comparison added, top to bottom.
func (d Diff) AddedLines() iter.Seq[Line] {
	return func(yield func(Line) bool) {
		for _, h := range d.Hunks {
			for _, l := range h.Lines {
				if l.Added && !yield(l) {
					return
				}
			}
		}
	}
}

// Line returns the head-side line of that number, if it lies in the diff.
func (d Diff) Line(number int) (Line, bool) {
	h, ok := d.Hunk(number, number)
	if !ok {
		return Line{}, false
	}
	return h.Lines[number-h.First()], true
}

// Hunk returns the hunk that holds the lines from first to last, if one holds them all.
func (d Diff) Hunk(first, last int) (Hunk, bool) {
	i, found := slices.BinarySearchFunc(d.Hunks, first, func(h Hunk, n int) int { return cmp.Compare(h.First(), n) })
	if !found {
		i-- // the last hunk that begins before it
	}
	if i < 0 || last < first || last > d.Hunks[i].Last() {
		return Hunk{}, false
	}
	return d.Hunks[i], true
}

// First is the number of the hunk's first line.
func (h Hunk) First() int { return h.Lines[0].Number }

// Last is the number of the hunk's last line.
func (h Hunk) Last() int { return h.Lines[len(h.Lines)-1].Number }

// Between returns the hunk's lines from first to last, which it holds.
func (h Hunk) Between(first, last int) []Line { return h.Lines[first-h.First() : last-h.First()+1] }

// Text returns the whole file, for a diff that is Whole.
func (d Diff) Text() string {
	var b strings.Builder
	for _, h := range d.Hunks {
		for _, l := range h.Lines {
			b.WriteString(l.Text)
			if !l.NoEOL {
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

// Matches says whether the text is that of the diff's head side.
func (d Diff) Matches(text string) bool {
	lines := strings.Split(text, "\n")
	for _, h := range d.Hunks {
		for _, l := range h.Lines {
			if l.Number > len(lines) || lines[l.Number-1] != l.Text {
				return false
			}
		}
	}
	return true
}
