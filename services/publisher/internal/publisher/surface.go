package publisher

import "time"

// SurfaceKind is a kind of output on a pull request.
type SurfaceKind string

// The kinds of surfaces.
const (
	SurfaceSummary  SurfaceKind = "summary"
	SurfaceReview   SurfaceKind = "review" // a run's inline comments, or a part of them
	SurfaceRemark   SurfaceKind = "remark" // one inline comment, edited when what it remarks is fixed
	SurfaceCheckRun SurfaceKind = "check_run"
	SurfaceStatus   SurfaceKind = "commit_status"
	SurfaceReaction SurfaceKind = "reaction" // on the comment that a reply answers
	SurfaceReply    SurfaceKind = "reply"    // a reply's comment
)

// Ref names a surface within its target. Key is empty for the summary, of which there is one, "<head sha>:<run
// id>" for a check run, the head for a commit status, the run's id for a review ("<run id>/<part>" for a part of
// one), a remark's fingerprint, and the reply's id for an answer.
type Ref struct {
	Kind SurfaceKind
	Key  string
}

// OnCommit tells what stands on a commit from what stands on the pull request's page.
func (r Ref) OnCommit() bool { return r.Kind == SurfaceCheckRun || r.Kind == SurfaceStatus }

// Surface is where one kind of output lives on a pull request, and what it shows as far as is known.
type Surface struct {
	Ref
	// GitHubID is GitHub's id of the output, 0 where it is not known to exist.
	GitHubID int64
	URL      string
	// Shown is the epoch that the output shows; Run the run of that epoch.
	Shown Position
	Run   RunID
	// Open: it says something that is to be taken back once the page says something else: a check run that has
	// not concluded, a review that speaks of the run on the page.
	Open bool
	// Recreated: a person deleted the output, and a newer run brought it back, which it does once.
	Recreated bool
	// CheckAt is when the page is looked at next for what went wrong unseen, zero where it is not; Checks is how
	// many looks are left.
	CheckAt time.Time
	Checks  int
}

// Place identifies a surface on GitHub, across lifecycles and lost databases: what the marker is derived
// from.
type Place struct {
	Tenant     Tenant
	Host       string
	Repository int64
	Number     int64
	Ref        Ref
}

// PlaceOf returns where the epoch's intent on the surface is written.
func (e Epoch) PlaceOf(r Ref) Place {
	return Place{Tenant: e.Tenant, Host: e.PR.Host, Repository: e.PR.Repository, Number: e.PR.Number, Ref: r}
}

// Found is output of ours as it was found on GitHub. At is zero where its marker does not tell.
type Found struct {
	ID    int64
	URL   string
	At    Position
	Run   RunID
	Extra int // further outputs with the marker of the same surface
}

// Placed is GitHub's answer to a write. More: the output needs a further write before it says all.
type Placed struct {
	ID   int64
	URL  string
	More bool
}

// adopt takes what was found for the surface's output.
func (s Surface) adopt(f Found) Surface {
	s.GitHubID, s.URL, s.Shown, s.Run = f.ID, f.URL, f.At, f.Run
	return s
}
