package reviewer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	t0    = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	claim = ClaimID{1}
	other = ClaimID{2}
)

func created() Attempt {
	return Attempt{ID: AttemptID{1}, Target: TargetID{1}, Run: RunID{1}, Claim: claim, State: StateCreated, Reserved: 100, CreatedAt: t0, LeaseUntil: t0.Add(time.Minute)}
}

func started() Attempt {
	a := created()
	a.State, a.Number, a.StartedAt = StateStarted, 1, t0
	return a
}

func in(state State) Attempt {
	switch state {
	case StateCreated:
		return created()
	case StateVoided:
		a := created()
		a.State, a.EndedAt = state, t0
		return a
	case StateStarted:
		return started()
	case StateFinished, StateFailed, StateCancelled:
		a := started()
		a.State, a.Cost, a.EndedAt = state, 7, t0
		return a
	case StateExpired:
		a := started()
		a.State, a.Cost, a.Estimate, a.EndedAt = state, a.Reserved, true, t0
		return a
	}
	panic(state)
}

func measured(cost Micros, outcome State) Effects {
	return Effects{Settle: &Settle{Attempt: AttemptID{1}, Run: RunID{1}, Amount: cost, Outcome: string(outcome)}}
}

func estimate(outcome State) Effects {
	return Effects{Settle: &Settle{Attempt: AttemptID{1}, Run: RunID{1}, Amount: 100, Estimate: true, Outcome: string(outcome)}}
}

func voided(reason string) Effects {
	return Effects{Void: &Void{Attempt: AttemptID{1}, Run: RunID{1}, Reason: reason}}
}

func TestTransitions(t *testing.T) {
	t.Parallel()
	finish := func(a Attempt) (Attempt, Effects, error) {
		return a.Finish(claim, Report{Cost: 30, Findings: []Finding{{Severity: SeverityError}}}, t0)
	}
	end := func(kind EndKind, spent Spent, held bool) func(Attempt) (Attempt, Effects, error) {
		return func(a Attempt) (Attempt, Effects, error) {
			return a.Close(claim, End{Kind: kind, Reason: "why", Spent: spent, Held: held}, t0)
		}
	}
	known := Spent{Cost: 5, Known: true}
	for name, c := range map[string]struct {
		from    State
		event   func(Attempt) (Attempt, Effects, error)
		to      State
		number  int
		cost    Micros
		effects Effects
		err     error
	}{
		"finish a started":                  {StateStarted, finish, StateFinished, 1, 30, measured(30, StateFinished), nil},
		"finish again":                      {StateFinished, finish, StateFinished, 1, 7, Effects{}, nil},
		"finish late: evidence, corrected":  {StateExpired, finish, StateExpired, 1, 30, measured(30, StateExpired), nil},
		"finish before the start":           {StateCreated, finish, StateCreated, 0, 0, Effects{}, ErrNotStarted},
		"finish a failed":                   {StateFailed, finish, StateFailed, 1, 7, Effects{}, ErrClosed},
		"finish a cancelled":                {StateCancelled, finish, StateCancelled, 1, 7, Effects{}, ErrClosed},
		"finish a voided":                   {StateVoided, finish, StateVoided, 0, 0, Effects{}, ErrClosed},
		"fail at a known cost":              {StateStarted, end(EndFailed, known, false), StateFailed, 1, 5, measured(5, StateFailed), nil},
		"fail at an unknown cost":           {StateStarted, end(EndFailed, Spent{}, false), StateFailed, 1, 100, estimate(StateFailed), nil},
		"fail again":                        {StateFailed, end(EndFailed, known, false), StateFailed, 1, 7, Effects{}, nil},
		"fail a finished":                   {StateFinished, end(EndFailed, known, false), StateFinished, 1, 7, Effects{}, ErrClosed},
		"fail late: corrected":              {StateExpired, end(EndFailed, known, false), StateExpired, 1, 5, measured(5, StateExpired), nil},
		"fail late, knowing nothing":        {StateExpired, end(EndFailed, Spent{}, false), StateExpired, 1, 100, Effects{}, nil},
		"cancel gives the number back":      {StateStarted, end(EndCancelled, known, false), StateCancelled, 0, 5, measured(5, StateCancelled), nil},
		"cancel before the start":           {StateCreated, end(EndCancelled, known, false), StateCreated, 0, 0, Effects{}, ErrNotStarted},
		"void before money was held":        {StateCreated, end(EndVoided, Spent{}, false), StateVoided, 0, 0, Effects{}, nil},
		"void with money held":              {StateCreated, end(EndVoided, Spent{}, true), StateVoided, 0, 0, voided("why"), nil},
		"void again":                        {StateVoided, end(EndVoided, Spent{}, true), StateVoided, 0, 0, Effects{}, nil},
		"void a started":                    {StateStarted, end(EndVoided, Spent{}, true), StateStarted, 1, 0, Effects{}, ErrStarted},
		"void a finished":                   {StateFinished, end(EndVoided, Spent{}, true), StateFinished, 1, 7, Effects{}, ErrClosed},
		"reap what never started":           {StateCreated, reap, StateVoided, 0, 0, voided("lease_lost"), nil},
		"reap what did":                     {StateStarted, reap, StateExpired, 1, 100, estimate(StateExpired), nil},
		"reap what ended while it was read": {StateFinished, reap, StateFinished, 1, 7, Effects{}, nil},
	} {
		got, effects, err := c.event(in(c.from))
		if !errors.Is(err, c.err) || err == nil != (c.err == nil) {
			t.Errorf("%s: error %v, want %v", name, err, c.err)
		}
		if got.State != c.to || got.Number != c.number || got.Cost != c.cost {
			t.Errorf("%s: %s, number %d, cost %d; want %s, %d, %d", name, got.State, got.Number, got.Cost, c.to, c.number, c.cost)
		}
		if diff := cmp.Diff(c.effects, effects); diff != "" {
			t.Errorf("%s: effects (-want +got)\n%s", name, diff)
		}
	}
}

