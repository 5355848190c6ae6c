package store

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

func TestStatementsPrepare(t *testing.T) {
	t.Parallel()
	pgtest.PrepareAll(t, pgtest.New(t, ownMigrations(t)), schema, Queries())
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	pgtest.Catalog(t, pgtest.New(t, ownMigrations(t)))
}

func TestSameEpochTwiceRecordsItOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tenant, target := publisher.Tenant(mint()), publisher.TargetID(mint())
	e := result(tenant, target, 1)
	for range 2 {
		n, err := f.PublishEpoch(t.Context(), e)
		if err != nil || n != 3 {
			t.Fatalf("PublishEpoch = %d, %v; want 3 intents", n, err)
		}
		e.Traceparent = "" // the trace is no part of what an epoch says
	}
	if n := pgtest.Query[int](t, f.db, `SELECT count(*) FROM publisher.intents`); n != 3 {
		t.Errorf("%d intents, want 3", n)
	}
	if f.rings != 2 {
		t.Errorf("%d rings, want one per commit", f.rings)
	}
	e.Run.Errors = 3
	if _, err := f.PublishEpoch(t.Context(), e); !errors.Is(err, publisher.ErrEpochConflict) {
		t.Errorf("the epoch with another content: %v, want ErrEpochConflict", err)
	}
}

func TestClaimLoadsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	e := result(publisher.Tenant(mint()), publisher.TargetID(mint()), 1)
	f.choose(t, e.Tenant, publisher.SurfaceSummary, publisher.SurfaceReview, publisher.SurfaceCheckRun, publisher.SurfaceStatus)
	if _, err := f.PublishEpoch(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	c, found, err := f.Claim(t.Context(), time.Minute)
	if err != nil || !found || len(c.Works) != 1 || len(c.Works[0].Cells) != 4 {
		t.Fatalf("Claim = %+v, %t, %v", c, found, err)
	}
	w := c.Works[0]
	w.Epoch.CreatedAt = time.Time{}
	if string(w.Epoch.Digest()) != string(e.Digest()) || w.Epoch.Traceparent != e.Traceparent {
		t.Errorf("loaded %+v, want %+v", w.Epoch, e)
	}
	for n, ref := range e.Refs() {
		i := w.Cells[n].Intent
		if i.Ref != ref || i.Key != e.IntentKey(ref) || i.State != publisher.StatePending || i.Run != e.Run.ID {
			t.Errorf("intent %d = %+v", n, i)
		}
	}
	if _, found, err := f.Claim(t.Context(), time.Minute); found || err != nil {
		t.Errorf("a second claim of a leased sender: %t, %v", found, err)
	}
}

