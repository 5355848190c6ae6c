package publisher

import (
	"fmt"
	"strings"
)

// Conclusion is how a check run ends.
type Conclusion string

// The conclusions. What did not run is neutral, never a success.
const (
	ConclusionSuccess Conclusion = "success"
	ConclusionFailure Conclusion = "failure"
	ConclusionNeutral Conclusion = "neutral"
)

// Check is a check run as it is written: concluded from the start, since it is written only once the
// comment's intent has ended, so that none is ever left open.
type Check struct {
	HeadSHA    string
	ExternalID string // the run's id, by which it is found again
	Conclusion Conclusion
	Title      string
	Summary    string // starts with the marker
	DetailsURL string // the comment, where there is one
}

// CheckRun renders the check run of the epoch's run, once the comment's intent has ended.
func CheckRun(marker string, e Epoch, rv Review, comment Intent) Check {
	var b strings.Builder
	b.WriteString(marker)
	b.WriteString("\n")
	if e.Kind.ShowsResult() {
		fmt.Fprintf(&b, "Reviewed: %s.\n", verdict(*e.Run))
		if n := len(rv.Omissions); n > 0 {
			fmt.Fprintf(&b, "\n%s left out; the comment says why.\n", count(n, "file"))
		}
	} else {
		b.WriteString(explanation(e))
	}
	if comment.State == StateEnded && comment.Reason != ReasonNothing {
		fmt.Fprintf(&b, "\nThe comment could not be posted: %s.\n", Code(comment.Reason, maxWord))
	}
	b.WriteString(footer(e))
	return Check{
		HeadSHA: e.Run.HeadSHA, ExternalID: e.Run.ID.String(), Conclusion: conclusion(e),
		Title: strings.TrimPrefix(Title(e), "Fenceline: "), Summary: b.String(), DetailsURL: comment.URL,
	}
}

func conclusion(e Epoch) Conclusion {
	switch {
	case !e.Kind.ShowsResult():
		return ConclusionNeutral
	case e.Run.Errors > 0:
		return ConclusionFailure
	case e.Run.Warnings+e.Run.Infos > 0:
		return ConclusionNeutral
	default:
		return ConclusionSuccess
	}
}
