package githubsim

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// usages judges the log by the limits' rules, whether or not they are enforced: what each installation asked for,
// and how much of it came in the busiest minute and hour.
func (t *truthLog) usages() []control.Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	byID := map[int64][]*control.Request{}
	for _, e := range t.seen {
		if e.InstallationID != 0 && e.Class != "tokens.create" && e.Class != "rate_limit" {
			byID[e.InstallationID] = append(byID[e.InstallationID], e)
		}
	}
	list := []control.Usage{}
	for id, seen := range byID {
		list = append(list, usageOf(id, seen))
	}
	slices.SortFunc(list, func(a, b control.Usage) int { return cmp.Compare(a.InstallationID, b.InstallationID) })
	return list
}

func usageOf(id int64, seen []*control.Request) control.Usage {
	u := control.Usage{InstallationID: id, Requests: len(seen)}
	var spent, created []spending
	var last time.Time
	for _, e := range seen {
		spent = append(spent, spending{e.At, points(e.Method)})
		if e.Creates {
			u.Creates++
			created = append(created, spending{e.At, 1})
		}
		write := e.Method != http.MethodGet && e.Method != http.MethodHead
		if write {
			u.Writes++
			if gap := e.At.Sub(last); !last.IsZero() && (u.ShortestGap == 0 || time.Duration(u.ShortestGap) > gap) {
				u.ShortestGap = control.Duration(max(gap, 1))
			}
			last = e.At
		}
		if e.Status >= 400 && e.Status < 500 {
			u.Refused++
			if write {
				u.RefusedWrites++
			}
		}
		if e.Limited {
			u.Limited++
		}
	}
	u.PeakPointsPerMinute = peak(spent, time.Minute)
	u.PeakCreatesPerMinute, u.PeakCreatesPerHour = peak(created, time.Minute), peak(created, time.Hour)
	return u
}

// peak is the most that was spent within any span of that length.
func peak(list []spending, span time.Duration) int {
	slices.SortStableFunc(list, func(a, b spending) int { return a.at.Compare(b.at) })
	most, sum, from := 0, 0, 0
	for _, s := range list {
		sum += s.points
		for !s.at.Before(list[from].at.Add(span)) {
			sum -= list[from].points
			from++
		}
		most = max(most, sum)
	}
	return most
}
