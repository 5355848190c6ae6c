package store

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// begun is the progress of the epoch's run, after the epoch before it.
func begun(e publisher.Epoch, generation int64) publisher.Epoch {
	e.Kind = publisher.KindInProgress
	e.At.Epoch--
	e.At.Step = publisher.ProgressStep(generation, e.Kind)
	return e
}

func (f *fixture) record(t *testing.T, e publisher.Epoch) (intents int) {
	t.Helper()
	n, err := f.PublishEpoch(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (f *fixture) take(t *testing.T) publisher.Claim {
	t.Helper()
	c, found, err := f.Claim(t.Context(), time.Minute)
	if err != nil || !found {
		t.Fatalf("claim: %t, %v", found, err)
	}
	return c
}

func (f *fixture) save(t *testing.T, c publisher.Claim, ch publisher.Changes) time.Duration {
	t.Helper()
	next, err := f.Save(t.Context(), c, ch)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestProjectHasTheSurfacesThatItChose(t *testing.T) {
	t.Parallel()
	all := []publisher.SurfaceKind{publisher.SurfaceSummary, publisher.SurfaceReview, publisher.SurfaceCheckRun, publisher.SurfaceStatus}
	tests := map[string]struct {
		chosen []publisher.SurfaceKind
		kind   publisher.Kind
		want   int
	}{
		"never configured":                    {nil, publisher.KindResult, 3},
		"all":                                 {all, publisher.KindResult, 4},
		"the review alone":                    {all[1:2], publisher.KindResult, 1},
		"the review alone, progress":          {all[1:2], publisher.KindInProgress, 0},
		"the status alone, progress":          {all[3:], publisher.KindInProgress, 1},
		"the review alone, something is gone": {all[1:2], publisher.KindSuperseded, 1}, // the comment, should it be there
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			e := result(publisher.Tenant(mint()), publisher.TargetID(mint()), 1)
			if e.Kind = tt.kind; e.Kind.Progress() {
				e = begun(e, 1)
			}
			if tt.chosen != nil {
				f.choose(t, e.Tenant, tt.chosen...)
			}
			for range 2 {
				if n := f.record(t, e); n != tt.want {
					t.Errorf("%d intents, want %d", n, tt.want)
				}
			}
			if open := pgtest.Query[int](t, f.db, `SELECT count(*) FROM publisher.epochs WHERE ended_at IS NULL`); open != min(tt.want, 1) {
				t.Errorf("%d epochs open", open)
			}
		})
	}
}

func TestOlderConfigurationChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tenant := publisher.Tenant(mint())
	for _, c := range []struct {
		version int64
		kind    publisher.SurfaceKind
	}{{2, publisher.SurfaceReview}, {1, publisher.SurfaceSummary}, {2, publisher.SurfaceSummary}} {
		err := f.ConfigureProject(t.Context(), publisher.Configuration{
			Tenant: tenant, Project: theProject, Version: c.version, Surfaces: []publisher.SurfaceKind{c.kind},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := pgtest.Query[string](t, f.db, `SELECT version || surfaces::text FROM publisher.projects`); got != "2{review}" {
		t.Errorf("configured as %s", got)
	}
}

// TestProgressAndItsEpoch are two rows, in the order of their positions; nobody is told of the progress.
func TestProgressAndItsEpoch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tenant, target := publisher.Tenant(mint()), publisher.TargetID(mint())
	f.choose(t, tenant)
	first, next := result(tenant, target, 1), result(tenant, target, 2)
	f.record(t, begun(next, 4))
	f.record(t, first)
	c := f.take(t)
	if len(c.Works) != 2 || c.Works[0].Epoch.At != first.At || c.Works[1].Epoch.At != begun(next, 4).At {
		t.Fatalf("works %+v", c.Works)
	}
	for _, w := range c.Works {
		if w.Last != begun(next, 4).At {
			t.Errorf("the last is %+v", w.Last)
		}
	}
	w := c.Works[1]
	w.Epoch.CreatedAt = time.Time{}
	if string(w.Epoch.Digest()) != string(begun(next, 4).Digest()) {
		t.Errorf("loaded %+v", w.Epoch)
	}
	w.Cells[0] = confirms(w.Cells[0], 7, c.Now)
	w.Cells[0].Intent.Version--
	f.save(t, c, publisher.Changes{Cells: w.Cells, Ended: []publisher.Work{w}, Release: true})
	if n := pgtest.Query[int](t, f.db, `SELECT count(*) FROM publisher.outbox`); n != 0 {
		t.Errorf("%d messages about progress", n)
	}
	if n := pgtest.Query[int](t, f.db, `SELECT count(*) FROM publisher.epochs WHERE ended_at IS NOT NULL AND step = 9`); n != 1 {
		t.Error("the progress has not ended")
	}
}

// TestAddedIntentsAreThereOnce, with their surfaces, and loaded with what is open on the page.
func TestAddedIntentsAreThereOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tenant, target := publisher.Tenant(mint()), publisher.TargetID(mint())
	e := result(tenant, target, 1)
	f.record(t, e)
	c := f.take(t)
	ref := publisher.Ref{Kind: publisher.SurfaceReview, Key: e.Run.ID.String() + "/1.2"}
	added := publisher.Cell{
		Intent: publisher.Intent{
			ID: publisher.IntentID(mint()), Key: e.IntentKey(ref), Target: target, Ref: ref, Rank: publisher.RankReview, At: e.At,
			State: publisher.StatePending, Remarks: "aa,bb", Available: c.Now,
		},
		Surface: publisher.Surface{Ref: ref, GitHubID: 5, URL: "u"},
	}
	check := c.Works[0].Cells[2]
	check.Surface.Open, check.Surface.GitHubID, check.Surface.Shown = true, 8, e.At
	for range 2 { // a save whose answer was lost
		f.save(t, c, publisher.Changes{Added: []publisher.Cell{added}, Cells: []publisher.Cell{check}})
		check.Intent.Version++
	}
	f.save(t, c, publisher.Changes{Release: true})
	c = f.take(t)
	if len(c.Works) != 1 || len(c.Works[0].Cells) != 4 {
		t.Fatalf("works %+v", c.Works)
	}
	got := c.Works[0].Cells[1] // after the review, before the comment
	if got.Intent.Ref != ref || got.Intent.Remarks != "aa,bb" || got.Intent.Rank != publisher.RankReview || got.Surface.GitHubID != 5 {
		t.Errorf("loaded %+v", got)
	}
	if open := c.Open[target]; len(open) != 1 || !open[0].Open || open[0].GitHubID != 8 || open[0].Shown != e.At || open[0].Ref != check.Surface.Ref {
		t.Errorf("open %+v", open)
	}
}

// TestChecksAreClaimedWithoutOpenIntents at their time, whole.
func TestChecksAreClaimedWithoutOpenIntents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tenant, target := publisher.Tenant(mint()), publisher.TargetID(mint())
	f.choose(t, tenant)
	e := result(tenant, target, 1)
	f.record(t, e)
	c := f.take(t)
	w := c.Works[0]
	for n := range w.Cells {
		w.Cells[n] = confirms(w.Cells[n], int64(n+1), c.Now)
		w.Cells[n].Intent.Version--
	}
	w.Cells[0].Surface.Checks, w.Cells[0].Surface.CheckAt = 3, c.Now.Add(20*time.Second)
	w.Cells[1].Surface.Checks, w.Cells[1].Surface.CheckAt = 1, c.Now.Add(10*time.Minute)
	next := f.save(t, c, publisher.Changes{Cells: w.Cells, Ended: []publisher.Work{w}, Release: true})
	if next < 19*time.Second || next > 20*time.Second {
		t.Errorf("due in %s, want 20 s", next)
	}
	f.admin(t, `UPDATE publisher.surfaces SET check_at = check_at - interval '30 s'`)
	f.admin(t, `UPDATE publisher.senders SET due_at = due_at - interval '30 s'`)
	c = f.take(t)
	if len(c.Works) != 0 || len(c.Checks) != 1 || len(c.Checks[0].Cells) != 2 || c.Checks[0].Epoch.At != e.At {
		t.Fatalf("checks %+v", c.Checks)
	}
	cell := c.Checks[0].Cells[0]
	if cell.Surface.Checks != 3 || cell.Surface.CheckAt.IsZero() || cell.Surface.Shown != e.At {
		t.Errorf("to be looked at: %+v", cell.Surface)
	}
	cell.Surface.Checks, cell.Surface.CheckAt = 0, time.Time{}
	if next := f.save(t, c, publisher.Changes{Cells: []publisher.Cell{cell}, Release: true}); next < 9*time.Minute {
		t.Errorf("due in %s, want the other look", next)
	}
}

