package store

import (
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

func TestStatementsPrepare(t *testing.T) {
	t.Parallel()
	all := maps.Clone(queries)
	maps.Copy(all, outbox.Queries(schema))
	maps.Copy(all, retentionQueries)
	pgtest.PrepareAll(t, pgtest.New(t, ownMigrations(t)), schema, all)
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	pgtest.Catalog(t, pgtest.New(t, ownMigrations(t)))
}

var report = reviewer.Report{
	Cost: 700, Seen: reviewer.Seen{Files: 2, DiffBytes: 512},
	Findings: []reviewer.Finding{
		{
			Sequence: 1, Path: "a.go", StartLine: 3, Line: 5, HunkStart: 1, HunkEnd: 9, Severity: reviewer.SeverityError,
			Rule: "conflict", Message: "A conflict marker.", Suggestion: text("one\n\ttwo"),
		},
		{
			Sequence: 2, Path: "b.go", Line: 9, HunkStart: 9, HunkEnd: 9, Severity: reviewer.SeverityWarning,
			Rule: "left", Message: "A line to delete.", Suggestion: text(""),
		},
		{Sequence: 3, Path: "c.go", Line: 9, Severity: reviewer.SeverityInfo, Rule: "note", Message: "A note."},
	},
	Omissions: []reviewer.Omission{{Path: "c.png", Reason: "binary", Minor: true}, {Reason: "1 file over the limit"}},
}

func text(s string) *string { return &s }

func TestTheGoldenPathTakesThreeCommits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := f.pool.Stats()
	a := f.open(t)
	a, err := f.Start(t.Context(), a, 3, time.Minute)
	if err != nil || a.Number != 1 || a.State != reviewer.StateStarted {
		t.Fatalf("Start = %+v, %v", a, err)
	}
	a, err = f.Finish(t.Context(), a, report)
	if err != nil || a.State != reviewer.StateFinished || a.Cost != 700 || a.Estimate {
		t.Fatalf("Finish = %+v, %v", a, err)
	}
	after := f.pool.Stats()
	t.Logf("%d statements, %d round trips", after.Statements-before.Statements, after.Trips-before.Trips)
	if n := after.Commits - before.Commits; n != 3 {
		t.Errorf("%d commits, want 3", n)
	}
	if diff := cmp.Diff([]string{"settle:" + a.ID.String() + ":measured"}, f.keys(t)); diff != "" {
		t.Errorf("outbox (-want +got)\n%s", diff)
	}
	f.wantStored(t, a, report)
}

func (f *fixture) wantStored(t *testing.T, a reviewer.Attempt, want reviewer.Report) {
	t.Helper()
	got, left, err := f.Attempt(t.Context(), a.Tenant, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, got); diff != "" {
		t.Errorf("attempt (-answered +stored)\n%s", diff)
	}
	if got.Result != want.Result() {
		t.Errorf("result %+v, want %+v", got.Result, want.Result())
	}
	if diff := cmp.Diff(want.Omissions, left); diff != "" {
		t.Errorf("omissions (-want +got)\n%s", diff)
	}
	if got.Seen != want.Seen {
		t.Errorf("seen %+v, want %+v", got.Seen, want.Seen)
	}
	first, err := f.Findings(t.Context(), a.Tenant, a.ID, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reviewer.Listing{Findings: want.Findings[:2], Omissions: want.Omissions, Seen: want.Seen}, first); diff != "" {
		t.Errorf("the first page (-want +got)\n%s", diff)
	}
	second, err := f.Findings(t.Context(), a.Tenant, a.ID, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reviewer.Listing{Findings: want.Findings[2:]}, second); diff != "" {
		t.Errorf("the second page (-want +got)\n%s", diff)
	}
}

