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

// Check is a check run, or a commit status, as it is written. It concludes only once the comment's intent has
// ended.
type Check struct {
	HeadSHA     string
	ExternalID  string // the run's id, by which it is found again; empty for a commit status
	Status      Status
	Conclusion  Conclusion // empty before it is completed
	NotRun      bool       // it concludes without a review of the head
	Title       string     // ours alone, at most 140 characters
	Summary     string     // starts with the marker
	DetailsURL  string     // the comment, where there is one
	Annotations []Annotation
}

// Annotation is a finding on the lines of a file, as a check run shows it: in plain text.
type Annotation struct {
	Path      string
	StartLine int32
	EndLine   int32
	Level     string // notice, warning, failure
	Title     string // at most 255 characters
	Message   string // at most 64 KB
}

// checkRun renders the check run that ref names. One of the epoch's own run says what the epoch says; any other is
// taken back.
func checkRun(marker string, e Epoch, ref Ref, in Input, comment Intent) Check {
	head, run, _ := strings.Cut(ref.Key, ":")
	check := Check{HeadSHA: head, ExternalID: run, Status: StatusCompleted}
	if !e.speaksOf(run) {
		check.Conclusion, check.NotRun, check.Title = ConclusionNeutral, true, "superseded, the pull request has moved on"
		if e.Kind == KindSkipped {
			check.Title = title(e, in.Review)
		}
		check.Summary = marker + "\n" + takenBack(e, head) + "\n---\nRun " + Code(run, 36) + "\n"
		return check
	}
	check.Title, check.DetailsURL = title(e, in.Review), comment.URL
	check.Status, check.Conclusion, check.NotRun = standing(e, in.Review)
	foot := footer(e)
	body := body{left: maxBody - len(marker) - len(foot) - 1}
	switch {
	case e.Kind.ShowsResult():
		body.add(fmt.Sprintf("\nReviewed: %s.\n", check.Title))
		body.add(seen(in.Review))
		check.Annotations = annotations(in.Review.Findings)
	default:
		body.add(explanation(e))
	}
	if comment.State == StateEnded && comment.Reason != ReasonNothing {
		body.add(fmt.Sprintf("\nThe comment could not be posted: %s.\n", Code(comment.Reason, maxWord)))
	}
	if e.Kind.ShowsResult() {
		body.findings(Input{Review: Review{Findings: lineless(in.Review.Findings), More: in.Review.More}})
		body.omissions(in.Review.Omissions)
	}
	check.Summary = marker + "\n" + body.String() + foot
	return check
}

// commitStatus renders the status of a commit, which has one line and no place for a marker.
func commitStatus(e Epoch, ref Ref, in Input, comment Intent) Check {
	check := Check{HeadSHA: ref.Key, Status: StatusCompleted, Conclusion: ConclusionNeutral, NotRun: true}
	if e.Run == nil || e.Run.HeadSHA != ref.Key || !e.Kind.hasCheck() {
		check.Title = "superseded, the pull request has moved on"
		if e.Kind == KindSkipped {
			check.Title = title(e, in.Review)
		}
		return check
	}
	check.Title, check.DetailsURL = title(e, in.Review), comment.URL
	check.Status, check.Conclusion, check.NotRun = standing(e, in.Review)
	return check
}

// speaksOf tells the epoch's own run from one whose output it takes back.
func (e Epoch) speaksOf(run string) bool {
	return e.Run != nil && e.Run.ID.String() == run && e.Kind.hasCheck()
}

// standing is how far the epoch's check is, and how it ends.
func standing(e Epoch, rv Review) (s Status, c Conclusion, notRun bool) {
	switch {
	case e.Kind == KindQueued:
		return StatusQueued, "", false
	case e.Kind == KindInProgress:
		return StatusInProgress, "", false
	case !e.Kind.ShowsResult():
		return StatusCompleted, ConclusionNeutral, true
	case e.Run.Errors > 0:
		return StatusCompleted, ConclusionFailure, false
	case e.Run.Warnings+e.Run.Infos > 0, !rv.Whole():
		return StatusCompleted, ConclusionNeutral, false
	}
	return StatusCompleted, ConclusionSuccess, false
}

// lineless are the findings that no annotation shows.
func lineless(all []Finding) []Finding {
	var out []Finding
	for _, f := range all {
		if !annotated(f) {
			out = append(out, f)
		}
	}
	return out
}

func annotated(f Finding) bool { return f.Line > 0 && f.Path != "" && len(f.Path) <= maxAnnotatedPath }

const (
	maxAnnotatedPath    = 4096
	maxAnnotatedTitle   = 200
	maxAnnotatedMessage = 4000
)

var levels = map[Severity]string{SeverityError: "failure", SeverityWarning: "warning", SeverityInfo: "notice"}

// annotations are all findings that have a line, in the order of the findings: always the same for one run, since
// those that are on the page already are counted and not compared.
func annotations(all []Finding) []Annotation {
	var out []Annotation
	for _, f := range all {
		if !annotated(f) {
			continue
		}
		start := f.Line
		if f.StartLine > 0 && f.StartLine < f.Line {
			start = f.StartLine
		}
		out = append(out, Annotation{
			Path: f.Path, StartLine: start, EndLine: f.Line, Level: levels[f.Severity],
			Title: severityName(f.Severity) + ": " + bare(f.Rule, maxAnnotatedTitle), Message: bare(f.Message, maxAnnotatedMessage),
		})
	}
	return out
}

func severityName(s Severity) string {
	for _, one := range severities {
		if one.is == s {
			return one.one
		}
	}
	return "Note"
}
