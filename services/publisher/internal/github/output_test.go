package github

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

var (
	summaryRef = publisher.Ref{Kind: publisher.SurfaceSummary}
	checkRef   = publisher.Ref{Kind: publisher.SurfaceCheckRun, Key: "bbbb:" + publisher.RunID{3}.String()}
)

func render(e publisher.Epoch, ref publisher.Ref, in publisher.Input) publisher.Output {
	done := publisher.Intent{Ref: summaryRef, State: publisher.StateConfirmed, URL: "https://github.com/o/r/pull/5#issuecomment-1"}
	return publisher.Work{Epoch: e, Cells: []publisher.Cell{{Intent: done}}}.Render(keys, ref, in)
}

func TestEditKeepsWhatPeopleWrote(t *testing.T) {
	t.Parallel()
	f, g := newFake(t)
	placed, err := Comments{g}.Create(t.Context(), anEpoch(), render(anEpoch(), summaryRef, publisher.Input{}))
	if err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("%sissues/comments/%d", repo, placed.ID)
	f.set(func() { f.items[path]["body"] = "Before.\n\n" + f.items[path]["body"].(string) + "After, @octocat.\n" })
	later := anEpoch()
	later.At.Epoch++
	next := render(later, summaryRef, publisher.Input{History: []publisher.Past{{At: anEpoch().At, Run: *anEpoch().Run}}})
	if _, err := (Comments{g}).Edit(t.Context(), later, placed.ID, next); err != nil {
		t.Fatal(err)
	}
	if got, want := f.item(path)["body"], next.Body+"\nBefore.\n\nAfter, @octocat.\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if found, err := (Comments{g}).Find(t.Context(), later, summaryRef, time.Time{}); err != nil || found == nil || found.At != later.At {
		t.Errorf("found %+v, %v", found, err)
	}
	f.set(func() { f.items[path]["body"] = strings.Repeat("x", 65_500) })
	if _, err := (Comments{g}).Edit(t.Context(), later, placed.ID, next); publisher.FailureOf(err).Reason != publisher.ReasonNoRoom {
		t.Errorf("no room: %v", err)
	}
	if err := (Comments{g}).Remove(t.Context(), later, summaryRef, publisher.Found{ID: placed.ID}); err != nil || f.item(path) != nil {
		t.Errorf("removed: %v", err)
	}
	if err := (Comments{g}).Remove(t.Context(), later, summaryRef, publisher.Found{ID: placed.ID}); err != nil {
		t.Errorf("removed again: %v", err)
	}
	if _, err := (Comments{g}).Edit(t.Context(), later, placed.ID, next); publisher.FailureOf(err).Class != publisher.Gone {
		t.Errorf("edited what is gone: %v", err)
	}
}

// TestLookupOfALongPage: since keeps the search short, and without it all pages are read.
func TestLookupOfALongPage(t *testing.T) {
	t.Parallel()
	f, g := newFake(t)
	list := repo + "issues/5/comments"
	began := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for i := range 1250 {
		f.add(list, repo+"issues/comments", object{
			"body": "words", "user": object{"id": 5, "type": "User"}, "updated_at": began.Add(time.Duration(i) * time.Minute).Format(time.RFC3339),
		})
	}
	sent := began.Add(1250 * time.Minute)
	ours := f.add(list, repo+"issues/comments", object{
		"body": render(anEpoch(), summaryRef, publisher.Input{}).Body, "updated_at": sent.Format(time.RFC3339),
	})
	for name, tt := range map[string]struct {
		since time.Time
		most  int
	}{"since": {sent.Add(-5 * time.Minute), 3}, "a busy hour": {sent.Add(-2 * time.Hour), 3}, "all": {time.Time{}, 14}} {
		before := f.calls("GET " + list)
		found, err := Comments{g}.Find(t.Context(), anEpoch(), summaryRef, tt.since)
		if err != nil || found == nil || found.ID != ours || found.Extra != 0 {
			t.Errorf("%s: found %+v, %v", name, found, err)
		}
		if n := f.calls("GET "+list) - before; n > tt.most {
			t.Errorf("%s: %d reads, want at most %d", name, n, tt.most)
		}
	}
}

