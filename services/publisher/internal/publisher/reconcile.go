package publisher

import "time"

// looks are how long after a write its page is looked at again, and how long after that. A write that was not
// answered, or was made twice, may have left a second output, which is to live for less than a minute.
var looks = [...]time.Duration{10*time.Minute - 45*time.Second, 25 * time.Second, 20 * time.Second, 20 * time.Second}

const (
	looksUnsure = 3 // what a write that was not answered may have left has just changed
	looksMany   = 4 // what is known to be too many may be old: the first look lists all there is
)

// onceMore is when the page of a write that was answered at once is looked at.
const onceMore = 10 * time.Minute

// checked tells the surfaces of which a second output would be seen.
func (k SurfaceKind) checked() bool {
	switch k {
	case SurfaceSummary, SurfaceReview, SurfaceCheckRun, SurfaceReply:
		return true
	case SurfaceRemark, SurfaceStatus, SurfaceReaction:
	}
	return false
}

// toCheck plans the looks that follow a write. Those that an earlier one still needs are kept.
func (s Surface) toCheck(sure bool, now time.Time) Surface {
	switch {
	case !s.Kind.checked():
	case sure && s.Checks <= 1:
		s.Checks, s.CheckAt = 1, now.Add(onceMore)
	default:
		s.Checks = max(s.Checks, looksUnsure)
		s.CheckAt = now.Add(looks[s.Checks-1])
	}
	return s
}

// toClear plans the looks at a surface of which more than one output was found.
func (s Surface) toClear(now time.Time) Surface {
	if s.Kind.checked() {
		s.Checks, s.CheckAt = looksMany, now.Add(looks[looksMany-1])
	}
	return s
}

// Checked plans the look after this one.
func (s Surface) Checked(now time.Time) Surface {
	s.Checks, s.CheckAt = max(s.Checks-1, 0), time.Time{}
	if s.Checks > 0 {
		s.CheckAt = now.Add(looks[s.Checks-1])
	}
	return s
}

// CheckFrom is since when outputs have changed that the next look lists, at the page of an epoch recorded then.
func (s Surface) CheckFrom(recorded time.Time) time.Time {
	if s.Checks == looksMany {
		return time.Time{}
	}
	return recorded
}

// CheckLater plans the same look again.
func (s Surface) CheckLater(now time.Time) Surface {
	s.CheckAt = now.Add(looks[len(looks)-1])
	return s
}

// Healing is what a look at all outputs of a surface asks for.
type Healing struct {
	Surface Surface
	Extra   []Found // to be removed
	Again   bool    // what is visible is not what was delivered
}

// Reconcile compares all outputs of a surface with what was delivered there: the stored one is kept, else the
// oldest.
func (s Surface) Reconcile(all []Found) Healing {
	h := Healing{Surface: s}
	if len(all) == 0 {
		return h // a person deleted it: the next write finds out
	}
	keep := all[0]
	for _, f := range all[1:] {
		if f.ID < keep.ID {
			keep = f
		}
	}
	for _, f := range all {
		if f.ID == s.GitHubID {
			keep = f
		}
	}
	for _, f := range all {
		if f.ID != keep.ID {
			h.Extra = append(h.Extra, f)
		}
	}
	h.Surface.GitHubID, h.Surface.URL = keep.ID, keep.URL
	h.Again = keep.At != s.Shown
	return h
}