func TestEveryStepIsRepeatable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ask := f.ask()
	first, err := f.Open(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	ask.Attempt = reviewer.AttemptID(mint()) // asked again after a lost answer
	again, err := f.Open(t.Context(), ask)
	if err != nil || again != first {
		t.Errorf("Open again = %+v, %v; want %+v", again, err, first)
	}
	started, err := f.Start(t.Context(), first.Attempt, 3, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := f.Start(t.Context(), first.Attempt, 3, time.Minute); err != nil || again != started {
		t.Errorf("Start again = %+v, %v; want %+v", again, err, started)
	}
	done, err := f.Finish(t.Context(), started, report)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := f.Finish(t.Context(), started, report); err != nil || again != done {
		t.Errorf("Finish again = %+v, %v; want %+v", again, err, done)
	}
	if n := len(f.keys(t)); n != 1 {
		t.Errorf("%d messages, want one settlement", n)
	}
	if _, err := f.Open(t.Context(), f.withClaim(first.Attempt.Claim)); err != nil {
		t.Errorf("the claim that finished takes its own result over: %v", err)
	}
}

func (f *fixture) withClaim(c reviewer.ClaimID) reviewer.Ask {
	q := f.ask()
	q.Fence.Claim = c
	return q
}

func TestAClaimMakesOneAttempt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.open(t)
	if _, err := f.Close(t.Context(), a, reviewer.End{Kind: reviewer.EndVoided, Reason: "over_budget"}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(t.Context(), f.withClaim(a.Claim)); !errors.Is(err, reviewer.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
	if n := len(f.keys(t)); n != 0 {
		t.Errorf("%d messages for an attempt that held nothing", n)
	}
}

func TestFinishedAttemptIsAdoptedUnderAnotherBase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, err := f.Finish(t.Context(), f.start(t), report)
	if err != nil {
		t.Fatal(err)
	}
	moved := f.ask()
	moved.Run.ID, moved.Run.BaseSHA = reviewer.RunID(mint()), "newer base"
	if o, err := f.Open(t.Context(), moved); err != nil || o.Kind != reviewer.OpenAdopted || o.Attempt != a {
		t.Errorf("Open = %+v, %v; want %+v adopted", o, err, a)
	}
	moved.Run.Ordinal = 1
	if o, err := f.Open(t.Context(), moved); err != nil || o.Kind != reviewer.OpenFresh {
		t.Errorf("Open of a re-run = %+v, %v; want a fresh attempt", o, err)
	}
}

func TestCancelGivesTheNumberBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	cancel := reviewer.End{Kind: reviewer.EndCancelled, Reason: "target_moved", Spent: reviewer.Spent{Cost: 5, Known: true}}
	for range 5 {
		a := f.start(t)
		if a.Number != 1 {
			t.Fatalf("number %d, want 1 again", a.Number)
		}
		if a, err := f.Close(t.Context(), a, cancel); err != nil || a.Number != 0 || a.State != reviewer.StateCancelled {
			t.Fatalf("Close = %+v, %v", a, err)
		}
	}
}

func TestARunHasThreeAttempts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for n := 1; n <= 3; n++ {
		a := f.start(t)
		if a.Number != n {
			t.Errorf("number %d, want %d", a.Number, n)
		}
		if _, err := f.Close(t.Context(), a, reviewer.End{Kind: reviewer.EndFailed, Reason: "engine_error"}); err != nil {
			t.Fatal(err)
		}
	}
	if o, err := f.Open(t.Context(), f.ask()); err != nil || o.Kind != reviewer.OpenExhausted {
		t.Errorf("Open = %+v, %v; want exhausted", o, err)
	}
}

// TestRacingStartsStayWithinTheLimit has claims start at once on attempts of one run, as no live
// scheduler lets them: one engine at a time, and never more starts than numbers.
func TestRacingStartsStayWithinTheLimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 6 {
		var attempts [4]reviewer.Attempt
		for i := range attempts {
			o, err := f.Open(t.Context(), f.ask())
			if err != nil {
				t.Fatal(err)
			}
			attempts[i] = o.Attempt
		}
		var wg sync.WaitGroup
		for _, a := range attempts {
			wg.Go(func() {
				if a.ID.IsZero() {
					return // exhausted
				}
				started, err := f.Start(t.Context(), a, 3, time.Minute)
				if err == nil && started.Number > 3 {
					t.Errorf("number %d", started.Number)
				}
				if err != nil && !errors.Is(err, reviewer.ErrEngineRunning) && !errors.Is(err, reviewer.ErrClosed) && !errors.Is(err, reviewer.ErrExhausted) {
					t.Errorf("Start: %v", err)
				}
			})
		}
		wg.Wait()
		if n := pgtest.Query[int](t, f.db, `SELECT count(*) FROM reviewer.attempts WHERE state = 'started'`); n > 1 {
			t.Fatalf("%d engines at work", n)
		}
		if n := pgtest.Query[int](t, f.db, `SELECT count(*) FROM reviewer.attempts WHERE number > 0`); n > 3 {
			t.Fatalf("%d numbers of 3 used", n)
		}
	}
}

func TestANewStartClosesTheOrphanAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	dead, unpaid := f.start(t), f.open(t)
	if _, err := f.Start(t.Context(), f.open(t), 3, time.Minute); err != nil {
		t.Fatal(err)
	}
	f.wantState(t, dead, reviewer.StateExpired)
	f.wantState(t, unpaid, reviewer.StateVoided)
	want := []string{"settle:" + dead.ID.String() + ":estimate", "void:" + unpaid.ID.String()}
	if diff := cmp.Diff(want, f.keys(t)); diff != "" {
		t.Errorf("outbox (-want +got)\n%s", diff)
	}
}

func (f *fixture) wantState(t *testing.T, a reviewer.Attempt, want reviewer.State) {
	t.Helper()
	got, _, err := f.Attempt(t.Context(), a.Tenant, a.ID)
	if err != nil || got.State != want {
		t.Errorf("attempt %s is %s, %v; want %s", a.ID, got.State, err, want)
	}
}

// TestLateFinishCorrectsTheEstimate is a worker that slept past its lease, and past the reaper.
func TestLateFinishCorrectsTheEstimate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.start(t)
	reaped, err := f.Reap(t.Context(), f.lapse(t, a), time.Minute)
	if err != nil || reaped.State != reviewer.StateExpired || reaped.Cost != a.Reserved || !reaped.Estimate {
		t.Fatalf("Reap = %+v, %v", reaped, err)
	}
	late, err := f.Finish(t.Context(), a, report)
	if err != nil || late.State != reviewer.StateExpired || late.Cost != report.Cost || late.Estimate {
		t.Fatalf("Finish = %+v, %v; want it to stay expired at the measured cost", late, err)
	}
	f.wantStored(t, late, report) // as evidence
	want := []string{"settle:" + a.ID.String() + ":estimate", "settle:" + a.ID.String() + ":measured"}
	if diff := cmp.Diff(want, f.keys(t)); diff != "" {
		t.Errorf("outbox (-want +got)\n%s", diff)
	}
	if o, err := f.Open(t.Context(), f.ask()); err != nil || o.Kind != reviewer.OpenFresh {
		t.Errorf("Open = %+v, %v: evidence is not taken over", o, err)
	}
}