func reap(a Attempt) (Attempt, Effects, error) {
	return a.Reap(time.Minute, a.LeaseUntil.Add(time.Minute))
}

func TestNothingIsReapedBeforeItsLeaseHasSurelyPassed(t *testing.T) {
	t.Parallel()
	a := started()
	if got, _, err := a.Reap(time.Minute, a.LeaseUntil.Add(time.Minute-1)); !errors.Is(err, ErrLeaseLives) || got != a {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOnlyTheOwnClaimEndsAnAttempt(t *testing.T) {
	t.Parallel()
	if _, _, err := started().Finish(other, Report{}, t0); !errors.Is(err, ErrNotOwner) {
		t.Errorf("finish: %v", err)
	}
	if _, _, err := started().Close(other, End{Kind: EndFailed}, t0); !errors.Is(err, ErrNotOwner) {
		t.Errorf("close: %v", err)
	}
	if _, _, err := created().Start(other, nil, 3, time.Minute, t0); !errors.Is(err, ErrNotOwner) {
		t.Errorf("start: %v", err)
	}
}

func TestALateResultIsKeptOnce(t *testing.T) {
	t.Parallel()
	r := Report{Cost: 30, Findings: []Finding{{Severity: SeverityWarning}}}
	late, _, err := in(StateExpired).Finish(claim, r, t0)
	if err != nil || late.Result.Counts.Warnings != 1 || late.Estimate {
		t.Fatalf("%+v, %v", late, err)
	}
	again, effects, err := late.Finish(claim, Report{Cost: 99}, t0)
	if err != nil || again != late || effects != (Effects{}) {
		t.Errorf("%+v, %+v, %v", again, effects, err)
	}
}

func TestStartTakesTheSmallestFreeNumber(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		taken []int
		want  int
		err   error
	}{
		"first":         {nil, 1, nil},
		"next":          {[]int{1}, 2, nil},
		"a given back":  {[]int{2, 3}, 1, nil},
		"in the middle": {[]int{1, 3}, 2, nil},
		"all used":      {[]int{3, 1, 2}, 0, ErrExhausted},
	} {
		var others []Attempt
		for i, n := range c.taken {
			o := in(StateFailed)
			o.ID, o.Claim, o.Number = AttemptID{byte(10 + i)}, ClaimID{byte(10 + i)}, n
			others = append(others, o)
		}
		foreign := in(StateFailed)
		foreign.ID, foreign.Run, foreign.Number = AttemptID{99}, RunID{9}, 1
		got, _, err := created().Start(claim, append(others, foreign), 3, time.Minute, t0)
		if got.Number != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: number %d, %v; want %d, %v", name, got.Number, err, c.want, c.err)
		}
	}
}

func TestStartClosesWhatEarlierClaimsLeft(t *testing.T) {
	t.Parallel()
	dead, unpaid, foreign := started(), created(), started()
	dead.ID, dead.Claim, dead.Run, dead.CreatedAt = AttemptID{2}, other, RunID{2}, t0.Add(-time.Minute)
	unpaid.ID, unpaid.Claim, unpaid.CreatedAt = AttemptID{3}, ClaimID{3}, t0.Add(-time.Hour)
	foreign.ID, foreign.Claim, foreign.Target, foreign.Run = AttemptID{4}, ClaimID{4}, TargetID{9}, RunID{9}
	got, closed, err := created().Start(claim, []Attempt{dead, unpaid, foreign}, 3, time.Minute, t0)
	if err != nil || got.State != StateStarted {
		t.Fatalf("%+v, %v", got, err)
	}
	if len(closed) != 2 || closed[0].Attempt.State != StateExpired || !closed[0].Effects.Settle.Estimate ||
		closed[1].Attempt.State != StateVoided || closed[1].Effects.Void == nil {
		t.Errorf("closed %+v", closed)
	}
}

