package publisher

import "strings"

// Output is a rendered intent. Body is what is kept of it; Check is set for a check run and a commit status, Post
// for a review.
type Output struct {
	Body  string
	Check *Check
	Post  *Post
}

// Post is a review as it is made, in one call: Output.Body with inline comments, of exactly one head.
type Post struct {
	HeadSHA  string
	Comments []Inline
}

// Inline is a comment on lines of the head side. StartLine is 0 for a single line. Body begins with its marker.
type Inline struct {
	Path      string
	StartLine int32
	Line      int32
	Body      string
}

// Render writes what the work's epoch says on a surface. A check run is rendered once the comment's
// intent has ended, and says so where it ended without a comment. A review says what the input's plan is to say;
// outputs of other runs are taken back.
func (w Work) Render(keys Keyring, ref Ref, in Input) Output {
	e := w.Epoch
	if e.Reply != nil && ref.Kind == SurfaceReaction {
		return Output{Body: string(e.Reply.Reaction)}
	}
	marker := keys.Marker(e.PlaceOf(ref), Mark{At: e.At, Run: e.RunID(), Resolved: ref.Kind == SurfaceRemark})
	switch {
	case e.Reply != nil:
		return Output{Body: marker + "\n" + Sentence(e.Reply.Sentence) + "\n"}
	case ref.Kind == SurfaceCheckRun:
		check := checkRun(marker, e, ref, in, w.Summary())
		return Output{Body: check.Summary, Check: &check}
	case ref.Kind == SurfaceStatus:
		check := commitStatus(e, ref, in, w.Summary())
		return Output{Body: check.Title, Check: &check}
	case ref.Kind == SurfaceRemark:
		return Output{Body: resolved(marker, e)}
	case ref.Kind == SurfaceReview:
		run, _, _ := strings.Cut(ref.Key, "/")
		if !e.speaksOf(run) {
			return Output{Body: reviewTakenBack(marker, e, in.head(run))}
		}
		return Output{Body: review(marker, e, in.Plan), Post: post(keys, e, in.Plan)}
	}
	return Output{Body: Summary(marker, e, in)}
}

// head is the head of an earlier run.
func (in Input) head(run string) string {
	for _, p := range in.History {
		if p.Run.ID.String() == run {
			return p.Run.HeadSHA
		}
	}
	return ""
}

// Preview renders what the summary of a run's result would say, without the marker that makes it one.
func Preview(e Epoch, in Input) string {
	return strings.TrimSuffix(strings.TrimPrefix(Summary("", e, in), "\n"), sectionEnd+"\n")
}
