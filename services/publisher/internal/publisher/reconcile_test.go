package publisher

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReconcile(t *testing.T) {
	t.Parallel()
	at := Position{Lifecycle: 1, Epoch: 5}
	older, newer := Position{Lifecycle: 1, Epoch: 4}, Position{Lifecycle: 1, Epoch: 9}
	stored := Surface{Ref: Ref{Kind: SurfaceSummary}, GitHubID: 7, Shown: at}
	tests := map[string]struct {
		all   []Found
		keep  int64
		extra []int64
		again bool
	}{
		"as delivered":                {[]Found{{ID: 7, At: at}}, 7, nil, false},
		"nothing: a person's":         {nil, 7, nil, false},
		"a second one":                {[]Found{{ID: 7, At: at}, {ID: 9, At: at}}, 7, []int64{9}, false},
		"an older one beside it":      {[]Found{{ID: 3, At: at}, {ID: 7, At: at}}, 7, []int64{3}, false},
		"others, the stored one gone": {[]Found{{ID: 9, At: at}, {ID: 8, At: at}}, 8, []int64{9}, false},
		"an older epoch":              {[]Found{{ID: 7, At: older}}, 7, nil, true},
		"an epoch nobody knows":       {[]Found{{ID: 7, At: newer}}, 7, nil, true},
		"the marker is gone":          {[]Found{{ID: 7}}, 7, nil, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := stored.Reconcile(tt.all)
			var extra []int64
			for _, f := range got.Extra {
				extra = append(extra, f.ID)
			}
			if got.Surface.GitHubID != tt.keep || got.Again != tt.again || cmp.Diff(tt.extra, extra) != "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestLooks: one after ten minutes; and where a write is not sure, two more within a minute.
func TestLooks(t *testing.T) {
	t.Parallel()
	looks := func(s Surface) (after []time.Duration) {
		for !s.CheckAt.IsZero() {
			now := s.CheckAt
			after = append(after, now.Sub(at0))
			s = s.Checked(now)
		}
		return after
	}
	summary := Surface{Ref: Ref{Kind: SurfaceSummary}}
	unsure := []time.Duration{20 * time.Second, 45 * time.Second, 10 * time.Minute}
	if diff := cmp.Diff([]time.Duration{10 * time.Minute}, looks(summary.toCheck(true, at0))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(unsure, looks(summary.toCheck(false, at0))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(unsure, looks(summary.toCheck(false, at0.Add(-time.Minute)).toCheck(true, at0))); diff != "" {
		t.Error("a sure write must not hide what an unsure one left", diff)
	}
	if s := (Surface{Ref: Ref{Kind: SurfaceStatus}}).toCheck(false, at0); !s.CheckAt.IsZero() {
		t.Error("a commit status is looked at")
	}
	later := summary.toCheck(true, at0).CheckLater(at0)
	if later.Checks != 1 || !later.CheckAt.Equal(at0.Add(20*time.Second)) {
		t.Errorf("put off: %+v", later)
	}
}