func TestStartYieldsToALaterClaim(t *testing.T) {
	t.Parallel()
	later := started()
	later.ID, later.Claim, later.CreatedAt = AttemptID{2}, other, t0.Add(time.Second)
	if _, _, err := created().Start(claim, []Attempt{later}, 3, time.Minute, t0); !errors.Is(err, ErrEngineRunning) {
		t.Errorf("%v", err)
	}
}

func TestStartIsRepeatable(t *testing.T) {
	t.Parallel()
	got, closed, err := started().Start(claim, nil, 1, time.Minute, t0.Add(time.Minute))
	if err != nil || got != started() || closed != nil {
		t.Errorf("%+v, %v, %v", got, closed, err)
	}
	if _, _, err := in(StateVoided).Start(claim, nil, 1, time.Minute, t0); !errors.Is(err, ErrClosed) {
		t.Errorf("of a reaped one: %v", err)
	}
}

func ask() Ask {
	return Ask{
		Attempt: AttemptID{77}, Fence: Fence{Target: TargetID{1}, Claim: other, Lifecycle: 1, Run: RunID{1}},
		Run: Run{ID: RunID{1}, HeadSHA: "head", MergeBase: "mb", BaseSHA: "base", Lifecycle: 1}, Reserve: 100, Lease: time.Minute, MaxPerRun: 3,
	}
}

func finished() Attempt {
	a := in(StateFinished)
	a.HeadSHA, a.MergeBase, a.BaseSHA, a.Lifecycle = "head", "mb", "base", 1
	return a
}

func TestAdoption(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Attempt)
		want   OpeningKind
	}{
		"the same run":            {func(*Attempt) {}, OpenAdopted},
		"another base commit":     {func(a *Attempt) { a.BaseSHA, a.Run = "older", RunID{8} }, OpenAdopted},
		"another merge base":      {func(a *Attempt) { a.MergeBase = "x" }, OpenFresh},
		"another head":            {func(a *Attempt) { a.HeadSHA = "x" }, OpenFresh},
		"another lifecycle":       {func(a *Attempt) { a.Lifecycle = 2 }, OpenFresh},
		"an earlier re-run":       {func(a *Attempt) { a.Ordinal = 1 }, OpenFresh},
		"another target":          {func(a *Attempt) { a.Target = TargetID{9} }, OpenFresh},
		"one that failed":         {func(a *Attempt) { a.State = StateFailed }, OpenFresh},
		"late evidence is no one": {func(a *Attempt) { a.State = StateExpired }, OpenFresh},
	} {
		a := finished()
		c.change(&a)
		if got := ask().Open([]Attempt{a}); got.Kind != c.want {
			t.Errorf("%s: %s, want %s", name, got.Kind, c.want)
		}
	}
}

func TestOpenRefusesAnExhaustedRun(t *testing.T) {
	t.Parallel()
	var used []Attempt
	for n := 1; n <= 3; n++ {
		a := in(StateFailed)
		a.ID, a.Number = AttemptID{byte(n)}, n
		used = append(used, a)
	}
	if got := ask().Open(used); got.Kind != OpenExhausted {
		t.Errorf("%s", got.Kind)
	}
	used[1].Number = 0 // given back
	if got := ask().Open(used); got.Kind != OpenFresh || got.Attempt.ID != (AttemptID{77}) {
		t.Errorf("%+v", got)
	}
}

func TestOpenAgainFindsItsOwn(t *testing.T) {
	t.Parallel()
	mine := created()
	mine.Claim = other
	if got := ask().Open([]Attempt{mine}); got.Kind != OpenFresh || got.Attempt != mine {
		t.Errorf("%+v", got)
	}
}

func TestBoundedReport(t *testing.T) {
	t.Parallel()
	r := Report{
		Findings: []Finding{
			{Path: "a\x00b", Line: 0, Severity: SeverityError, Rule: "r", Message: strings.Repeat("é", 600)},
			{Path: "b", Line: 2, Severity: SeverityInfo, Rule: "r", Message: "\xff"},
			{Path: "c", Line: 3, Severity: SeverityWarning, Rule: "r", Message: "m"},
		},
		Omissions: make([]Omission, 500),
	}
	got := r.Bounded(2)
	if len(got.Findings) != 2 || got.Findings[1].Sequence != 2 || got.Findings[0].Path != "a\uFFFDb" || got.Findings[0].Line != 1 ||
		len(got.Findings[0].Message) != 1000 || got.Findings[1].Message != "\uFFFD" {
		t.Errorf("%+v", got.Findings)
	}
	if n := len(got.Omissions); n != maxOmissions || !strings.Contains(got.Omissions[n-1].Reason, "302 more") {
		t.Errorf("%d omissions, the last %q", n, got.Omissions[n-1].Reason)
	}
	if want := (Result{Verdict: VerdictFindings, Counts: Counts{Errors: 1, Infos: 1}}); got.Result() != want {
		t.Errorf("%+v", got.Result())
	}
	if got := (Report{}).Result(); got.Verdict != VerdictClean {
		t.Errorf("%+v", got)
	}
}
