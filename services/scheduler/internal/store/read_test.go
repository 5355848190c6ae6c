package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// TestLookupByWhatAPersonHas finds one target by each of its names, and nothing by another's.
func TestLookupByWhatAPersonHas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const delivery = "eab7d317-e483-11f0-9f7a-79939be63a65"
	head := strings.Repeat("ab12", 10)
	r := b.record(t, tenantA, push(delivery, head, 1))
	c := b.claimOne(t)
	_, f := b.resolve(t, c, reading(head, 1))
	trace := strings.Repeat("c", 32)
	if _, err := b.db.Admin(t).Exec(t.Context(), `UPDATE scheduler.targets SET trace = '00-' || $1 || '-bbbbbbbbbbbbbbbb-01'`, trace); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		query string
		found bool
	}{
		{"https://github.com/acme/widgets/pull/1", true},
		{"https://github.com/Acme/Widgets/pull/1/files#diff-1", true},
		{"https://github.com/acme/widgets/pull/1#issuecomment-42", true},
		{"https://github.com/acme/widgets/pull/2", false},
		{delivery, true},
		{head, true},
		{head[:7], true},
		{"0000000", false},
		{trace, true},
		{r.Target.String(), true},
		{f.Run.String(), true},
		{strings.ToUpper(f.Run.String()), true},
	} {
		l, err := scheduler.ParseLookup(tc.query)
		if err != nil {
			t.Errorf("%s: %v", tc.query, err)
			continue
		}
		found, err := b.Lookup(t.Context(), nil, l)
		if err != nil || (len(found) == 1) != tc.found {
			t.Errorf("%s: %d targets, %v; want found %v", tc.query, len(found), err, tc.found)
		}
		if other, err := b.Lookup(t.Context(), &tenantB, l); err != nil || len(other) != 0 {
			t.Errorf("%s: another tenant found %d, %v", tc.query, len(other), err)
		}
	}
	for _, query := range []string{"", "hello", "https://github.com/acme/widgets", "https://github.com/a/b/pull/x", "12345"} {
		if _, err := scheduler.ParseLookup(query); !errors.Is(err, scheduler.ErrLookup) {
			t.Errorf("%q: %v, want %v", query, err, scheduler.ErrLookup)
		}
	}
}

// TestRunWaitsForANewerVersion blocks until the run changes, and answers at its deadline where it doesn't.
func TestRunWaitsForANewerVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.record(t, tenantA, push("d1", "aaa", 1))
	c := b.claimOne(t)
	_, f := b.resolve(t, c, reading("aaa", 1))
	first, err := b.Run(t.Context(), tenantA, f.Run, 0, 0)
	if err != nil || first.State != scheduler.RunOpen {
		t.Fatalf("%+v, %v; want an open run", first, err)
	}
	same, err := b.Run(t.Context(), tenantA, f.Run, first.Version, time.Millisecond)
	if err != nil || same.Version != first.Version {
		t.Fatalf("%+v, %v; want the same version once the wait is over", same, err)
	}
	type answer struct {
		run scheduler.RunRow
		err error
	}
	waited := make(chan answer, 1)
	go func() {
		r, err := b.Run(b.ctx(t), tenantA, f.Run, first.Version, 30*time.Second)
		waited <- answer{r, err}
	}()
	if _, err := b.Commit(t.Context(), tenantA, f, accepted(1)); err != nil {
		t.Fatal(err)
	}
	if got := <-waited; got.err != nil || got.run.State != scheduler.RunDone || got.run.Result.CostMicros != 100 {
		t.Fatalf("%+v, %v; want the result", got.run, got.err)
	}
	if _, err := b.Run(t.Context(), tenantA, scheduler.RunID{9}, 0, 0); !errors.Is(err, scheduler.ErrNotFound) {
		t.Fatalf("an unknown run: %v", err)
	}
}

func TestExplainTellsTheDecisionsInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.record(t, tenantA, push("d1", "aaa", 1))
	c := b.claimOne(t)
	_, f := b.resolve(t, c, reading("aaa", 1))
	if _, err := b.Commit(t.Context(), tenantA, f, accepted(1)); err != nil {
		t.Fatal(err)
	}
	if got := b.record(t, tenantA, push("d2", "aaa", 1)); got.Decision != scheduler.DecisionAlreadySeen {
		t.Fatalf("a delivery that brings nothing new: %s", got.Decision)
	}
	decisions, err := b.Explain(t.Context(), tenantA, r.Target)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, d := range decisions {
		kinds = append(kinds, string(d.Kind))
	}
	if got, want := strings.Join(kinds, " "), "due review accepted already_seen"; got != want {
		t.Fatalf("decisions %q, want %q", got, want)
	}
	if why := scheduler.Explain(b.target(t, tenantA, r.Target), nil); !strings.HasPrefix(why, "Reviewed: epoch 1") {
		t.Fatalf("explained as %q", why)
	}
}