// TestRecall: what reviews of this lifecycle said, as often as they did, and the newest result of each other run.
func TestRecall(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tenant, target := publisher.Tenant(mint()), publisher.TargetID(mint())
	f.choose(t, tenant, publisher.SurfaceReview)
	var runs []publisher.Epoch
	say := func(e publisher.Epoch, state publisher.State, remarks publisher.Fingerprints) {
		t.Helper()
		f.record(t, e)
		c := f.take(t)
		w := c.Works[0]
		cell := confirms(w.Cells[0], e.At.Epoch+100, c.Now)
		cell.Intent.Version--
		cell.Intent.Remarks, cell.Surface.URL = remarks, "review"
		if cell.Intent.State = state; state == publisher.StateEnded {
			cell.Intent.Reason = "refused_unprocessable"
		}
		w.Cells[0] = cell
		f.save(t, c, publisher.Changes{Cells: w.Cells, Ended: []publisher.Work{w}, Release: true})
		runs = append(runs, e)
	}
	say(result(tenant, target, 1), publisher.StateConfirmed, "aa,bb")
	say(result(tenant, target, 2), publisher.StateConfirmed, "aa")
	say(result(tenant, target, 3), publisher.StateEnded, "cc")
	again := runs[0]
	again.At.Epoch = 4
	say(again, publisher.StateConfirmed, "")
	old := result(tenant, target, 1)
	old.At.Lifecycle = 2
	say(old, publisher.StateConfirmed, "dd")

	e := result(tenant, target, 5)
	got, err := f.Recall(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got.Said)
	if !slices.Equal(got.Said, []string{"aa", "aa", "bb"}) {
		t.Errorf("said %v", got.Said)
	}
	var past []int64
	for _, p := range got.History {
		past = append(past, p.At.Epoch)
		if p.URL != "review" || p.Run.HeadSHA != "bbbb" {
			t.Errorf("past %+v", p)
		}
	}
	if !slices.Equal(past, []int64{4, 2}) { // the third was not delivered, the fifth is of another lifecycle
		t.Errorf("history %v", past)
	}
	e.Run = runs[0].Run
	if got, err = f.Recall(t.Context(), e); err != nil || len(got.History) != 1 || got.History[0].At.Epoch != 2 {
		t.Errorf("the run's own history: %+v, %v", got.History, err)
	}
	e.Kind = publisher.KindSuperseded
	if got, err = f.Recall(t.Context(), e); err != nil || len(got.History) != 2 {
		t.Errorf("the history of a run that is taken back: %+v, %v", got.History, err)
	}
	if got, err = f.Recall(t.Context(), result(publisher.Tenant(mint()), target, 5)); err != nil || len(got.Said)+len(got.History) != 0 {
		t.Errorf("another tenant recalls %+v, %v", got, err)
	}
}

