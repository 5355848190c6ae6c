package publisher

import (
	"fmt"
	"strings"
)

const (
	// maxBody bounds a comment in bytes, which are never fewer than the 65,536 characters GitHub takes.
	maxBody = 60_000
	// maxListed bounds the findings listed in one comment.
	maxListed = 200

	maxPath    = 300
	maxMessage = 600
	maxWord    = 100
	maxDetail  = 1000
)

// Severity of a finding.
type Severity string

// The severities, most severe first.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

var severities = []struct {
	is         Severity
	title, one string
}{{SeverityError, "Errors", "Error"}, {SeverityWarning, "Warnings", "Warning"}, {SeverityInfo, "Notes", "Note"}}

// Finding is one thing that a review found, on a line of the head, or on the lines from StartLine on where that
// is not 0. HunkStart and HunkEnd are the head-side lines of the hunk that holds it, 0 where GitHub shows none.
// Suggestion is what the lines should be instead, nil where there is none; empty text deletes them.
type Finding struct {
	Path       string
	StartLine  int32
	Line       int32
	HunkStart  int32
	HunkEnd    int32
	Severity   Severity
	Rule       string
	Message    string
	Suggestion *string
}

// Omission is something that the review left out, and why. Path is empty where it speaks of the comparison as a
// whole. Minor: nothing there was to be reviewed.
type Omission struct {
	Path   string
	Reason string
	Minor  bool
}

// Review is what an attempt found. More counts findings that were not loaded.
type Review struct {
	Findings  []Finding
	Omissions []Omission
	More      int
	Files     int   // that were looked at
	DiffBytes int64 // of them
}

// Whole tells that everything was seen that there was to review.
func (rv Review) Whole() bool {
	for _, o := range rv.Omissions {
		if !o.Minor {
			return false
		}
	}
	return true
}

// Summary renders the comment: the marker as its first line, so that cutting can't remove it, then what
// the epoch says, and the line that ends what is ours. Everything that was not written here is defused; the whole
// is bounded.
func Summary(marker string, e Epoch, in Input) string {
	head, foot := "### "+heading(e, in.Review)+"\n", footer(e)
	past := history(in.History)
	body := body{left: maxBody - len(marker) - len(head) - len(past) - len(foot) - len(sectionEnd) - 3}
	if e.Kind.ShowsResult() {
		body.add(seen(in.Review))
		body.add(placed(in.Plan))
		body.findings(in)
		body.omissions(in.Review.Omissions)
	} else {
		body.add(explanation(e))
	}
	return marker + "\n" + head + body.String() + past + foot + sectionEnd + "\n"
}

// seen says what was looked at.
func seen(rv Review) string {
	if rv.Files == 0 {
		return ""
	}
	return fmt.Sprintf("\nLooked at %s, %d KiB of diff.\n", count(rv.Files, "file"), (rv.DiffBytes+1023)/1024)
}

// placed says what became of the findings on the lines of the diff.
func placed(p Plan) string {
	var parts []string
	for _, n := range []struct {
		n    int
		text string
	}{{len(p.Say), "new"}, {p.Standing, "said before and still there"}, {len(p.Fixed), "fixed since"}} {
		if n.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n.n, n.text))
		}
	}
	text := ""
	if len(parts) > 0 {
		text = "\nRemarks on lines of the diff: " + strings.Join(parts, ", ") + ".\n"
	}
	if n := len(p.Unplaced); n > 0 {
		text += fmt.Sprintf("\nNot placed on a line of the diff, and so said here alone: %s.\n", count(n, "finding"))
	}
	return text
}

// body collects blocks as long as they fit.
type body struct {
	strings.Builder
	left int
}

// add appends the text whole or, where it does not fit, not at all.
func (b *body) add(text string) bool {
	if len(text) > b.left {
		return false
	}
	b.left -= len(text)
	b.WriteString(text)
	return true
}

// noteRoom is kept free for the note that announces an omitted rest.
const noteRoom = 200

// findings lists what was found by severity, what is said nowhere else first.
func (b *body) findings(in Input) {
	kept := noteRoom + min(b.left/4, noteRoom+len(in.Review.Omissions)*noteRoom) // what was left out is to be seen, too
	b.left -= kept
	alone := unplaced(in.Plan)
	listed := 0
	for _, s := range severities {
		var first, then []string
		for _, f := range in.Review.Findings {
			switch {
			case f.Severity != s.is:
			case alone[f.place()]:
				first = append(first, finding(f, " (not placed on its line)"))
			default:
				then = append(then, finding(f, ""))
			}
		}
		for n, line := range append(first, then...) {
			if n == 0 {
				line = "\n**" + s.title + "**\n\n" + line
			}
			if listed == maxListed || !b.add(line) {
				break
			}
			listed++
		}
	}
	b.left += kept
	if rest := len(in.Review.Findings) + in.Review.More - listed; rest > 0 {
		b.add(fmt.Sprintf("\n%s more, not listed here.\n", count(rest, "finding")))
	}
}

// place tells findings apart that are remarked separately.
func (f Finding) place() Finding {
	f.Suggestion, f.HunkStart, f.HunkEnd = nil, 0, 0
	return f
}

func unplaced(p Plan) map[Finding]bool {
	out := make(map[Finding]bool, len(p.Unplaced))
	for _, s := range p.Unplaced {
		out[s.place()] = true
	}
	return out
}

func finding(f Finding, note string) string {
	return fmt.Sprintf("- %s %s: %s%s\n", Code(where(f), maxPath*10), Code(f.Rule, maxWord), Code(f.Message, maxMessage), note)
}

// where names the lines of a finding.
func where(f Finding) string {
	path := plain(f.Path, maxPath)
	switch {
	case f.Line <= 0:
		return path
	case f.StartLine > 0 && f.StartLine < f.Line:
		return fmt.Sprintf("%s:%d-%d", path, f.StartLine, f.Line)
	}
	return fmt.Sprintf("%s:%d", path, f.Line)
}
