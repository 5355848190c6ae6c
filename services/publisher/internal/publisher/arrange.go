package publisher

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Draft is an intent that an epoch turns out to need once the page is known.
type Draft struct {
	Rank    Rank
	Surface Surface
	Remarks Fingerprints
}

// Arrange says what the epoch needs beside its own intents: taking back what is open of earlier ones, concluding what
// is open of its run elsewhere, and marking what is fixed.
func (w Work) Arrange(plan Plan, open []Surface) []Draft {
	var out []Draft
	for _, s := range open {
		switch {
		case w.cell(s.Ref) != nil:
		case w.Epoch.takesBack(s):
			out = append(out, Draft{Rank: RankTakeBack, Surface: s})
		case w.Epoch.concludes(s):
			out = append(out, Draft{Rank: RankOf(s.Ref), Surface: s})
		}
	}
	return append(out, w.fixed(plan)...)
}

// takesBack tells what says something that holds no longer: whatever is open of another head or run, unless a
// later epoch says so. Progress leaves reviews alone.
func (e Epoch) takesBack(s Surface) bool {
	if !s.Open || s.GitHubID == 0 || s.Shown.Compare(e.At) > 0 || e.Reply != nil {
		return false
	}
	switch s.Kind {
	case SurfaceCheckRun, SurfaceStatus:
		return !e.owns(s.Ref)
	case SurfaceReview:
		return !e.Kind.Progress() && !(e.Kind.ShowsResult() && ReviewedRun(s.Key) == e.RunID().String())
	case SurfaceSummary, SurfaceRemark, SurfaceReaction, SurfaceReply:
	}
	return false
}

// concludes tells what is open of the epoch's own run on a surface that its project does not choose, or no longer: it is
// not to stay open beside the result.
func (e Epoch) concludes(s Surface) bool {
	return s.Open && s.GitHubID != 0 && s.Shown.Compare(e.At) <= 0 && !e.Kind.Progress() &&
		(s.Kind == SurfaceCheckRun || s.Kind == SurfaceStatus) && e.owns(s.Ref)
}

// ReviewedRun is the run that a review's key names.
func ReviewedRun(key string) string {
	run, _, _ := strings.Cut(key, "/")
	return run
}

// ArrangeReview decides about the run's review, once it was looked up. One that is on the page, because the same run
// is shown again, takes no further comments: they are a part of their own; and it is brought up to date where it was
// taken back. Drop says that it has nothing to do.
func (w Work) ArrangeReview(plan Plan) (add []Draft, drop bool) {
	own := w.review()
	if own == nil || own.Intent.State != StatePending {
		return nil, false
	}
	there := own.Surface.GitHubID != 0
	say := plan.Of(own.Intent.Remarks).Fingerprints()
	if there && say != "" && w.cell(w.part(1)) == nil {
		add = []Draft{{Rank: RankReview, Surface: Surface{Ref: w.part(1)}, Remarks: say}}
	}
	return add, there && own.Surface.Open || !there && say == ""
}

// Reviews tells whether the epoch has a review.
func (w Work) Reviews() bool { return w.review() != nil }

// review is the epoch's own intent for its run's review.
func (w Work) review() *Cell { return w.cell(Ref{Kind: SurfaceReview, Key: w.Epoch.RunID().String()}) }

// part names a part of the epoch's review. Those of a refused one are numbered as the nodes of a binary tree.
func (w Work) part(n int) Ref {
	return Ref{Kind: SurfaceReview, Key: fmt.Sprintf("%s/%d.%d", w.Epoch.RunID(), w.Epoch.At.Epoch, n)}
}

// Halves are the two parts of a review that was refused for one of its comments.
func (w Work) Halves(i Intent) []Draft {
	n := 1
	if _, part, ok := strings.Cut(i.Ref.Key, "/"); ok {
		_, number, _ := strings.Cut(part, ".")
		n, _ = strconv.Atoi(number)
	}
	all := i.Remarks.List()
	var out []Draft
	for side, half := range [][]string{all[:len(all)/2], all[len(all)/2:]} {
		out = append(out, Draft{Rank: RankReview, Surface: Surface{Ref: w.part(2*n + side)}, Remarks: JoinFingerprints(half)})
	}
	return out
}

// Instead is the commit status that says what no check run may.
func (w Work) Instead() []Draft {
	if ref := w.Epoch.status(); w.cell(ref) == nil {
		return []Draft{{Rank: RankStatus, Surface: Surface{Ref: ref}}}
	}
	return nil
}

