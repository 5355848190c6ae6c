package publisher

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// spot is a finding with a valid anchor.
func spot(path string) Finding {
	return Finding{Path: path, Line: 5, HunkStart: 3, HunkEnd: 9, Severity: SeverityInfo, Rule: "r", Message: "m"}
}

func printOf(path string, n int) string { return spot(path).fingerprint(n) }

func (p Plan) paths() map[string][]string {
	out := map[string][]string{}
	for _, s := range p.Say {
		out["say"] = append(out["say"], s.Path)
	}
	for _, s := range p.Unplaced {
		out["unplaced"] = append(out["unplaced"], s.Path)
	}
	return out
}

func TestPlanRemarks(t *testing.T) {
	t.Parallel()
	a, b := spot("a"), spot("b")
	moved := a
	moved.Line, moved.HunkStart, moved.HunkEnd = 50, 48, 60
	open := Remark{ID: 1, Path: "a", Fingerprint: printOf("a", 1)}
	fixed := Remark{ID: 1, Fingerprint: printOf("a", 1), Resolved: true}
	elsewhere := spot("c")
	elsewhere.HunkStart = 0
	tests := map[string]struct {
		found     []Finding
		more      int
		left      []Omission
		page      []Remark
		said, own []string
		say       []string
		unplaced  []string
		standing  int
		fixed     int
	}{
		"all of a first run":             {found: []Finding{a, b}, say: []string{"a", "b"}},
		"said, and there":                {found: []Finding{moved, b}, page: []Remark{open}, say: []string{"b"}, standing: 1},
		"deleted by a person":            {found: []Finding{a}, said: []string{printOf("a", 1)}},
		"fixed":                          {found: []Finding{b}, page: []Remark{open}, say: []string{"b"}, fixed: 1},
		"deleted once it had come back":  {found: []Finding{a}, page: []Remark{fixed}, said: []string{printOf("a", 1), printOf("a", 1)}},
		"its file was left out":          {left: []Omission{{Path: "a", Reason: "too large"}}, page: []Remark{open}},
		"another file was left out":      {left: []Omission{{Path: "b", Reason: "too large"}}, page: []Remark{open}, fixed: 1},
		"files were left out":            {left: []Omission{{Reason: "more than 3,000 files"}}, page: []Remark{open}},
		"marked as fixed already":        {page: []Remark{fixed}},
		"fixed, and back":                {found: []Finding{a}, page: []Remark{fixed}, said: []string{printOf("a", 1)}, say: []string{"a"}},
		"fixed, back, and said again":    {found: []Finding{a}, page: []Remark{fixed, open}, said: []string{printOf("a", 1)}, standing: 1},
		"the same twice":                 {found: []Finding{a, moved}, page: []Remark{open}, say: []string{"a"}, standing: 1},
		"said by this very epoch":        {found: []Finding{a, b}, page: []Remark{open}, own: []string{printOf("a", 1)}, say: []string{"a", "b"}},
		"on no line of the diff":         {found: []Finding{elsewhere, b}, say: []string{"b"}, unplaced: []string{"c"}},
		"not all findings were loaded":   {found: []Finding{b}, more: 1, page: []Remark{open}, say: []string{"b"}},
		"without an anchor, but said":    {found: []Finding{elsewhere}, page: []Remark{{ID: 1, Fingerprint: printOf("c", 1)}}, standing: 1},
		"on the page of a lost database": {found: []Finding{a}, page: []Remark{open}, standing: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := PlanRemarks(Review{Findings: tt.found, More: tt.more, Omissions: tt.left}, tt.page, tt.said, tt.own)
			if diff := cmp.Diff(tt.say, got.paths()["say"]); diff != "" {
				t.Error("say", diff)
			}
			if diff := cmp.Diff(tt.unplaced, got.paths()["unplaced"]); diff != "" {
				t.Error("unplaced", diff)
			}
			if got.Standing != tt.standing || len(got.Fixed) != tt.fixed {
				t.Errorf("%d standing, %d fixed; want %d, %d", got.Standing, len(got.Fixed), tt.standing, tt.fixed)
			}
		})
	}
}

func TestAnchored(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		start, line, from, to int32
		want                  bool
	}{
		"first of the hunk":         {0, 3, 3, 9, true},
		"last of the hunk":          {0, 9, 3, 9, true},
		"before the hunk":           {0, 2, 3, 9, false},
		"behind the hunk":           {0, 10, 3, 9, false},
		"a range":                   {3, 9, 3, 9, true},
		"a range from before":       {2, 5, 3, 9, false},
		"a range that ends earlier": {6, 5, 3, 9, false},
		"no hunk":                   {0, 5, 0, 0, false},
		"no line":                   {0, 0, 0, 9, false},
	} {
		f := Finding{StartLine: tt.start, Line: tt.line, HunkStart: tt.from, HunkEnd: tt.to}
		if f.anchored() != tt.want {
			t.Errorf("%s: %t", name, !tt.want)
		}
	}
}

// TestOneReviewSaysThreeHundred, and the rest is said by the comment.
func TestOneReviewSaysThreeHundred(t *testing.T) {
	t.Parallel()
	var found []Finding
	for n := range 310 {
		found = append(found, spot(fmt.Sprint(n)))
	}
	got := PlanRemarks(Review{Findings: found}, nil, nil, nil)
	if len(got.Say) != 300 || len(got.Unplaced) != 10 {
		t.Errorf("%d said, %d not placed", len(got.Say), len(got.Unplaced))
	}
}

// TestPageAfterAnyRuns: whatever is found run after run, whatever people delete, and whatever the tries of one run
// lose, every finding has at most one remark that is not marked as fixed, exactly one unless somebody deleted one, and
// none once somebody deleted that.
func TestPageAfterAnyRuns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var page []Remark
		var said []string
		deleted, away := map[string]bool{}, map[string]bool{}
		id := int64(0)
		for range rapid.IntRange(1, 8).Draw(t, "runs") {
			paths := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 5).Draw(t, "found")
			var found []Finding
			for _, p := range paths {
				found = append(found, spot(p))
			}
			var own []string
			for range rapid.IntRange(1, 2).Draw(t, "tries") { // the second knows what the first did
				plan := PlanRemarks(Review{Findings: found}, page, said, own)
				for _, s := range plan.Say {
					if slices.Contains(own, s.Fingerprint) {
						continue
					}
					id++
					page = append(page, Remark{ID: id, Fingerprint: s.Fingerprint})
					own = append(own, s.Fingerprint)
				}
				for _, f := range plan.Fixed {
					for n := range page {
						if page[n].ID == f.ID {
							page[n].Resolved = true
						}
					}
				}
			}
			said = append(said, own...)
			times := map[string]int{}
			for _, p := range paths {
				times[p]++
				print, open := printOf(p, times[p]), 0
				for _, r := range page {
					if r.Fingerprint == print && !r.Resolved {
						open++
					}
				}
				if open > 1 || open == 0 && !deleted[print] || open == 1 && away[print] {
					t.Fatalf("%s has %d remarks (deleted: %t, %t)", p, open, deleted[print], away[print])
				}
			}
			if len(page) > 0 && rapid.Bool().Draw(t, "somebody deletes") {
				n := rapid.IntRange(0, len(page)-1).Draw(t, "which")
				deleted[page[n].Fingerprint] = true
				away[page[n].Fingerprint] = away[page[n].Fingerprint] || !page[n].Resolved
				page = slices.Delete(page, n, n+1)
			}
		}
	})
}
