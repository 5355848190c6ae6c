// Package view shows things to a person at a terminal, and plainly where there is none.
package view

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Width bounds, in columns. Output that is piped gets usualWidth.
const (
	leastWidth = 80
	usualWidth = 110
	mostWidth  = 160
)

// Terminal writes lines, in colour where that is wanted, and on a live terminal a last line that is
// overwritten.
type Terminal struct {
	Width int
	Color bool // escape codes may be written
	Live  bool // a line may be overwritten

	w       io.Writer
	pending bool
}

// New looks at what w is. NO_COLOR (https://no-color.org) and TERM=dumb turn colour off.
func New(w io.Writer) *Terminal {
	t := &Terminal{Width: usualWidth, w: w}
	f, ok := w.(*os.File)
	if !ok {
		return t
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return t
	}
	dumb := os.Getenv("TERM") == "dumb"
	t.Live, t.Color = !dumb, !dumb && os.Getenv("NO_COLOR") == ""
	if size.Col > 0 {
		t.Width = min(max(int(size.Col), leastWidth), mostWidth)
	}
	return t
}

// Line writes one line.
func (t *Terminal) Line(format string, args ...any) {
	t.clear()
	_, _ = fmt.Fprintf(t.w, format+"\n", args...) // nobody is left to tell
}

// Text writes text as it is, which ends with a newline.
func (t *Terminal) Text(text string) {
	t.clear()
	_, _ = io.WriteString(t.w, text)
}

// Title writes the heading of a part.
func (t *Terminal) Title(text string) {
	t.Line("\n%s", t.Bold(text))
	t.Line("%s", t.Dim(strings.Repeat("─", utf8.RuneCountInString(text))))
}

// Waiting shows what is being waited for, until the next line. Nothing is shown where output is not live.
func (t *Terminal) Waiting(text string) {
	if !t.Live {
		return
	}
	t.clear()
	_, _ = fmt.Fprint(t.w, t.Dim(cut(text, t.Width-1)))
	t.pending = true
}

func (t *Terminal) clear() {
	if t.pending {
		_, _ = fmt.Fprint(t.w, "\r\x1b[K")
		t.pending = false
	}
}

// The styles.
func (t *Terminal) Bold(s string) string   { return t.style("1", s) }
func (t *Terminal) Dim(s string) string    { return t.style("2", s) }
func (t *Terminal) Red(s string) string    { return t.style("31", s) }
func (t *Terminal) Green(s string) string  { return t.style("32", s) }
func (t *Terminal) Yellow(s string) string { return t.style("33", s) }
func (t *Terminal) Blue(s string) string   { return t.style("34", s) }
func (t *Terminal) Pink(s string) string   { return t.style("35", s) }
func (t *Terminal) Cyan(s string) string   { return t.style("36", s) }

func (t *Terminal) style(code, s string) string {
	if !t.Color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Who colours the name of a service, always alike.
func (t *Terminal) Who(name string) string {
	switch name {
	case "ingest":
		return t.Blue(name)
	case "scheduler":
		return t.Green(name)
	case "reviewer":
		return t.Pink(name)
	case "ledger":
		return t.Yellow(name)
	case "publisher":
		return t.Cyan(name)
	}
	return t.Bold(name)
}

// width is how many columns text takes; escape codes take none.
func width(s string) int {
	n, escape := 0, false
	for _, r := range s {
		switch {
		case escape:
			escape = r != 'm'
		case r == '\x1b':
			escape = true
		default:
			n++
		}
	}
	return n
}

// pad fills text up with spaces to n columns.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-width(s))) }

// Pad fills text up with spaces to n columns; escape codes take none.
func Pad(s string, n int) string { return pad(s, n) }

// cut shortens plain text to n columns.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:max(0, n-1)]) + "…"
}

// Clean replaces what could steer a terminal: text from a repository or from GitHub may hold anything.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '\uFFFD'
		}
		return r
	}, s)
}