func TestReaperFindsOnlyWhatHasSurelyLapsed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	unpaid := f.open(t)
	f.run.ID = reviewer.RunID(mint())
	f.target = reviewer.TargetID(mint())
	paid := f.start(t)
	f.target = reviewer.TargetID(mint())
	done, err := f.Finish(t.Context(), f.start(t), reviewer.Report{Cost: 1})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := f.Orphans(t.Context(), 0, 10); err != nil || len(found) != 0 {
		t.Errorf("Orphans = %v, %v; want none while leases last", found, err)
	}
	if _, err := f.Reap(t.Context(), reviewer.Orphan{Tenant: paid.Tenant, Attempt: paid.ID}, 0); !errors.Is(err, reviewer.ErrLeaseLives) {
		t.Errorf("Reap of a live one: %v", err)
	}
	for _, a := range []reviewer.Attempt{unpaid, paid, done} {
		f.lapse(t, a)
	}
	if found, err := f.Orphans(t.Context(), 2*time.Hour, 10); err != nil || len(found) != 0 {
		t.Errorf("Orphans = %v, %v; want none within the margin", found, err)
	}
	found, err := f.Orphans(t.Context(), time.Minute, 10)
	if err != nil || len(found) != 2 {
		t.Fatalf("Orphans = %v, %v; want two", found, err)
	}
	for _, o := range found {
		if _, err := f.Reap(t.Context(), o, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	f.wantState(t, unpaid, reviewer.StateVoided)
	f.wantState(t, paid, reviewer.StateExpired)
	f.wantState(t, done, reviewer.StateFinished)
	if _, err := f.Start(t.Context(), unpaid, 3, time.Minute); !errors.Is(err, reviewer.ErrClosed) {
		t.Errorf("start after the reaper: %v", err)
	}
}

func TestKeepHoldsTheReaperOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.start(t)
	o := f.lapse(t, a)
	if err := f.Keep(t.Context(), a, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Reap(t.Context(), o, 0); !errors.Is(err, reviewer.ErrLeaseLives) {
		t.Errorf("Reap: %v", err)
	}
	foreign := a
	foreign.Claim = reviewer.ClaimID(mint())
	if err := f.Keep(t.Context(), foreign, time.Minute); !errors.Is(err, reviewer.ErrClosed) {
		t.Errorf("Keep by another claim: %v", err)
	}
	f.lapse(t, a)
	if _, err := f.Reap(t.Context(), o, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := f.Keep(t.Context(), a, time.Minute); !errors.Is(err, reviewer.ErrClosed) {
		t.Errorf("Keep of a reaped one: %v", err)
	}
}

func TestListsPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	want := make([]reviewer.AttemptID, 5)
	for i := range want {
		want[len(want)-1-i] = f.open(t).ID
	}
	var got []reviewer.AttemptID
	cursor := reviewer.AttemptCursor{CreatedAt: time.Now().Add(time.Hour), ID: reviewer.AttemptID(uuid.Max)}
	for {
		page, err := f.Attempts(t.Context(), f.tenant, reviewer.AttemptFilter{Run: &f.run.ID}, cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page {
			got = append(got, a.ID)
			cursor = reviewer.AttemptCursor{CreatedAt: a.CreatedAt, ID: a.ID}
		}
		if len(page) < 2 {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	nobody := reviewer.TargetID(mint())
	if page, err := f.Attempts(t.Context(), f.tenant, reviewer.AttemptFilter{Target: &nobody}, cursor, 2); err != nil || len(page) != 0 {
		t.Errorf("of another target: %v, %v", page, err)
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if n, age, err := f.Depth(t.Context()); err != nil || n != 0 || age != 0 {
		t.Errorf("%d, %s, %v", n, age, err)
	}
	f.start(t)
	f.open(t)
	if n, age, err := f.Depth(t.Context()); err != nil || n != 2 || age <= 0 {
		t.Errorf("%d, %s, %v", n, age, err)
	}
}

// TestTenantsAreWalledOff reads and writes as one tenant what is another's.
func TestTenantsAreWalledOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, err := f.Finish(t.Context(), f.start(t), report)
	if err != nil {
		t.Fatal(err)
	}
	stranger := reviewer.TenantID(mint())
	if _, _, err := f.Attempt(t.Context(), stranger, a.ID); !errors.Is(err, reviewer.ErrNotFound) {
		t.Errorf("Attempt: %v", err)
	}
	if _, err := f.Findings(t.Context(), stranger, a.ID, 0, 10); !errors.Is(err, reviewer.ErrNotFound) {
		t.Errorf("Findings: %v", err)
	}
	for _, table := range []string{"attempts", "findings", "omissions", "outbox"} {
		count := func(tx *pg.Tx) (n int, err error) {
			err = tx.QueryRow(t.Context(), `SELECT count(*) FROM reviewer.`+table).Scan(&n)
			return n, err
		}
		for who, want := range map[reviewer.TenantID]bool{f.tenant: true, stranger: false} {
			err := f.pool.Tenant(t.Context(), uuid.UUID(who), func(tx *pg.Tx) error {
				n, err := count(tx)
				if n > 0 != want {
					t.Errorf("%s: a tenant sees %d rows, own: %t", table, n, want)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		err := f.pool.System(t.Context(), func(tx *pg.Tx) error {
			if n, err := count(tx); err != nil || n == 0 {
				t.Errorf("%s: the system role sees %d rows, %v", table, n, err)
			}
			_, err := tx.Exec(t.Context(), `SET LOCAL ROLE fl_reviewer_tenant`)
			return err
		})
		if err != nil {
			t.Error(err)
		}
		err = f.pool.System(t.Context(), func(tx *pg.Tx) error {
			if _, err := tx.Exec(t.Context(), `SET LOCAL ROLE fl_reviewer_tenant`); err != nil {
				return err
			}
			_, err := count(tx)
			return err
		})
		if err == nil {
			t.Errorf("%s: an unset tenant is no error", table)
		}
	}
}

func TestAForeignTenantCantBeWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.open(t)
	err := f.pool.Tenant(t.Context(), mint(), func(tx *pg.Tx) error {
		a.ID, a.Claim = reviewer.AttemptID(mint()), reviewer.ClaimID(mint())
		_, err := tx.Exec(t.Context(), insertAttempt, insertArgs(a, time.Minute))
		return err
	})
	if pg.Classify(err) != pg.Refused {
		t.Errorf("insert for another tenant: %v", err)
	}
	var gone int64
	err = f.pool.Tenant(t.Context(), mint(), func(tx *pg.Tx) error {
		tag, err := tx.Exec(t.Context(), `DELETE FROM reviewer.attempts`)
		gone = tag.RowsAffected()
		return err
	})
	if err != nil || gone != 0 {
		t.Errorf("deleted %d rows of another tenant, %v", gone, err)
	}
}

// TestConstraintsHoldTheInvariants writes past the rules.
func TestConstraintsHoldTheInvariants(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.start(t)
	for name, set := range map[string]string{
		"a cost before the start":    `state = 'voided', number = 0, started_at = NULL, ended_at = clock_timestamp(), cost = 5`,
		"an end that is open":        `ended_at = clock_timestamp()`,
		"a started one without one":  `number = 0`,
		"finished without a verdict": `state = 'finished', ended_at = clock_timestamp()`,
		"findings that count none":   `state = 'finished', ended_at = clock_timestamp(), verdict = 'findings'`,
		"an estimate of its own":     `state = 'failed', ended_at = clock_timestamp(), estimate = true, cost = 1`,
		"an unknown state":           `state = 'lost'`,
		"seen without a verdict":     `seen_files = 1`,
	} {
		err := f.pool.Tenant(t.Context(), uuid.UUID(f.tenant), func(tx *pg.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE reviewer.attempts SET `+set+` WHERE id = @id`, pgx.NamedArgs{"id": a.ID})
			return err
		})
		if !pg.IsCheck(err, "") {
			t.Errorf("%s: %v, want a check's refusal", name, err)
		}
	}
	twin := a
	twin.ID, twin.Claim = reviewer.AttemptID(mint()), reviewer.ClaimID(mint())
	err := f.pool.Tenant(t.Context(), uuid.UUID(f.tenant), func(tx *pg.Tx) error {
		twin.State = reviewer.StateCreated
		if _, err := tx.Exec(t.Context(), insertAttempt, insertArgs(twin, time.Minute)); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `UPDATE reviewer.attempts SET state = 'started', number = 2, started_at = clock_timestamp() WHERE id = @id`, pgx.NamedArgs{"id": twin.ID})
		return err
	})
	if !pg.IsUnique(err, "attempts_one_engine") {
		t.Errorf("a second engine: %v", err)
	}
}

// TestAnAnchorLiesInItsHunk writes past the rules.
func TestAnAnchorLiesInItsHunk(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.start(t)
	for name, c := range map[string]struct {
		finding reviewer.Finding
		taken   bool
	}{
		"none":                        {reviewer.Finding{Line: 5}, true},
		"a line":                      {reviewer.Finding{Line: 5, HunkStart: 5, HunkEnd: 5, Suggestion: text("")}, true},
		"a range":                     {reviewer.Finding{Line: 5, StartLine: 4, HunkStart: 4, HunkEnd: 5}, true},
		"half a hunk":                 {reviewer.Finding{Line: 5, HunkStart: 5}, false},
		"starts before it":            {reviewer.Finding{Line: 5, StartLine: 3, HunkStart: 4, HunkEnd: 5}, false},
		"ends after it":               {reviewer.Finding{Line: 6, HunkStart: 4, HunkEnd: 5}, false},
		"a range of one":              {reviewer.Finding{Line: 5, StartLine: 5, HunkStart: 4, HunkEnd: 5}, false},
		"a range without a hunk":      {reviewer.Finding{Line: 5, StartLine: 4}, false},
		"a suggestion without a hunk": {reviewer.Finding{Line: 5, Suggestion: text("x")}, false},
	} {
		c.finding.Sequence, c.finding.Path, c.finding.Severity, c.finding.Rule, c.finding.Message = 1, "a", reviewer.SeverityInfo, "r", "m"
		undo := errors.New("undo")
		err := f.pool.Tenant(t.Context(), uuid.UUID(f.tenant), func(tx *pg.Tx) error {
			if _, err := tx.Exec(t.Context(), insertFindings, findingArgs(a, []reviewer.Finding{c.finding})); err != nil {
				return err
			}
			return undo
		})
		if errors.Is(err, undo) != c.taken || !c.taken && !pg.IsCheck(err, "findings_anchor") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
