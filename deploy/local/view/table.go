package view

import "strings"

// Table writes rows in columns under a header. Columns named in right are set to the right.
func (t *Terminal) Table(header []string, rows [][]string, right ...int) {
	widths := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], width(cell))
		}
	}
	flush := map[int]bool{}
	for _, i := range right {
		flush[i] = true
	}
	line := func(row []string) string {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString("  ")
			switch {
			case flush[i]:
				b.WriteString(strings.Repeat(" ", widths[i]-width(cell)) + cell)
			case i == len(row)-1:
				b.WriteString(cell)
			default:
				b.WriteString(pad(cell, widths[i]))
			}
		}
		return strings.TrimRight(b.String(), " ")
	}
	t.Line("%s", t.Dim(line(header)))
	for _, row := range rows {
		t.Line("%s", line(row))
	}
}
