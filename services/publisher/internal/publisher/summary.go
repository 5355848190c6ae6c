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
	is    Severity
	title string
}{{SeverityError, "Errors"}, {SeverityWarning, "Warnings"}, {SeverityInfo, "Notes"}}

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

// Omission is something that the review left out, and why.
type Omission struct {
	Path   string
	Reason string
}

// Review is what an attempt found. More counts findings that were not loaded.
type Review struct {
	Findings  []Finding
	Omissions []Omission
	More      int
	Files     int   // that were looked at
	DiffBytes int64 // of them
}

// Summary renders the comment: the marker as its first line, so that cutting can't remove it, then what
// the epoch says. Everything that was not written here is defused; the whole is bounded.
func Summary(marker string, e Epoch, rv Review) string {
	head := heading(e)
	foot := footer(e)
	body := body{left: maxBody - len(marker) - len(head) - len(foot) - 2}
	if e.Kind.ShowsResult() {
		body.findings(rv)
		body.omissions(rv.Omissions)
	} else {
		body.add(explanation(e))
	}
	return marker + "\n" + head + body.String() + foot
}

// heading is the verdict, in one line.
func heading(e Epoch) string { return "### " + Title(e) + "\n" }

// Title says in a few words what the epoch says, as heading and as title of the check run.
func Title(e Epoch) string {
	switch e.Kind {
	case KindResult:
		return "Fenceline: " + verdict(*e.Run)
	case KindSuperseded:
		return "Fenceline: superseded, the pull request has moved on"
	case KindOverBudget:
		return "Fenceline: not reviewed, over budget"
	case KindRefused:
		return "Fenceline: not reviewed, given up"
	case KindSkipped:
		return "Fenceline: not reviewed, skipped"
	case KindReply: // has a sentence and no title
	}
	return "Fenceline"
}

func verdict(r Run) string {
	if r.Errors+r.Warnings+r.Infos == 0 {
		return "nothing found"
	}
	var parts []string
	for _, p := range []struct {
		n    int32
		noun string
	}{{r.Errors, "error"}, {r.Warnings, "warning"}, {r.Infos, "note"}} {
		if p.n > 0 {
			parts = append(parts, count(p.n, p.noun))
		}
	}
	return strings.Join(parts, ", ")
}

// explanation says why there is no result to show.
func explanation(e Epoch) string {
	var b strings.Builder
	b.WriteByte('\n')
	switch e.Kind {
	case KindSuperseded:
		if e.Run != nil && e.Run.HeadSHA != "" {
			fmt.Fprintf(&b, "What was reported for %s is no longer current.", Code(e.Run.HeadSHA, 64))
		} else {
			b.WriteString("What was reported here is no longer current.")
		}
		if e.NewerHead != "" {
			fmt.Fprintf(&b, " The head is now %s.", Code(e.NewerHead, 64))
		}
		b.WriteByte('\n')
	case KindOverBudget:
		b.WriteString("The budget does not cover this review now. It is tried again when the budget allows.\n")
	case KindRefused:
		b.WriteString("This comparison could not be reviewed and is not tried again by itself.\n")
	case KindSkipped:
		b.WriteString("There is nothing to review here now.\n")
	case KindResult, KindReply:
	}
	if e.Reason != "" {
		fmt.Fprintf(&b, "\nReason: %s\n", Code(e.Reason, maxWord))
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, "\nDetail: %s\n", Code(e.Detail, maxDetail))
	}
	return b.String()
}

// footer says exactly what was compared, by what, and where to look further.
func footer(e Epoch) string {
	var b strings.Builder
	b.WriteString("\n---\n")
	var facts []string
	if r := e.Run; r != nil {
		fmt.Fprintf(&b, "Compared %s", Code(r.BaseSHA+"…"+r.HeadSHA, 140))
		if r.MergeBaseSHA != "" {
			fmt.Fprintf(&b, ", merge base %s", Code(r.MergeBaseSHA, 64))
		}
		if r.BaseRef != "" {
			fmt.Fprintf(&b, ", into %s", Code(r.BaseRef, maxWord))
		}
		b.WriteString(".\n\n")
		facts = append(facts, "Run "+Code(r.ID.String(), 36))
		if r.Ordinal > 0 {
			facts = append(facts, fmt.Sprintf("re-run %d", r.Ordinal))
		}
		if r.Attempt != (AttemptID{}) {
			facts = append(facts, "attempt "+Code(r.Attempt.String(), 36))
		}
		if r.Engine != "" {
			facts = append(facts, "engine "+Code(r.Engine, maxWord))
		}
		if e.Kind.ShowsResult() {
			facts = append(facts, "cost "+money(r.CostMicros))
		}
	}
	if trace := e.TraceID(); trace != "" {
		facts = append(facts, "trace "+Code(trace, 32))
	}
	if e.At.Epoch > 0 { // a preview has none
		facts = append(facts, fmt.Sprintf("epoch %d", e.At.Epoch))
	}
	b.WriteString(strings.Join(facts, " · "))
	b.WriteByte('\n')
	return b.String()
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

// note is what an omitted rest is announced with; its room is kept free.
const noteRoom = 200

func (b *body) findings(rv Review) {
	b.left -= noteRoom
	listed := 0
	for _, s := range severities {
		titled := false
		for _, f := range rv.Findings {
			if f.Severity != s.is || listed == maxListed {
				continue
			}
			line := finding(f)
			if !titled {
				line = "\n**" + s.title + "**\n\n" + line
			}
			if !b.add(line) {
				break
			}
			titled = true
			listed++
		}
	}
	b.left += noteRoom
	if rest := len(rv.Findings) + rv.More - listed; rest > 0 {
		b.add(fmt.Sprintf("\n%s more, not listed here.\n", count(rest, "finding")))
	}
}

func finding(f Finding) string {
	return fmt.Sprintf("- %s %s: %s\n", Code(fmt.Sprintf("%s:%d", plain(f.Path, maxPath), f.Line), maxPath*10),
		Code(f.Rule, maxWord), Code(f.Message, maxMessage))
}

func (b *body) omissions(all []Omission) {
	if len(all) == 0 {
		return
	}
	b.left -= noteRoom
	listed := 0
	if b.add("\n**Left out**\n\n") {
		for _, o := range all[:min(len(all), maxListed)] {
			if !b.add(fmt.Sprintf("- %s: %s\n", Code(o.Path, maxPath), Code(o.Reason, maxWord))) {
				break
			}
			listed++
		}
	}
	b.left += noteRoom
	if rest := len(all) - listed; rest > 0 {
		b.add(fmt.Sprintf("\n%s more left out, not listed here.\n", count(rest, "file")))
	}
}