func TestTwoSendersAtOnceClaimDifferentInstallations(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tenant := publisher.Tenant(mint())
	for n := range 3 {
		e := result(tenant, publisher.TargetID(mint()), 1)
		e.PR.Installation = int64(n + 1)
		if _, err := f.PublishEpoch(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	got := map[int64]int{}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			c, found, err := f.Claim(t.Context(), time.Minute)
			if err != nil {
				t.Error(err)
			}
			if found {
				mu.Lock()
				got[c.Installation]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	// A claim that meets another's lock skips it, so fewer than three is possible; twice never is.
	for installation, n := range got {
		if n != 1 {
			t.Errorf("installation %d was claimed %d times", installation, n)
		}
	}
	if len(got) == 0 {
		t.Error("nothing was claimed")
	}
}

// TestBacklogTakesTurns: installations with more than one claim sends, all of them due before another tenant's one
// epoch, each have one turn before it, and no second.
func TestBacklogTakesTurns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const installations, epochs = 3, maxTargets + 10
	busy, other := publisher.Tenant(mint()), publisher.Tenant(mint())
	record := func(tenant publisher.Tenant, installation int64) {
		t.Helper()
		e := result(tenant, publisher.TargetID(mint()), 1)
		e.PR.Installation = installation
		if _, err := f.PublishEpoch(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for n := range int64(installations * epochs) {
		record(busy, n%installations+1)
	}
	turn := func() publisher.Claim {
		t.Helper()
		c, found, err := f.Claim(t.Context(), time.Minute)
		if err != nil || !found {
			t.Fatalf("%t, %v", found, err)
		}
		if _, err := f.Save(t.Context(), c, publisher.Changes{Release: true}); err != nil {
			t.Fatal(err)
		}
		return c
	}
	turn() // of one that has much left
	record(other, 9)
	seen := map[int64]int{}
	for {
		c := turn()
		if c.Tenant == other {
			break
		}
		if seen[c.Installation]++; seen[c.Installation] > 1 {
			t.Fatalf("installation %d had %d turns while another tenant's waits", c.Installation, seen[c.Installation])
		}
	}
	if n := pgtest.Query[int](t, f.db, `SELECT count(*) FROM publisher.senders WHERE due_at IS NULL`); n != 0 {
		t.Errorf("%d installations with open intents are not due", n)
	}
}

func TestSaveUnderALostLeaseWritesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := f.PublishEpoch(t.Context(), result(publisher.Tenant(mint()), publisher.TargetID(mint()), 1)); err != nil {
		t.Fatal(err)
	}
	first, _, err := f.Claim(t.Context(), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	var second publisher.Claim
	for found := false; !found; { // until the first lease has lapsed
		if second, found, err = f.Claim(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	cells := []publisher.Cell{sends(first.Works[0].Cells[0], first.Now)}
	if _, err := f.Save(t.Context(), first, publisher.Changes{Cells: cells}); !errors.Is(err, publisher.ErrLeaseLost) {
		t.Errorf("save under a lapsed lease: %v, want ErrLeaseLost", err)
	}
	if n := pgtest.Query[int](t, f.db, `SELECT count(*) FROM publisher.intents WHERE state <> 'pending'`); n != 0 {
		t.Errorf("%d intents were written in spite of that", n)
	}
	if _, err := f.Save(t.Context(), second, publisher.Changes{Cells: cells, Needed: 2 * time.Minute}); !errors.Is(err, publisher.ErrLeaseLost) {
		t.Errorf("save that needs more than the lease has left: %v, want ErrLeaseLost", err)
	}
	if _, err := f.Save(t.Context(), second, publisher.Changes{Cells: cells, Needed: 30 * time.Second}); err != nil {
		t.Errorf("save under the live lease: %v", err)
	}
	if _, err := f.Save(t.Context(), second, publisher.Changes{Cells: cells}); !errors.Is(err, publisher.ErrLeaseLost) {
		t.Errorf("save of a state that is not the newest: %v, want ErrLeaseLost", err)
	}
}

func TestOneWriteOfASurfaceIsOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tenant, target := publisher.Tenant(mint()), publisher.TargetID(mint())
	f.choose(t, tenant)
	for n := range int64(2) {
		if _, err := f.PublishEpoch(t.Context(), result(tenant, target, n+1)); err != nil {
			t.Fatal(err)
		}
	}
	c, _, err := f.Claim(t.Context(), time.Minute)
	if err != nil || len(c.Works) != 2 {
		t.Fatalf("%d epochs, %v; want 2", len(c.Works), err)
	}
	both := []publisher.Cell{sends(c.Works[0].Cells[0], c.Now), sends(c.Works[1].Cells[0], c.Now)}
	if _, err := f.Save(t.Context(), c, publisher.Changes{Cells: both}); err == nil {
		t.Error("two writes of one comment were recorded as out at once")
	}
}

func TestReleaseTellsTheSchedulerAndWhenItIsDueNext(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tenant, target := publisher.Tenant(mint()), publisher.TargetID(mint())
	f.choose(t, tenant)
	if _, err := f.PublishEpoch(t.Context(), result(tenant, target, 1)); err != nil {
		t.Fatal(err)
	}
	c, _, err := f.Claim(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	w := c.Works[0]
	w.Cells[0] = sends(w.Cells[0], c.Now)
	if _, err := f.Save(t.Context(), c, publisher.Changes{Cells: w.Cells[:1], Needed: time.Second}); err != nil {
		t.Fatal(err)
	}
	w.Cells[0] = confirms(w.Cells[0], 11, c.Now)
	w.Cells[1].Intent.Available = c.Now.Add(time.Hour)
	next, err := f.Save(t.Context(), c, publisher.Changes{Cells: w.Cells, Release: true})
	if err != nil || next < 59*time.Minute || next > time.Hour {
		t.Fatalf("due in %s, %v; want an hour", next, err)
	}
	if n := pgtest.Query[int](t, f.db, `SELECT count(*) FROM publisher.outbox`); n != 0 {
		t.Errorf("%d messages before the epoch has ended", n)
	}
	if got := pgtest.Query[int64](t, f.db, `SELECT github_id FROM publisher.surfaces WHERE surface = 'summary' AND shown_epoch = 1`); got != 11 {
		t.Errorf("the surface has id %d, want 11", got)
	}

	if _, err := f.RetryIntent(t.Context(), tenant, w.Cells[1].Intent.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := f.RetryIntent(t.Context(), tenant, w.Cells[0].Intent.ID); !errors.Is(err, publisher.ErrIntentEnded) {
		t.Errorf("retry of an ended intent: %v, want ErrIntentEnded", err)
	}
	again, found, err := f.Claim(t.Context(), time.Minute)
	if err != nil || !found {
		t.Fatalf("claim after the retry: %t, %v", found, err)
	}
	w = again.Works[0]
	w.Cells[1] = sends(w.Cells[1], again.Now)
	if _, err := f.Save(t.Context(), again, publisher.Changes{Cells: w.Cells[1:]}); err != nil {
		t.Fatal(err)
	}
	w.Cells[1] = confirms(w.Cells[1], 12, again.Now)
	next, err = f.Save(t.Context(), again, publisher.Changes{Cells: w.Cells[1:], Ended: []publisher.Work{w}, Release: true})
	if err != nil || next >= 0 {
		t.Errorf("due in %s, %v; want never", next, err)
	}
	if n := pgtest.Query[int](t, f.db, `SELECT count(*) FROM publisher.outbox WHERE key LIKE '%:publication:%' AND traceparent LIKE '00-01020304%'`); n != 1 {
		t.Errorf("%d publications told, want 1", n)
	}
	if n := pgtest.Query[int](t, f.db, `SELECT count(*) FROM publisher.epochs WHERE delivered`); n != 1 {
		t.Errorf("%d epochs delivered, want 1", n)
	}
	if _, found, err := f.Claim(t.Context(), time.Minute); found || err != nil {
		t.Errorf("claim with nothing open: %t, %v", found, err)
	}
}

func TestPauseHoldsTheInstallationUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tenant := publisher.Tenant(mint())
	e := result(tenant, publisher.TargetID(mint()), 1)
	if _, err := f.PublishEpoch(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	c, _, err := f.Claim(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Save(t.Context(), c, publisher.Changes{
		Throttles: 1, Pause: time.Minute, Told: time.Minute, PauseReason: "secondary_limit", Delayed: &e, Release: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	// Another epoch makes the installation due; the pause still holds.
	if _, err := f.PublishEpoch(t.Context(), result(tenant, publisher.TargetID(mint()), 1)); err != nil {
		t.Fatal(err)
	}
	if _, found, err := f.Claim(t.Context(), time.Minute); found || err != nil {
		t.Errorf("claim of a paused installation: %t, %v", found, err)
	}
	if n := pgtest.Query[int](t, f.db, `SELECT count(*) FROM publisher.outbox WHERE key LIKE '%:delay:%'`); n != 1 {
		t.Errorf("%d delays told, want 1", n)
	}
}

func TestIntentsOfAnotherTenantAreNotThere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	mine, other := publisher.Tenant(mint()), publisher.Tenant(mint())
	f.choose(t, mine)
	if _, err := f.PublishEpoch(t.Context(), result(mine, publisher.TargetID(mint()), 1)); err != nil {
		t.Fatal(err)
	}
	got, err := f.ListIntents(t.Context(), mine, publisher.Filter{}, publisher.IntentID{}, 10)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d intents, %v; want 2", len(got), err)
	}
	page, err := f.ListIntents(t.Context(), mine, publisher.Filter{State: publisher.StatePending}, got[0].Intent.ID, 10)
	if err != nil || len(page) != 1 || page[0].Intent.ID != got[1].Intent.ID {
		t.Errorf("the page after the first intent: %+v, %v", page, err)
	}
	if got, err := f.ListIntents(t.Context(), other, publisher.Filter{}, publisher.IntentID{}, 10); err != nil || len(got) != 0 {
		t.Errorf("the other tenant lists %d, %v", len(got), err)
	}
	if _, err := f.GetIntent(t.Context(), other, got[0].Intent.ID); !errors.Is(err, publisher.ErrIntentNotFound) {
		t.Errorf("the other tenant gets: %v, want ErrIntentNotFound", err)
	}
}
