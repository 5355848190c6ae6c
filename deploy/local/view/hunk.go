package view

import "strings"

// Hunk writes the last lines of a diff hunk, as they stand above an inline comment; its header
// stays, and an ellipsis stands for what is cut off.
func (t *Terminal) Hunk(hunk string, last int) {
	lines := strings.Split(strings.TrimRight(Clean(hunk), "\n"), "\n")
	if len(lines) > 0 && strings.HasPrefix(lines[0], "@@") {
		t.Line("    %s", t.Cyan(cut(lines[0], t.Width-4)))
		lines = lines[1:]
	}
	if len(lines) > last {
		t.Line("    %s", t.Dim("…"))
		lines = lines[len(lines)-last:]
	}
	for _, line := range lines {
		line = cut(strings.ReplaceAll(line, "\t", "    "), t.Width-4)
		switch {
		case strings.HasPrefix(line, "+"):
			line = t.Green(line)
		case strings.HasPrefix(line, "-"):
			line = t.Red(line)
		}
		t.Line("    %s", line)
	}
}
