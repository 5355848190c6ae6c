package ingest

import "slices"

// Surface is a kind of output that a project's results are shown on.
type Surface string

const (
	SurfaceSummary      Surface = "summary"
	SurfaceReview       Surface = "review"
	SurfaceCheckRun     Surface = "check_run"
	SurfaceCommitStatus Surface = "commit_status"
)

// surfaces are all there are, in the order in which they are stored and listed.
var surfaces = []Surface{SurfaceSummary, SurfaceReview, SurfaceCheckRun, SurfaceCommitStatus}

// Surfaces are the chosen ones in their order, each once, so that the same choice is always the same list.
func Surfaces(chosen []Surface) []Surface {
	var all []Surface
	for _, s := range surfaces {
		if slices.Contains(chosen, s) {
			all = append(all, s)
		}
	}
	return all
}
