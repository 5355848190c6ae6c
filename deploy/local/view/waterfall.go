package view

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/local/spans"
)

// eventFence and keyReason are how spans tell the verdict of a fence.
const (
	eventFence = "fence verdict"
	keyReason  = "fenceline.fence.reason"
)

// longGap is a time in which nothing ran that is drawn shorter than it was.
const longGap = 150 * time.Millisecond

// Waterfall draws one trace: a tree by parent, each span's time as a bar, and its duration. The two halves
// of a call share a row. Times in which nothing ran are drawn short, and said so.
func (t *Terminal) Waterfall(list []spans.Span) {
	if len(list) == 0 {
		t.Line("  no spans")
		return
	}
	rows := tree(list)
	axis := newAxis(list)
	name, who := 0, 0
	for _, r := range rows {
		name, who = max(name, width(r.label)), max(who, width(r.who))
	}
	name = min(name, max(30, t.Width*2/5))
	bars := max(20, t.Width-name-who-14)
	gaps := axis.gaps()
	for _, r := range rows {
		for len(gaps) > 0 && !r.span.Start.Before(gaps[0].to) {
			t.Line("  %s", t.Dim(fmt.Sprintf("╌╌ %s in which nothing of this ran ╌╌", took(gaps[0].to.Sub(gaps[0].from)))))
			gaps = gaps[1:]
		}
		from, to := axis.column(r.span.Start, bars), axis.column(r.span.End, bars)
		to = max(to, from+1)
		from = min(from, bars-1)
		bar := strings.Repeat(" ", from) + strings.Repeat("█", max(1, to-from))
		if r.span.Duration() < time.Millisecond {
			bar = strings.Repeat(" ", from) + "▏"
		}
		text := t.paint(r.span, pad(bar, bars))
		t.Line("  %s %s %s %s%s", t.label(r, name), pad(t.whoOf(r), who), text, rightOf(took(r.span.Duration()), 8), t.notes(r.span))
	}
}

func (t *Terminal) label(r row, n int) string {
	s := pad(cut(r.label, n), n)
	if r.span.Error != "" {
		return t.Red(s)
	}
	return s
}

func (t *Terminal) whoOf(r row) string {
	from, to, call := strings.Cut(r.who, "→")
	if !call {
		return t.Who(r.who)
	}
	return t.Who(from) + "→" + t.Who(to)
}

// paint colours a bar by the service whose time it is.
func (t *Terminal) paint(s spans.Span, bar string) string {
	if !t.Color {
		return bar
	}
	if s.Error != "" {
		return t.Red(bar)
	}
	before, after, ok := strings.Cut(t.Who(s.Service), s.Service)
	if !ok || s.Service == "" {
		return bar
	}
	return before + bar + after
}

// notes are what a span says beside its time: verdicts of fences, links, and why it failed.
func (t *Terminal) notes(s spans.Span) string {
	var notes []string
	for _, e := range s.Events {
		if reason, ok := e.Attributes[keyReason].(string); ok && e.Name == eventFence {
			notes = append(notes, "fence "+reason)
		}
	}
	for _, l := range s.Links {
		notes = append(notes, "links "+cut(l.TraceID, 9)+"/"+cut(l.SpanID, 9))
	}
	if s.Error != "" {
		notes = append(notes, cut(Clean(strings.ReplaceAll(s.Error, "\n", " ")), 60))
	}
	if len(notes) == 0 {
		return ""
	}
	return "  " + t.Dim(strings.Join(notes, " · "))
}

// row is one line of the tree.
type row struct {
	label, who string
	span       spans.Span
}

// tree orders spans depth first, children by their start. A span whose parent is not there is a root.
func tree(list []spans.Span) []row {
	known := map[string]bool{}
	for _, s := range list {
		known[s.SpanID] = true
	}
	children := map[string][]spans.Span{}
	for _, s := range list {
		parent := s.ParentID
		if !known[parent] {
			parent = ""
		}
		children[parent] = append(children[parent], s)
	}
	for _, c := range children {
		slices.SortStableFunc(c, func(a, b spans.Span) int { return cmp.Or(a.Start.Compare(b.Start), b.End.Compare(a.End)) })
	}
	var rows []row
	var add func(s spans.Span, lead, branch string)
	add = func(s spans.Span, lead, branch string) {
		who, below := s.Service, children[s.SpanID]
		if len(below) == 1 && s.Kind == "client" && below[0].Kind == "server" && below[0].Name == s.Name {
			who += "→" + below[0].Service
			s = merged(s, below[0])
			below = children[below[0].SpanID]
		}
		rows = append(rows, row{label: lead + branch + nameOf(s), who: who, span: s})
		switch branch {
		case "├ ":
			lead += "│ "
		case "└ ":
			lead += "  "
		}
		for i, c := range below {
			next := "├ "
			if i == len(below)-1 {
				next = "└ "
			}
			add(c, lead, next)
		}
	}
	for _, s := range children[""] {
		add(s, "", "")
	}
	return rows
}

// merged is a call as one row: the caller's time, the callee's colour and notes.
func merged(client, server spans.Span) spans.Span {
	m := client
	m.Service, m.Events, m.Links = server.Service, append(slices.Clone(client.Events), server.Events...), append(slices.Clone(client.Links), server.Links...)
	m.Error = cmp.Or(client.Error, server.Error)
	return m
}

// nameOf is a span's name for a row that also says who calls whom: of a gRPC method its last part, of a
// request to GitHub also the path below the repository.
func nameOf(s spans.Span) string {
	name := s.Name
	if pkg, method, ok := strings.Cut(name, "/"); ok && strings.Contains(pkg, ".") {
		name = method
	}
	if u, err := url.Parse(s.Text("url.full")); err == nil && strings.HasPrefix(name, "github ") {
		parts := strings.Split(strings.Trim(u.Path, "/"), "/")
		if len(parts) > 2 && parts[0] == "repositories" {
			parts = parts[2:]
		}
		for i, p := range parts {
			parts[i] = shortSHA.ReplaceAllString(p, "$1")
		}
		name += " " + strings.Join(parts, "/")
	}
	return Clean(name)
}

var shortSHA = regexp.MustCompile(`\b([0-9a-f]{7})[0-9a-f]{33}\b`)

func rightOf(s string, n int) string { return strings.Repeat(" ", max(0, n-width(s))) + s }

// took writes a duration with three digits that count.
func took(d time.Duration) string {
	switch ms := float64(d) / float64(time.Millisecond); {
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.2f s", ms/1000)
	}
}

// Took writes a duration for people.
func Took(d time.Duration) string { return took(d) }