func findings(n int) publisher.Input {
	var in publisher.Input
	for i := range n {
		in.Review.Findings = append(in.Review.Findings, publisher.Finding{
			Path: "a.go", Line: int32(i + 1), Severity: publisher.SeverityWarning, Rule: "r", Message: fmt.Sprintf("number %d", i),
		})
	}
	return in
}

// TestAnnotationsInFifties: from queued to its conclusion one check run; every annotation is there once, in order,
// although answers are lost; and only what is whole has the marker and a conclusion.
func TestAnnotationsInFifties(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		findings, writes int
		progress         bool
	}{
		"none":                    {0, 1, true},
		"fifty":                   {50, 1, true},
		"one more":                {51, 2, true},
		"three hundred":           {300, 6, true},
		"without progress":        {120, 3, false},
		"few, without progress":   {3, 1, false},
		"fifty, without progress": {50, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, g := newFake(t)
			e := anEpoch()
			out := render(e, checkRef, findings(tt.findings))
			var id int64
			if tt.progress {
				for step, kind := range []publisher.Kind{publisher.KindQueued, publisher.KindInProgress} {
					p := anEpoch()
					p.Kind, p.At = kind, publisher.Position{Lifecycle: 1, Epoch: 2, Step: int64(4 + step)}
					id = put(t, g, p, id, render(p, checkRef, publisher.Input{}))
				}
			}
			writes, lost := 0, true
			for more := true; more; {
				lost = !lost
				losing := lost
				f.set(func() { f.lose = func(call string) bool { return losing && !strings.HasPrefix(call, "GET ") } })
				placed, err := write(t, g, e, id, out)
				f.set(func() { f.lose = nil })
				if publisher.FailureOf(err).Class == publisher.Unknown && err != nil {
					found, err := Checks{g}.Find(t.Context(), e, checkRef, time.Time{})
					if err != nil || found == nil {
						t.Fatalf("found %+v, %v", found, err)
					}
					id, more = found.ID, found.At != e.At // as the core does: shown means shown whole
					writes++
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				id, more = placed.ID, placed.More
				writes++
			}
			check := f.item(fmt.Sprintf("%scheck-runs/%d", repo, id))
			output := check["output"].(object)
			var got []string
			for _, a := range asList(output["annotations"]) {
				got = append(got, a["message"].(string))
			}
			var want []string
			for i := range tt.findings {
				want = append(want, fmt.Sprintf("number %d", i))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if check["status"] != "completed" || check["conclusion"] != string(out.Check.Conclusion) || output["summary"] != out.Check.Summary {
				t.Errorf("ended as %v, %v, %v", check["status"], check["conclusion"], output["title"])
			}
			if writes != tt.writes || f.calls("POST "+repo+"check-runs") != 1 {
				t.Errorf("%d writes, want %d", writes, tt.writes)
			}
			if back, err := (Checks{g}).Read(t.Context(), e, checkRef, id); err != nil || back.At != e.At {
				t.Errorf("reads as %+v, %v", back, err)
			}
		})
	}
}

func write(t *testing.T, g *GitHub, e publisher.Epoch, id int64, out publisher.Output) (publisher.Placed, error) {
	t.Helper()
	if id == 0 {
		return Checks{g}.Create(t.Context(), e, out)
	}
	return Checks{g}.Edit(t.Context(), e, id, out)
}

func put(t *testing.T, g *GitHub, e publisher.Epoch, id int64, out publisher.Output) int64 {
	t.Helper()
	placed, err := write(t, g, e, id, out)
	if err != nil || placed.More {
		t.Fatalf("%+v, %v", placed, err)
	}
	return placed.ID
}

