package ingest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func shown(number int64, head string) PullRequest {
	return PullRequest{Number: number, HeadSHA: head, BaseRef: "main", State: "open", UpdatedAt: noon}
}

func read(number int64, head string) Target {
	return Target{Number: number, State: "open", HeadSHA: head, BaseRef: "main", Resolved: 1}
}

// TestCompare: what is told is what differs from what was last read, and what is unknown.
func TestCompare(t *testing.T) {
	t.Parallel()
	draft, retargeted, drafted := shown(4, "a"), shown(5, "a"), read(4, "a")
	draft.Draft, retargeted.BaseRef, drafted.State = true, "next", "draft"
	for name, tc := range map[string]struct {
		target *Target
		pull   PullRequest
		news   bool
	}{
		"unknown":                       {nil, shown(1, "a"), true},
		"an unknown draft":              {nil, draft, true},
		"as it was read":                {ptr(read(1, "a")), shown(1, "a"), false},
		"another head":                  {ptr(read(1, "a")), shown(1, "b"), true},
		"another base":                  {ptr(read(5, "a")), retargeted, true},
		"a draft now":                   {ptr(read(4, "a")), draft, true},
		"a draft still":                 {&drafted, draft, false},
		"ready now":                     {&drafted, shown(4, "a"), true},
		"due: it will be read":          {&Target{Number: 1, State: "open", HeadSHA: "a", BaseRef: "main", Due: true}, shown(1, "b"), false},
		"claimed: it may have been":     {&Target{Number: 1, State: "open", HeadSHA: "a", BaseRef: "main", Due: true, Claimed: true}, shown(1, "b"), true},
		"claimed, never read":           {&Target{Number: 1, Due: true, Claimed: true}, shown(1, "b"), false},
		"never read, due":               {&Target{Number: 1, Due: true}, shown(1, "b"), false},
		"its lifecycle ended":           {&Target{Number: 1, Touched: noon}, shown(1, "b"), false},
		"due, of another installation":  {&Target{Number: 1, State: "open", HeadSHA: "a", BaseRef: "main", Due: true, Elsewhere: true}, shown(1, "a"), true},
		"never read, elsewhere":         {&Target{Number: 1, Due: true, Elsewhere: true}, shown(1, "a"), true},
		"at rest, elsewhere":            {&Target{Number: 1, State: "open", HeadSHA: "a", BaseRef: "main", Elsewhere: true}, shown(1, "a"), true},
		"ended, elsewhere":              {&Target{Number: 1, Touched: noon, Elsewhere: true}, shown(1, "b"), false},
		"something happened since then": {&Target{Number: 1, Touched: noon.Add(-time.Second)}, shown(1, "b"), true},
	} {
		var known []Target
		if tc.target != nil {
			known = []Target{*tc.target}
		}
		c := Compare(known)
		if news := c.Page([]PullRequest{tc.pull}); (len(news) == 1) != tc.news {
			t.Errorf("%s: told %+v", name, news)
		}
		if left := c.Left(); len(left) != 0 {
			t.Errorf("%s: left %+v", name, left)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestLeft: what was open and is in no page is read by itself.
func TestLeft(t *testing.T) {
	t.Parallel()
	c := Compare([]Target{read(1, "a"), read(2, "a"), {Number: 3, Due: true}, {Number: 4}, {Number: 5, State: "open", Due: true}})
	c.Page([]PullRequest{shown(1, "a")})
	elsewhere := Compare([]Target{{Number: 6, Due: true, Elsewhere: true}})
	if left := elsewhere.Left(); len(left) != 1 {
		t.Errorf("left %+v", left)
	}
	left := c.Left()
	if len(left) != 1 || left[0].Number != 2 {
		t.Fatalf("left %+v", left)
	}
	closed := shown(2, "a")
	closed.State = "closed"
	for name, tc := range map[string]struct {
		pull  PullRequest
		found bool
		news  bool
		state string
	}{"closed": {closed, true, true, "closed"}, "gone": {PullRequest{}, false, true, StateGone}, "only shifted": {shown(2, "a"), true, false, "open"}} {
		if seen, news := left[0].News(tc.pull, tc.found); news != tc.news || seen.Hint.State != tc.state {
			t.Errorf("%s: %+v, news %v", name, seen, news)
		}
	}
}

// TestActivityOfSight: one sight is one cause until the next answer; anything else seen is another.
func TestActivityOfSight(t *testing.T) {
	t.Parallel()
	p := SweptProject{Project: Project{ID: ProjectID{1}, Host: "github.com", RepositoryID: 1 << 62, Repository: "acme/rocket", InstallationID: 7}}
	seen := Seen{Number: 1 << 62, Hint: hintOf(Event{PullRequest: shown(5, "a")}), Resolved: 1 << 62}
	id := seen.ActivityID(p)
	if len(id) > 300 || id != seen.ActivityID(p) {
		t.Errorf("id %s", id)
	}
	for name, change := range map[string]func(*Seen, *SweptProject){
		"head": func(s *Seen, _ *SweptProject) { s.Hint.HeadSHA = "b" }, "base": func(s *Seen, _ *SweptProject) { s.Hint.BaseRef = "next" },
		"state": func(s *Seen, _ *SweptProject) { s.Hint.State = "draft" }, "time": func(s *Seen, _ *SweptProject) { s.Hint.UpdatedAt = noon.Add(time.Second) },
		"answer": func(s *Seen, _ *SweptProject) { s.Resolved++ }, "number": func(s *Seen, _ *SweptProject) { s.Number++ },
		"name": func(_ *Seen, p *SweptProject) { p.Repository = "acme/falcon" }, "project": func(_ *Seen, p *SweptProject) { p.ID = ProjectID{2} },
	} {
		other, of := seen, p
		change(&other, &of)
		if other.ActivityID(of) == id {
			t.Errorf("another %s is the same cause", name)
		}
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	p := SweptProject{Project: Project{InstallationID: 70}, Account: 7}
	for name, tc := range map[string]struct {
		at     *Installed
		misses int
		want   Where
	}{
		"where it was":               {&Installed{ID: 70, Account: Account{ID: 7}}, 5, WhereHere},
		"installed again":            {&Installed{ID: 71, Account: Account{ID: 7}}, 0, WhereAgain},
		"another account's":          {&Installed{ID: 80, Account: Account{ID: 8}}, 0, WhereMoved},
		"nowhere, for the 1st time":  {nil, 0, WhereHere},
		"nowhere, for the 2nd time":  {nil, 1, WhereLost},
		"nowhere, after a deletion":  {nil, 1, WhereLost},
		"nowhere, for the 3rd time":  {nil, 2, WhereLost},
		"another installation of it": {&Installed{ID: 70, Account: Account{ID: 8}}, 0, WhereMoved},
	} {
		p.Misses = tc.misses
		if got := p.Locate(tc.at); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestNewest: of each delivery its newest attempt, unless one of the page was delivered.
func TestNewest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Attempt {
			return Attempt{
				ID: rapid.Int64Range(1, 1000).Draw(t, "id"), GUID: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "guid"),
				Status: rapid.SampledFrom([]int{200, 202, 401, 409, 502, 503, 404, 429, 0}).Draw(t, "status"),
			}
		})).Draw(t, "log")
		slices.SortFunc(list, func(a, b Attempt) int { return int(b.ID - a.ID) })
		list = slices.CompactFunc(list, func(a, b Attempt) bool { return a.ID == b.ID })
		failed, delivered := Newest(list)
		slices.Sort(delivered)
		var want []string
		for _, guid := range []string{"a", "b", "c"} {
			of := slices.DeleteFunc(slices.Clone(list), func(a Attempt) bool { return a.GUID != guid })
			done := slices.ContainsFunc(of, func(a Attempt) bool { return a.Outcome() == AttemptDelivered })
			at := slices.IndexFunc(failed, func(a Attempt) bool { return a.GUID == guid })
			switch {
			case done:
				want = append(want, guid)
				if at >= 0 {
					t.Fatalf("%s was delivered, and is asked for", guid)
				}
			case len(of) == 0 && at >= 0, len(of) > 0 && (at < 0 || failed[at].ID != of[0].ID):
				t.Fatalf("%s: failed %+v", guid, failed)
			}
		}
		if diff := cmp.Diff(want, delivered); diff != "" {
			t.Fatalf("delivered (-want +got):\n%s", diff)
		}
	})
}
