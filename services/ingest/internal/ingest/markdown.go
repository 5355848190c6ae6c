package ingest

import "strings"

// markdown follows a comment line by line, as far as it takes to know which lines are a person's own plain
// text (CommonMark 0.31, sections 4.4 to 4.6 and 5.1).
type markdown struct {
	fence   string // what closes the code block that is open
	until   string // what ends the raw HTML that is open, in lower case
	quoting bool   // a quote, or what is hidden, goes on with every line up to a blank one
	span    string // the backticks of a code span that is open: it may go on over the lines of a paragraph
	within  int    // elements that are open of those that quote
}

// raw is HTML that hides or quotes what it holds: how it begins and how it ends.
var raw = []struct{ from, until string }{
	{"<pre", "</pre>"},
	{"<script", "</script>"},
	{"<style", "</style>"},
	{"<textarea", "</textarea>"},
	{"<?", "?>"},
	{"<![cdata[", "]]>"},
}

// quotes are elements that show what they hold as somebody else's, or as code, with Markdown in it.
var quotes = []string{"blockquote", "code", "samp", "kbd"}

// text takes the next line and reports whether it is plain text from its first character on.
func (m *markdown) text(line string) bool {
	switch {
	case m.fence != "":
		if closes(line, m.fence) {
			m.fence = ""
		}
		return false
	case m.until != "":
		m.html(strings.ToLower(line))
		return false
	case strings.TrimSpace(line) == "":
		m.quoting, m.span = false, ""
		return false
	}
	indent, rest := indented(line)
	switch {
	case indent > 3: // code, or a list's
		return false
	case opens(rest) != "":
		m.fence, m.quoting, m.span = opens(rest), false, ""
		return false
	case rest[0] == '>':
		m.quoting = true
		return false
	}
	plain := !m.quoting && indent == 0 && m.span == "" && m.within == 0
	m.html(strings.ToLower(rest))
	m.spans(rest)
	m.elements(strings.ToLower(rest))
	m.quoting = m.quoting || listed(rest)[0] == '>' || hides(rest)
	return plain
}

// listed returns what follows the marks of the list items that a line begins, or the line.
func listed(line string) string {
	for {
		mark := strings.TrimLeft(line, "0123456789")
		if mark == line && !strings.ContainsAny(line[:1], "-+*") || mark != line && !strings.HasPrefix(mark, ".") && !strings.HasPrefix(mark, ")") {
			return line
		}
		rest := strings.TrimLeft(mark[1:], " \t")
		if rest == "" || rest == mark[1:] {
			return line
		}
		line = rest
	}
}

// hides reports whether a line leaves open what shows nothing of the lines that follow it, up to a blank one: a
// tag's attribute, or a link's title.
func hides(line string) bool {
	if tag := strings.LastIndexByte(line, '<'); tag >= 0 && tag+1 < len(line) && !strings.Contains(line[tag:], ">") {
		c := line[tag+1] | ' '
		if c >= 'a' && c <= 'z' || c == '/' || c == '!' && !strings.HasPrefix(line[tag:], "<!--") {
			return true
		}
	}
	if link := strings.LastIndex(line, "]("); link >= 0 && !strings.Contains(line[link:], ")") {
		return true
	}
	return line[0] == '[' && strings.Contains(line, "]:")
}

// spans follows code spans through a line (CommonMark 0.31, section 6.1). One that nothing closes is none, in the end;
// what stands between is doubtful.
func (m *markdown) spans(line string) {
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && m.span == "":
			i++
		case line[i] == '`':
			n := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
			if run := line[i : i+n]; m.span == "" {
				m.span = run
			} else if m.span == run {
				m.span = ""
			}
			i += n - 1
		}
	}
}

// elements follows quoting elements through a line.
func (m *markdown) elements(line string) {
	for _, name := range quotes {
		m.within += strings.Count(line, "<"+name) - strings.Count(line, "</"+name)
	}
	m.within = max(m.within, 0)
}

// html follows raw HTML through a line. A comment counts wherever in a line it begins, and to the end of the
// text where it is not closed, though Markdown may show it: then nobody is sure what was meant.
func (m *markdown) html(line string) {
	for {
		if m.until != "" {
			_, rest, ended := strings.Cut(line, m.until)
			if !ended {
				return
			}
			m.until, line = "", rest
		}
		for _, block := range raw {
			if strings.HasPrefix(line, block.from) {
				m.until, line = block.until, line[len(block.from):]
			}
		}
		if m.until == "" {
			_, rest, begun := strings.Cut(line, "<!--")
			if !begun {
				return
			}
			m.until, line = "-->", rest
		}
	}
}

// indented returns a line's indentation in columns, and what follows it.
func indented(line string) (columns int, rest string) {
	for i := range len(line) {
		switch line[i] {
		case ' ':
			columns++
		case '\t':
			columns += 4 - columns%4
		default:
			return columns, line[i:]
		}
	}
	return columns, ""
}

// opens returns the fence that a line opens a code block with, "" where it opens none.
func opens(rest string) string {
	for _, mark := range []string{"`", "~"} {
		n := len(rest) - len(strings.TrimLeft(rest, mark))
		if n >= 3 && (mark == "~" || !strings.Contains(rest[n:], "`")) {
			return rest[:n]
		}
	}
	return ""
}

// closes reports whether a line ends a code block: nothing but at least its fence.
func closes(line, fence string) bool {
	indent, rest := indented(line)
	rest = strings.TrimRight(rest, " \t")
	return indent <= 3 && len(rest) >= len(fence) && strings.Trim(rest, fence[:1]) == ""
}