// TestCheckRunOfProgress: queued and in progress have no conclusion, and are found again by the run of their key.
func TestCheckRunOfProgress(t *testing.T) {
	t.Parallel()
	f, g := newFake(t)
	p := anEpoch()
	p.Kind, p.At = publisher.KindQueued, publisher.Position{Lifecycle: 1, Step: 4}
	id := put(t, g, p, 0, render(p, checkRef, publisher.Input{}))
	check := f.item(fmt.Sprintf("%scheck-runs/%d", repo, id))
	if _, concluded := check["conclusion"]; concluded || check["status"] != "queued" || check["actions"] != nil || check["external_id"] != p.Run.ID.String() {
		t.Errorf("%v", check)
	}
	closed := anEpoch() // of another head: it takes the check run back
	closed.Run = &publisher.Run{ID: publisher.RunID{9}, HeadSHA: "cccc"}
	found, err := Checks{g}.Find(t.Context(), closed, checkRef, time.Time{})
	if err != nil || found == nil || found.ID != id || found.At != p.At {
		t.Fatalf("found %+v, %v", found, err)
	}
	put(t, g, closed, id, render(closed, checkRef, publisher.Input{}))
	check = f.item(fmt.Sprintf("%scheck-runs/%d", repo, id))
	if check["status"] != "completed" || check["conclusion"] != "neutral" || !strings.Contains(check["output"].(object)["summary"].(string), "`cccc`") {
		t.Errorf("%v", check)
	}
	if actions := asList(check["actions"]); len(actions) != 1 || len(actions[0]["description"].(string)) > 40 {
		t.Errorf("actions %v", actions)
	}
}

func TestDuplicateCheckRun(t *testing.T) {
	t.Parallel()
	f, g := newFake(t)
	out := render(anEpoch(), checkRef, publisher.Input{})
	first, second := put(t, g, anEpoch(), 0, out), put(t, g, anEpoch(), 0, out)
	found, err := Checks{g}.Find(t.Context(), anEpoch(), checkRef, time.Time{})
	if err != nil || found.ID != first || found.Extra != 1 {
		t.Fatalf("found %+v, %v", found, err)
	}
	if err := (Checks{g}).Remove(t.Context(), anEpoch(), checkRef, publisher.Found{ID: second}); err != nil {
		t.Fatal(err)
	}
	if all, err := (Checks{g}).All(t.Context(), anEpoch(), checkRef, time.Time{}); err != nil || len(all) != 1 || all[0].ID != first {
		t.Errorf("%v, %v", all, err)
	}
	extra := f.item(fmt.Sprintf("%scheck-runs/%d", repo, second))
	if extra["conclusion"] != "neutral" || extra["output"].(object)["title"] != "duplicate" {
		t.Errorf("%v", extra)
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	kind := func(k publisher.Kind) publisher.Epoch { e := anEpoch(); e.Kind = k; return e }
	failing, warning, other := anEpoch(), anEpoch(), anEpoch()
	failing.Run = &publisher.Run{ID: publisher.RunID{3}, HeadSHA: "bbbb", Errors: 2}
	warning.Run = &publisher.Run{ID: publisher.RunID{3}, HeadSHA: "bbbb", Warnings: 1}
	other.Run = &publisher.Run{ID: publisher.RunID{9}, HeadSHA: "cccc"}
	for name, tt := range map[string]struct {
		e           publisher.Epoch
		state, says string
	}{
		"queued":      {kind(publisher.KindQueued), "pending", "waiting to be reviewed"},
		"in progress": {kind(publisher.KindInProgress), "pending", "being reviewed"},
		"clean":       {anEpoch(), "success", "nothing found"},
		"errors":      {failing, "failure", "2 errors"},
		"warnings":    {warning, "success", "1 warning"},
		"not run":     {kind(publisher.KindOverBudget), "error", "not reviewed, over budget"},
		"taken back":  {other, "error", "superseded, the pull request has moved on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, g := newFake(t)
			ref := publisher.Ref{Kind: publisher.SurfaceStatus, Key: "bbbb"}
			out := render(tt.e, ref, publisher.Input{})
			placed, err := Statuses{g}.Create(t.Context(), tt.e, out)
			if err != nil || placed.ID == 0 || f.calls("POST "+repo+"statuses/bbbb") != 1 {
				t.Fatalf("%+v, %v", placed, err)
			}
			sent := f.last()
			if sent["state"] != tt.state || sent["description"] != tt.says || sent["context"] != "Fenceline" {
				t.Errorf("sent %v", sent)
			}
			again, err := Statuses{g}.Edit(t.Context(), tt.e, placed.ID, out)
			if err != nil || again.ID == placed.ID {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	}
	if got := clip(strings.Repeat("é", 200), maxDescription); len([]rune(got)) != maxDescription {
		t.Errorf("%d characters", len([]rune(got)))
	}
}
