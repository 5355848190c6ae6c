package publisher

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
// intent has ended, and says so where it ended without a comment.
func (w Work) Render(keys Keyring, ref Ref, in Input) Output {
	if r := w.Epoch.Reply; r != nil && ref.Kind == SurfaceReaction {
		return Output{Body: string(r.Reaction)}
	}
	marker := keys.Marker(w.Epoch.PlaceOf(ref), Mark{At: w.Epoch.At, Run: w.Epoch.RunID()})
	if r := w.Epoch.Reply; r != nil {
		return Output{Body: marker + "\n" + Sentence(r.Sentence) + "\n"}
	}
	if ref.Kind == SurfaceCheckRun {
		check := CheckRun(marker, w.Epoch, in.Review, w.Summary())
		return Output{Body: check.Summary, Check: &check}
	}
	return Output{Body: Summary(marker, w.Epoch, in.Review)}
}
