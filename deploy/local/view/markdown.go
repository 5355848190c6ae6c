package view

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Markdown writes a comment's body the way its page would show it: HTML comments are hidden.
func (t *Terminal) Markdown(body string) {
	src := []byte(Clean(body))
	doc := goldmark.DefaultParser().Parse(text.NewReader(src))
	m := markdown{t: t, src: src}
	m.blocks(doc, "", t.Width-6)
	for _, line := range m.lines {
		t.Line("%s", strings.TrimRight("  "+t.Dim("│")+" "+line, " "))
	}
}

type markdown struct {
	t     *Terminal
	src   []byte
	lines []string
}

// blocks writes the children of a container, each indented.
func (m *markdown) blocks(parent ast.Node, indent string, width int) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			m.gap()
			m.wrap(m.inline(n, m.t.Bold), indent, indent, width)
			m.gap()
		case *ast.Paragraph, *ast.TextBlock:
			m.wrap(m.inline(n, nil), indent, indent, width)
			if n.Kind() == ast.KindParagraph && n.NextSibling() != nil {
				m.gap()
			}
		case *ast.List:
			m.list(n, indent, width)
			m.gap()
		case *ast.ThematicBreak:
			m.add(indent + m.t.Dim(strings.Repeat("─", max(3, width-len(indent)))))
		case *ast.Blockquote:
			m.blocks(n, indent+"┃ ", width)
			m.gap()
		case *ast.HTMLBlock:
			if summary := folded(n, m.src); summary != "" {
				m.gap()
				m.add(indent + m.t.Bold("▸ "+summary))
				m.gap()
			}
		case *ast.FencedCodeBlock:
			if string(n.Language(m.src)) == "suggestion" {
				m.add(indent + m.t.Dim("suggested change:"))
			}
			m.raw(n, indent)
			m.gap()
		default:
			m.raw(n, indent)
			m.gap()
		}
	}
}

// folded is the summary of a <details> element that begins here; its content is shown unfolded.
func folded(n *ast.HTMLBlock, src []byte) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		b.Write(segment.Value(src))
	}
	_, after, opens := strings.Cut(b.String(), "<details><summary>")
	summary, _, closes := strings.Cut(after, "</summary>")
	if !opens || !closes {
		return ""
	}
	return strings.TrimSpace(summary)
}

func (m *markdown) list(list *ast.List, indent string, columns int) {
	number := list.Start
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if list.IsOrdered() {
			mark = strconv.Itoa(number) + ". "
		}
		number++
		at, inner := len(m.lines), indent+strings.Repeat(" ", width(mark))
		m.blocks(item, inner, columns)
		if at < len(m.lines) {
			m.lines[at] = indent + mark + strings.TrimPrefix(m.lines[at], inner)
		}
	}
}

// raw writes what has no look of its own, such as a code block, as it stands.
func (m *markdown) raw(n ast.Node, indent string) {
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		m.add(indent + "  " + m.t.Cyan(strings.TrimRight(string(segment.Value(m.src)), "\n")))
	}
}

func (m *markdown) add(line string) { m.lines = append(m.lines, line) }

// gap leaves one empty line, but none at the top.
func (m *markdown) gap() {
	if n := len(m.lines); n > 0 && m.lines[n-1] != "" {
		m.add("")
	}
}

// word is a piece of text that is not broken.
type word struct {
	text  string
	glued bool // to the one before it
}

// inline flattens the text of a block into styled words.
func (m *markdown) inline(n ast.Node, style func(string) string) []word {
	if style == nil {
		style = func(s string) string { return s }
	}
	var words []word
	plain := func(s string, style func(string) string) {
		for i, one := range strings.Fields(s) {
			words = append(words, word{style(one), i == 0 && len(words) > 0 && s[0] != ' '})
		}
		if strings.HasSuffix(s, " ") || strings.TrimSpace(s) == "" {
			words = append(words, word{}) // ends the word before it
		}
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			plain(string(c.Segment.Value(m.src)), style)
			if c.SoftLineBreak() || c.HardLineBreak() {
				words = append(words, word{})
			}
		case *ast.String:
			plain(string(c.Value), style)
		case *ast.CodeSpan:
			words = append(words, m.code(c)...)
		case *ast.Emphasis:
			words = append(words, m.inline(c, m.t.Bold)...)
		case *ast.Link:
			words = append(append(words, m.inline(c, style)...), word{text: m.t.Dim("<" + string(c.Destination) + ">")})
		case *ast.AutoLink:
			words = append(words, word{text: style(string(c.Label(m.src)))})
		case *ast.RawHTML:
		default:
			words = append(words, m.inline(c, style)...)
		}
	}
	return words
}

// code keeps the spaces of a code span; it may be broken at them.
func (m *markdown) code(n *ast.CodeSpan) []word {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(m.src))
		}
	}
	var words []word
	for i, one := range strings.Fields(b.String()) {
		words = append(words, word{m.t.Cyan(one), i == 0})
	}
	return words
}

// wrap writes words in lines of at most width columns.
func (m *markdown) wrap(words []word, first, rest string, columns int) {
	line, used, ended := first, 0, true
	for _, w := range words {
		if w.text == "" {
			ended = true
			continue
		}
		space := " "
		if used == 0 || w.glued && !ended {
			space = ""
		}
		ended = false
		if n := width(line) + len(space) + width(w.text); used > 0 && n > columns && space != "" {
			m.add(line)
			line, space = rest, ""
		}
		line += space + w.text
		used++
	}
	m.add(line)
}
