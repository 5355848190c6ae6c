package githubsim

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The sides of a diff.
const (
	left  = "LEFT"
	right = "RIGHT"
)

// diffLine is one line of a file's patch. Position counts from the first hunk's header, which is 0; later headers
// count as lines.
type diffLine struct {
	hunk, position int
	kind           byte // ' ', '+' or '-'
	old, new       int  // line numbers; 0 on the side that does not have it
	text           string
}

// patchLines is a file's patch, line by line, without the hunks' headers.
type patchLines struct {
	lines   []diffLine
	headers []string // by hunk
}

// parsePatch reads a patch that begins with a hunk's header. A file without one has no lines.
func parsePatch(patch string) patchLines {
	var out patchLines
	var old, new int
	position := -1
	for text := range strings.SplitSeq(patch, "\n") {
		position++
		switch {
		case strings.HasPrefix(text, "@@ "):
			old, new = hunkStarts(text)
			out.headers = append(out.headers, text)
			continue
		case text == "" || len(out.headers) == 0 || text[0] == '\\':
			continue // the last is git's word on a missing final newline
		}
		l := diffLine{hunk: len(out.headers) - 1, position: position, kind: text[0], text: text}
		if l.kind != '+' {
			l.old = old
			old++
		}
		if l.kind != '-' {
			l.new = new
			new++
		}
		out.lines = append(out.lines, l)
	}
	return out
}

// hunkStarts reads the first line numbers of "@@ -12,5 +13,7 @@".
func hunkStarts(header string) (old, new int) {
	f := strings.Fields(header)
	if len(f) < 3 {
		return 0, 0
	}
	number := func(span string) int {
		n, _, _ := strings.Cut(span[1:], ",")
		v, _ := strconv.Atoi(n)
		return v
	}
	return number(f[1]), number(f[2])
}

// find returns the line of the patch that has a number on a side; context lines are on both.
func (p patchLines) find(side string, line int) (diffLine, bool) {
	for _, l := range p.lines {
		if line > 0 && (side == left && l.old == line || side == right && l.new == line) {
			return l, true
		}
	}
	return diffLine{}, false
}

func (p patchLines) at(position int) (diffLine, bool) {
	for _, l := range p.lines {
		if l.position == position {
			return l, true
		}
	}
	return diffLine{}, false
}

// shownHunk is how many lines of a hunk a comment shows at most.
const shownHunk = 60

// until is the hunk of a line down to it, as a comment shows it.
func (p patchLines) until(to diffLine) string {
	text := []string{}
	for _, l := range p.lines {
		if l.hunk == to.hunk && l.position <= to.position {
			text = append(text, l.text)
		}
	}
	text = text[max(0, len(text)-shownHunk):]
	return strings.Join(append([]string{p.headers[to.hunk]}, text...), "\n")
}

// anchor is where a comment stands in the diff of one commit.
type anchor struct {
	path            string
	side, startSide string
	line, start     int // start is 0 for a single line
	position        int
	hunk            string
}

// The words of GitHub's refusals. None names the comment it means.
const (
	wrongPath     = "Pull request review thread path is invalid and Pull request review thread diff hunk can't be blank"
	wrongLine     = "Pull request review thread line must be part of the diff and Pull request review thread diff hunk can't be blank"
	wrongRange    = "Pull request review thread line must be part of the diff, Pull request review thread start line must be part of the same hunk as the line., and Pull request review thread diff hunk can't be blank"
	wrongStart    = "Pull request review thread start line must be part of the same hunk as the line."
	wrongOrder    = "Pull request review thread start line must precede the end line."
	wrongPosition = "Pull request review thread position is invalid and Pull request review thread diff hunk can't be blank"
)

// anchorer finds anchors in the diff of one comparison.
type anchorer struct {
	files  map[string]string // patch by path
	parsed map[string]patchLines
}

func newAnchorer(files []changedFile) *anchorer {
	a := &anchorer{files: map[string]string{}, parsed: map[string]patchLines{}}
	for _, f := range files[:min(len(files), maxFiles)] {
		a.files[f.path] = f.patch
	}
	return a
}

// patch returns a file's lines; known is false for a file that did not change.
func (a *anchorer) patch(path string) (lines patchLines, known bool) {
	text, known := a.files[path]
	if !known {
		return patchLines{}, false
	}
	if _, done := a.parsed[path]; !done {
		a.parsed[path] = parsePatch(text)
	}
	return a.parsed[path], true
}

// resolve checks what a request asks for against the diff and completes it. wrong is empty where it holds.
func (a *anchorer) resolve(want anchor) (got anchor, wrong string) {
	lines, known := a.patch(want.path)
	if !known {
		return want, wrongPath
	}
	if want.position > 0 {
		l, found := lines.at(want.position)
		if !found {
			return want, wrongPosition
		}
		want.side, want.line = right, l.new
		if l.kind == '-' {
			want.side, want.line = left, l.old
		}
		want.hunk = lines.until(l)
		return want, ""
	}
	end, found := lines.find(want.side, want.line)
	switch {
	case !found && want.start != 0:
		return want, wrongRange
	case !found:
		return want, wrongLine
	}
	if want.start != 0 {
		begin, found := lines.find(want.startSide, want.start)
		switch {
		case found && begin.position >= end.position:
			return want, wrongOrder
		case !found || begin.hunk != end.hunk:
			return want, wrongStart
		}
	}
	want.position, want.hunk = end.position, lines.until(end)
	return want, ""
}

// moved is the lines that changed between two commits, by path, as hunks without context.
type moved map[string][]shift

// shift is one hunk without context: lines at..at+gone of the old file became came lines.
type shift struct{ at, gone, came int }

// movedLines asks git what changed between two commits in some files.
func (d gitDir) movedLines(ctx context.Context, from, to string, paths map[string]bool) (moved, error) {
	args := []string{"diff-tree", "-r", "-p", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", from, to, "--"}
	out, err := d.run(ctx, nil, append(args, slices.Sorted(maps.Keys(paths))...)...)
	if err != nil {
		return nil, err
	}
	found := moved{}
	for _, section := range splitPatches(out) {
		path := ""
		for line := range strings.SplitSeq(string(section), "\n") {
			switch {
			case path == "" && strings.HasPrefix(line, "--- a/"):
				path = strings.TrimPrefix(strings.TrimRight(line, "\t"), "--- a/")
			case path != "" && strings.HasPrefix(line, "@@ "):
				found[path] = append(found[path], readShift(line))
			}
		}
	}
	return found, nil
}

func readShift(header string) shift {
	f := strings.Fields(header)
	count := func(span string) int {
		_, n, given := strings.Cut(span, ",")
		if !given {
			return 1
		}
		v, _ := strconv.Atoi(n)
		return v
	}
	at, _ := hunkStarts(header)
	s := shift{at: at, gone: count(f[1]), came: count(f[2])}
	if s.gone == 0 {
		s.at++ // git names the line before an insertion
	}
	return s
}

// line follows one line of a file; 0 where it changed or went.
func (m moved) line(path string, line int) int {
	by := 0
	for _, s := range m[path] {
		switch {
		case line >= s.at && line < s.at+s.gone:
			return 0
		case line >= s.at+s.gone:
			by += s.came - s.gone
		}
	}
	return line + by
}