// TestLaterWordOfAPauseStands: of two messages about one pause the one that was recorded later, whichever comes first,
// and also when it is sent again.
func TestLaterWordOfAPauseStands(t *testing.T) {
	t.Parallel()
	recorded := time.Now().Add(-time.Hour)
	for what, tc := range map[string]struct {
		first, second scheduler.ChangeKind
		paused        bool
	}{
		"suspended, then not": {scheduler.ChangeSuspended, scheduler.ChangeUnsuspended, false},
		"not, then suspended": {scheduler.ChangeUnsuspended, scheduler.ChangeSuspended, true},
		"removed, then added": {scheduler.ChangeRemoved, scheduler.ChangeAdded, false},
		"added, then removed": {scheduler.ChangeAdded, scheduler.ChangeRemoved, true},
		"archived, then not":  {scheduler.ChangeArchived, scheduler.ChangeUnarchived, false},
		"not, then archived":  {scheduler.ChangeUnarchived, scheduler.ChangeArchived, true},
	} {
		for _, order := range [][]int{{0, 1}, {1, 0}, {1, 0, 1, 0}} {
			t.Run(fmt.Sprint(what, order), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.record(t, tenantA, push("d1", "aaa", 1))
				for _, i := range order {
					c := scheduler.IntegrationChange{
						Event: scheduler.ActivityID(fmt.Sprint("e", i)), Kind: []scheduler.ChangeKind{tc.first, tc.second}[i],
						Host: pull(1).Host, Installation: pull(1).Installation, Projects: []scheduler.ProjectID{pull(1).Project},
						Recorded: recorded.Add(time.Duration(i) * time.Second),
					}
					if err := b.RecordIntegration(t.Context(), tenantA, c); err != nil {
						t.Fatal(err)
					}
				}
				claimed, _, err := b.ClaimTargets(t.Context(), "worker", 5)
				if err != nil || (len(claimed) == 0) != tc.paused {
					t.Errorf("%d claimed, %v", len(claimed), err)
				}
			})
		}
	}
}

// TestIntegrationChangesPauseAndResume suspends, unsuspends and removes, in any order and twice.
func TestIntegrationChangesPauseAndResume(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.record(t, tenantA, push("d1", "aaa", 1))
	change := func(event string, kind scheduler.ChangeKind, projects ...scheduler.ProjectID) {
		t.Helper()
		for range 2 { // sent again after a lost answer
			err := b.RecordIntegration(t.Context(), tenantA, scheduler.IntegrationChange{
				Event: scheduler.ActivityID(event), Kind: kind, Host: pull(1).Host, Installation: pull(1).Installation, Projects: projects,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	claimable := func() int {
		claimed, _, err := b.ClaimTargets(t.Context(), "worker", 5)
		if err != nil {
			t.Fatal(err)
		}
		return len(claimed)
	}
	change("e1", scheduler.ChangeSuspended)
	change("e2", scheduler.ChangeRemoved, pull(1).Project)
	if n := claimable(); n != 0 {
		t.Fatalf("%d claimed while suspended", n)
	}
	change("e3", scheduler.ChangeUnsuspended)
	if n := claimable(); n != 0 {
		t.Fatalf("%d claimed while the repository is removed", n)
	}
	change("e4", scheduler.ChangeAdded, pull(1).Project)
	if c := b.claimOne(t); c.ID != r.Target {
		t.Fatalf("claimed %v", c.ID)
	}
	if got := b.target(t, tenantA, r.Target); got.Generation != 1 {
		t.Fatalf("generation %d: a suspension is a pause, nothing else", got.Generation)
	}
}

// TestPublicationsHaveNoOrder reports epochs late, twice and out of order.
func TestPublicationsHaveNoOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.record(t, tenantA, push("d1", "aaa", 1))
	c := b.claimOne(t)
	_, f := b.resolve(t, c, reading("aaa", 1))
	if _, err := b.Commit(t.Context(), tenantA, f, accepted(1)); err != nil {
		t.Fatal(err)
	}
	b.record(t, tenantA, push("d2", "bbb", 2)) // takes epoch 1 back
	report := func(epoch scheduler.Epoch, d scheduler.Delivery) scheduler.Target {
		t.Helper()
		p := scheduler.Publication{Lifecycle: 1, Epoch: epoch, Delivery: d}
		if err := b.RecordPublication(t.Context(), tenantA, r.Target, p, nil); err != nil {
			t.Fatal(err)
		}
		return b.target(t, tenantA, r.Target)
	}
	if got := report(1, scheduler.DeliveryDelivered); got.Page.Delivery != scheduler.DeliveryPending {
		t.Fatalf("an old epoch's report changed the page: %+v", got.Page)
	}
	if got := report(2, scheduler.DeliveryDelivered); got.Page.Delivery != scheduler.DeliveryDelivered {
		t.Fatalf("page %+v, want delivered", got.Page)
	}
	if got := report(2, scheduler.DeliveryEnded); got.Page.Delivery != scheduler.DeliveryDelivered {
		t.Fatalf("what was delivered stays so: %+v", got.Page)
	}
	err := b.RecordPublication(t.Context(), tenantA, scheduler.TargetID{7}, scheduler.Publication{Lifecycle: 1, Epoch: 1, Delivery: scheduler.DeliveryEnded}, nil)
	if err != nil {
		t.Fatalf("a report on a target that is gone: %v, want it taken", err)
	}
}

// TestAbortBeforeCommitLeavesNothing kills the session between the write and its commit, for each call that
// writes: nothing of it is there, and the same call again succeeds.
func TestAbortBeforeCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.db.Admin(t).Exec(t.Context(), `
CREATE FUNCTION scheduler.die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'aborted'; END $$;
CREATE CONSTRAINT TRIGGER die AFTER INSERT ON scheduler.decisions DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION scheduler.die()`); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Record(t.Context(), tenantA, push("d1", "aaa", 1), "e"); err == nil {
		t.Fatal("the commit went through")
	}
	left := pgtest.Query[int64](t, b.db, `
SELECT (SELECT count(*) FROM scheduler.targets) + (SELECT count(*) FROM scheduler.activities) + (SELECT count(*) FROM scheduler.outbox)`)
	if left != 0 {
		t.Fatalf("%d rows left of an aborted transaction", left)
	}
	if _, err := b.db.Admin(t).Exec(t.Context(), `DROP TRIGGER die ON scheduler.decisions`); err != nil {
		t.Fatal(err)
	}
	if r := b.record(t, tenantA, push("d1", "aaa", 1)); r.Generation != 1 {
		t.Fatalf("recorded again as %+v", r)
	}
}