// fixed are the remarks to be marked, at most so many an epoch.
func (w Work) fixed(plan Plan) []Draft {
	if !w.Reviews() {
		return nil
	}
	left := maxFixed
	for _, cell := range w.Cells {
		if cell.Intent.Rank == RankRemark {
			left--
		}
	}
	var out []Draft
	seen := map[string]bool{}
	for _, r := range plan.Fixed {
		ref := Ref{Kind: SurfaceRemark, Key: r.Fingerprint}
		if left <= 0 || seen[r.Fingerprint] || w.cell(ref) != nil {
			continue
		}
		seen[r.Fingerprint] = true
		left--
		out = append(out, Draft{Rank: RankRemark, Surface: Surface{Ref: ref, GitHubID: r.ID, URL: r.URL}})
	}
	return out
}

func (w Work) cell(r Ref) *Cell {
	for n := range w.Cells {
		if w.Cells[n].Intent.Ref == r {
			return &w.Cells[n]
		}
	}
	return nil
}

// Ready is the intent that is to be worked on first: nil where none can be now.
func (w Work) Ready(r Rules, now time.Time) *Cell {
	var first *Cell
	for n := range w.Cells {
		c := &w.Cells[n]
		if c.Intent.State != StatePending || r.Next(*c, now) == StepLater {
			continue
		}
		if _, waits := w.Waits(c.Intent); !waits && (first == nil || c.Intent.Rank < first.Intent.Rank) {
			first = c
		}
	}
	return first
}

// Latest are the works that can still be shown, of one target's in their order: its last epoch, and progress after
// it where that is the last of all; -1 where there is none.
func Latest(works []Work) (last, progress int) {
	last, progress = -1, -1
	for n, w := range works {
		if !w.Epoch.Kind.Progress() {
			last = n
		}
	}
	if n := len(works) - 1; works[n].Epoch.Kind.Progress() && works[n].Last == works[n].Epoch.At {
		progress = n
	}
	return last, progress
}

// Overlay is what is open of a target's page, as far as is known by now: known surfaces replace what was loaded.
func Overlay(open []Surface, known map[Ref]Surface) []Surface {
	now := map[Ref]Surface{}
	for _, s := range open {
		now[s.Ref] = s
	}
	for ref, s := range known {
		now[ref] = s
	}
	var out []Surface
	for _, s := range now {
		if s.Open {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b Surface) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
	})
	return out
}

// SaidHere are the fingerprints that the epoch's own reviews said.
func (w Work) SaidHere() []string {
	var out []string
	for _, c := range w.Cells {
		if c.Intent.Rank == RankReview && c.Intent.State == StateConfirmed {
			out = append(out, c.Intent.Remarks.List()...)
		}
	}
	return out
}

// Settled is the plan as it turned out: what GitHub refused could not be placed, and what was marked as fixed in an
// earlier try counts still.
func (w Work) Settled(p Plan) Plan {
	refused := map[string]bool{}
	for _, c := range w.Cells {
		i := c.Intent
		if i.Rank == RankReview && i.State == StateEnded && i.Reason != ReasonNothingNew {
			for _, f := range i.Remarks.List() {
				refused[f] = true
			}
		}
	}
	for _, c := range w.Cells { // its halves may have been taken
		if i := c.Intent; i.Rank == RankReview && i.State != StateEnded {
			for _, f := range i.Remarks.List() {
				delete(refused, f)
			}
		}
	}
	if len(refused) > 0 {
		var say []Said
		for _, s := range p.Say {
			if refused[s.Fingerprint] {
				p.Unplaced = append(p.Unplaced[:len(p.Unplaced):len(p.Unplaced)], s)
			} else {
				say = append(say, s)
			}
		}
		p.Say = say
	}
	for _, c := range w.Cells {
		i := c.Intent
		known := func(r Remark) bool { return r.Fingerprint == i.Ref.Key }
		if i.Rank == RankRemark && i.State == StateConfirmed && !slices.ContainsFunc(p.Fixed, known) {
			p.Fixed = append(p.Fixed[:len(p.Fixed):len(p.Fixed)], Remark{ID: i.GitHubID, URL: i.URL, Fingerprint: i.Ref.Key, Resolved: true})
		}
	}
	return p
}
