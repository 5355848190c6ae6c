package demo

import (
	"fmt"
	"strings"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/deploy/local/view"
)

// hunkLines is how much of a hunk is shown above an inline comment, as on the page of the conversation.
const hunkLines = 6

// showPage shows the pull request's page as a person sees it: the conversation, each inline comment below its
// lines, and what stands at the merge button.
func (w *walk) showPage() {
	w.t.Title("The page, as GitHub shows it")
	for _, c := range w.comments {
		if c.DeletedAt != nil {
			continue
		}
		w.t.Line("  %s commented · %s", w.t.Bold(view.Clean(c.Author.Login)), w.t.Dim(c.HTMLURL))
		w.t.Line("")
		w.t.Markdown(c.Body)
	}
	for _, r := range w.reviews {
		if r.DeletedAt == nil && r.State != "PENDING" {
			w.showReview(r)
		}
	}
	for _, c := range w.checks {
		w.showCheck(c)
	}
	for _, s := range w.statuses {
		w.t.Title("The commit status")
		w.t.Line("  %s %s  %s on %s", w.mark(s.State), w.t.Bold(view.Clean(s.Context)), s.State, s.SHA)
		w.t.Line("    %s", view.Clean(s.Description))
	}
}

func (w *walk) showReview(r control.Review) {
	w.t.Title("The review")
	w.t.Line("  %s reviewed %.12s · %s", w.t.Bold(view.Clean(r.Author.Login)), r.CommitID, w.t.Dim(r.HTMLURL))
	w.t.Line("")
	w.t.Markdown(r.Body)
	for _, c := range r.Comments {
		if c.DeletedAt != nil {
			continue
		}
		at := fmt.Sprintf("%s:%d", view.Clean(c.Path), c.OriginalLine)
		if c.OriginalStartLine > 0 {
			at = fmt.Sprintf("%s:%d-%d", view.Clean(c.Path), c.OriginalStartLine, c.OriginalLine)
		}
		if c.Outdated {
			at += w.t.Dim(" (outdated)")
		}
		w.t.Line("")
		w.t.Line("  %s", w.t.Bold(at))
		w.t.Hunk(c.DiffHunk, hunkLines)
		w.t.Markdown(c.Body)
	}
}

func (w *walk) showCheck(c control.CheckRun) {
	w.t.Title("The check run")
	w.t.Line("  %s %s  %s on %s  %s", w.mark(c.Conclusion), w.t.Bold(view.Clean(c.Name)), strings.TrimSpace(c.Status+" "+c.Conclusion), c.HeadSHA, w.t.Dim(c.HTMLURL))
	w.t.Line("    %s", view.Clean(c.Title))
	w.t.Line("    run %s, %s", c.ExternalID, count(c.Annotations, "annotation"))
	if c.DetailsURL != "" {
		w.t.Line("    details %s", c.DetailsURL)
	}
}

// mark is the sign beside a check's or a status's name.
func (w *walk) mark(state string) string {
	switch state {
	case "success":
		return w.t.Green("✓")
	case "failure", "error":
		return w.t.Red("✗")
	case "neutral":
		return w.t.Dim("■")
	}
	return w.t.Yellow("●")
}
