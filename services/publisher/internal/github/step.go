package github

import (
	"fmt"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// maxAnnotations is how many annotations GitHub takes in one call.
const maxAnnotations = 50

// step is one of the writes that a check run takes: all but the last bring annotations alone. Only the last
// concludes and carries the marker, so that one which is cut off in between is not taken for whole.
type step struct {
	check *publisher.Check
	more  bool
	now   []publisher.Annotation
	there int // before this write
}

// stepOf is the write that follows where so many annotations are there.
func stepOf(c *publisher.Check, there int) step {
	s := step{check: c, there: min(there, len(c.Annotations))}
	rest := c.Annotations[s.there:]
	s.now = rest[:min(len(rest), maxAnnotations)]
	s.more = len(rest) > maxAnnotations
	return s
}

func (s step) status() *string {
	if s.more {
		return github.String(string(publisher.StatusInProgress))
	}
	return github.String(string(s.check.Status))
}

func (s step) conclusion() *string {
	if s.more || s.check.Conclusion == "" {
		return nil
	}
	return github.String(string(s.check.Conclusion))
}

func (s step) output() *github.CheckRunOutput {
	out := &github.CheckRunOutput{Title: &s.check.Title, Summary: &s.check.Summary}
	if s.more {
		out.Title = github.String("being published")
		out.Summary = github.String(fmt.Sprintf("%d of %d annotations are here.\n", s.there+len(s.now), len(s.check.Annotations)))
	}
	for _, a := range s.now {
		out.Annotations = append(out.Annotations, &github.CheckRunAnnotation{
			Path: github.String(a.Path), StartLine: github.Int(int(a.StartLine)), EndLine: github.Int(int(a.EndLine)),
			AnnotationLevel: github.String(a.Level), Title: github.String(a.Title), Message: github.String(a.Message),
		})
	}
	return out
}

// actions offers another run of what has concluded.
func (s step) actions() []*github.CheckRunAction {
	if s.more || s.check.Status != publisher.StatusCompleted {
		return nil
	}
	return []*github.CheckRunAction{{Label: "Re-run", Description: "Review this comparison once more", Identifier: "rerun"}}
}
