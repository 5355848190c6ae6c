package ingest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSurfaces(t *testing.T) {
	t.Parallel()
	const summary, review, check, status = SurfaceSummary, SurfaceReview, SurfaceCheckRun, SurfaceCommitStatus
	for name, tc := range map[string]struct{ chosen, want []Surface }{
		"none":             {nil, nil},
		"one":              {[]Surface{status}, []Surface{status}},
		"in another order": {[]Surface{check, summary, review}, []Surface{summary, review, check}},
		"one twice":        {[]Surface{review, review}, []Surface{review}},
		"an unknown one":   {[]Surface{"email", summary}, []Surface{summary}},
	} {
		if diff := cmp.Diff(tc.want, Surfaces(tc.chosen)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
