package publisher

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Remark is an inline comment of ours as it stands on the page. Fingerprint names what it remarks, across heads:
// lines move, so it holds none. Resolved: it says already that this is fixed.
type Remark struct {
	ID          int64
	URL         string
	Path        string
	Fingerprint string
	Resolved    bool
}

// Past is an earlier result of the target, as the folded history shows it.
type Past struct {
	At  Position
	Run Run
	URL string // of its review, where it had one
}

// Said is a finding with the fingerprint under which it is, or will be, remarked.
type Said struct {
	Finding
	Fingerprint string
}

// Plan is what a run's review says on lines of the diff, and what it no longer says.
type Plan struct {
	Say      []Said   // new in this run, with a valid anchor, in the order of the page
	Standing int      // said before, and still there
	Unplaced []Said   // without a valid anchor, or refused: in the summary alone
	Fixed    []Remark // said before, not found any more, and not marked yet
}

// Input is what an epoch's outputs are rendered from, beside the epoch itself.
type Input struct {
	Review  Review
	Plan    Plan
	History []Past // newest first
}

// Fingerprints is a set of them, separated by commas.
type Fingerprints string

// JoinFingerprints makes a set.
func JoinFingerprints(all []string) Fingerprints { return Fingerprints(strings.Join(all, ",")) }

// List returns the members.
func (f Fingerprints) List() []string {
	if f == "" {
		return nil
	}
	return strings.Split(string(f), ",")
}

// Len counts the members.
func (f Fingerprints) Len() int { return len(f.List()) }

// maxRemarks bounds the inline comments of one review.
const maxRemarks = 300

// maxFixed bounds the remarks that one epoch marks as fixed.
const maxFixed = 30

// PlanRemarks decides what a run's review says on lines of the diff: what is found and was not said before. Page
// are the remarks that stand on it; said are the fingerprints of earlier epochs' reviews, as often as they were said,
// own those of this one's. What was said more often than it is on the page, a person deleted.
func PlanRemarks(rv Review, page []Remark, said, own []string) Plan {
	var p Plan
	saidNow, missing, open := setOf(own), map[string]int{}, map[string]bool{}
	for _, f := range said {
		missing[f]++
	}
	for _, r := range page {
		missing[r.Fingerprint]--
		open[r.Fingerprint] = open[r.Fingerprint] || !r.Resolved
	}
	found, times := map[string]bool{}, map[Finding]int{}
	for _, f := range rv.Findings {
		like := Finding{Path: f.Path, Rule: f.Rule, Message: f.Message}
		times[like]++
		s := Said{Finding: f, Fingerprint: like.fingerprint(times[like])}
		found[s.Fingerprint] = true
		switch {
		case saidNow[s.Fingerprint]:
			p.Say = append(p.Say, s)
		case open[s.Fingerprint]:
			p.Standing++
		case missing[s.Fingerprint] > 0:
		case !f.anchored() || len(p.Say) >= maxRemarks:
			p.Unplaced = append(p.Unplaced, s)
		default:
			p.Say = append(p.Say, s)
		}
	}
	for _, r := range page {
		if !r.Resolved && !found[r.Fingerprint] && rv.sawAll(r.Path) {
			p.Fixed = append(p.Fixed, r)
		}
	}
	return p
}

// sawAll tells whether what is not found at the path is not there: nothing of it was left out.
func (rv Review) sawAll(path string) bool {
	left := func(o Omission) bool { return o.Path == path || o.Path == "" && !o.Minor }
	return rv.More == 0 && !slices.ContainsFunc(rv.Omissions, left)
}

// fingerprint names the n-th of the findings that say the same. Lines move, so it holds none.
func (f Finding) fingerprint(n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", f.Path, f.Rule, f.Message, n))
	return hex.EncodeToString(sum[:])
}

// anchored tells whether GitHub takes a comment on the finding's lines: all of them in one hunk.
func (f Finding) anchored() bool {
	first := f.Line
	if f.StartLine != 0 {
		first = f.StartLine
	}
	return f.HunkStart > 0 && f.HunkStart <= first && first <= f.Line && f.Line <= f.HunkEnd
}

// Of is the part of the plan that says what is in the set, all of it where there is none.
func (p Plan) Of(set Fingerprints) Plan {
	if set == "" {
		return p
	}
	in := setOf(set.List())
	p.Say = slices.DeleteFunc(slices.Clone(p.Say), func(s Said) bool { return !in[s.Fingerprint] })
	return p
}

// Fingerprints are those of what the plan says.
func (p Plan) Fingerprints() Fingerprints {
	all := make([]string, len(p.Say))
	for n, s := range p.Say {
		all[n] = s.Fingerprint
	}
	return JoinFingerprints(all)
}

func setOf(all []string) map[string]bool {
	out := make(map[string]bool, len(all))
	for _, s := range all {
		out[s] = true
	}
	return out
}
