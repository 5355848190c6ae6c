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

// Status is how far a check run is.
type Status string

// The statuses of a check run.
const (
	StatusQueued     Status = "queued"
	StatusInProgress Status = "in_progress"
	StatusCompleted  Status = "completed"
)

// Check is a check run as it is written. It concludes only once the comment's intent has ended.
type Check struct {
	HeadSHA     string
	ExternalID  string // the run's id, by which it is found again
	Status      Status
	Conclusion  Conclusion // empty before it is completed
	Title       string
	Summary     string // starts with the marker
	DetailsURL  string // the comment, where there is one
	Annotations []Annotation
}

// Annotation is a finding on the lines of a file, as a check run shows it.
type Annotation struct {
	Path      string
	StartLine int32
	EndLine   int32
	Level     string // notice, warning, failure
	Title     string // at most 255 characters
	Message   string // at most 64 KB
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
		HeadSHA: e.Run.HeadSHA, ExternalID: e.Run.ID.String(), Status: StatusCompleted, Conclusion: conclusion(e),
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