// TestProgressGoesByAge, and does not take its epoch along; a lifecycle takes all, but for what is open.
func TestProgressGoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tenant, target := publisher.Tenant(mint()), publisher.TargetID(mint())
	f.choose(t, tenant)
	first, next := result(tenant, target, 1), result(tenant, target, 2)
	f.record(t, first)
	f.record(t, begun(next, 1))
	f.deliver(t)
	f.admin(t, `UPDATE publisher.epochs SET ended_at = ended_at - interval '91 days'`)
	kind := f.Outdated(90 * 24 * time.Hour)
	for _, want := range []int{1, 0} {
		if n, err := kind.Remove(t.Context(), kind.Retention, 10); err != nil || n != want {
			t.Fatalf("removed %d, %v; want %d", n, err, want)
		}
	}
	f.wantRows(t, tenant, "1 epochs, 2 intents, 3 surfaces, 1 senders, 1 projects, 1 messages")
	f.record(t, begun(next, 2))
	f.deliver(t)
	f.admin(t, `UPDATE publisher.surfaces SET open = true WHERE surface_key = $1`, "bbbb:"+next.Run.ID.String())
	if err := f.PurgeLifecycle(t.Context(), tenant, target, 1); err != nil {
		t.Fatal(err)
	}
	f.wantRows(t, tenant, "0 epochs, 0 intents, 2 surfaces, 1 senders, 1 projects, 1 messages")
	f.admin(t, `UPDATE publisher.outbox SET dispatched_at = clock_timestamp()`)
	if _, err := f.EraseTenant(t.Context(), uuid.UUID(tenant)); err != nil {
		t.Fatal(err)
	}
	f.wantRows(t, tenant, "0 epochs, 0 intents, 0 surfaces, 0 senders, 0 projects, 0 messages")
}
