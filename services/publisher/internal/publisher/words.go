package publisher

import (
	"fmt"
	"strings"
)

// heading is what the epoch says, in one line.
func heading(e Epoch, rv Review) string { return "Fenceline: " + title(e, rv) }

// title says in a few words what the epoch says: in the heading, on the check run, as the commit status.
func title(e Epoch, rv Review) string {
	switch e.Kind {
	case KindResult:
		if !rv.Whole() {
			return verdict(*e.Run) + ", in what was seen"
		}
		return verdict(*e.Run)
	case KindSuperseded:
		return "superseded, the pull request has moved on"
	case KindOverBudget:
		return "not reviewed, over budget"
	case KindRefused:
		return "not reviewed, given up"
	case KindSkipped:
		return "not reviewed, skipped"
	case KindQueued:
		return "waiting to be reviewed"
	case KindInProgress:
		return "being reviewed"
	case KindReply: // has a sentence and no title
	}
	return ""
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
	case KindQueued:
		b.WriteString("The review of this head begins when it is its turn.\n")
	case KindInProgress:
		b.WriteString("This head is being reviewed now.\n")
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

// takenBack says on the output of another run why it holds no longer: what the epoch says instead.
func takenBack(e Epoch, head string) string {
	newer := e.NewerHead
	if e.Run != nil && e.Kind != KindSuperseded {
		newer = e.Run.HeadSHA
	}
	switch {
	case e.Kind == KindSkipped:
		return explanation(e)
	case newer == "":
		return "\nThis is no longer current: the pull request has moved on.\n"
	case newer == head:
		return "\nThis is no longer current: a later run of the same head has taken its place.\n"
	}
	return fmt.Sprintf("\nThis is no longer current: superseded by %s.\n", Code(newer, 64))
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

// history folds earlier results away, newest first.
func history(all []Past) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n<details>\n<summary>%s</summary>\n\n", count(min(len(all), maxHistory), "earlier result"))
	for _, p := range all[:min(len(all), maxHistory)] {
		fmt.Fprintf(&b, "- %s: %s, run %s, epoch %d", Code(p.Run.HeadSHA, 64), verdict(p.Run), Code(p.Run.ID.String(), 36), p.At.Epoch)
		if isPage(p.URL) {
			fmt.Fprintf(&b, ", [review](%s)", p.URL)
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n</details>\n")
	return b.String()
}

const maxHistory = 20

// isPage tells an address of a page of GitHub's, as GitHub itself answers it, from anything else.
func isPage(s string) bool {
	rest, secure := strings.CutPrefix(s, "https://")
	if !secure {
		rest, secure = strings.CutPrefix(s, "http://")
	}
	return secure && rest != "" && len(s) <= 300 && strings.Trim(rest,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/:#") == ""
}
