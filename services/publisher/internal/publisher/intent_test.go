package publisher

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var at0 = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func pendingCell() Cell {
	return Cell{
		Intent: Intent{
			Ref: Ref{Kind: SurfaceSummary}, At: Position{1, 2, 0}, Kind: KindResult, Run: RunID{2},
			State: StatePending, Available: at0,
		},
		Surface: Surface{Ref: Ref{Kind: SurfaceSummary}},
	}
}

func sendingCell(op Op) Cell {
	c := pendingCell()
	c.Intent.State, c.Intent.Op, c.Intent.Attempts = StateSending, op, 1
	c.Intent.SentAt, c.Intent.Available = at0, at0.Add(DefaultRules.Grace)
	if op == OpEdit {
		c.Surface.GitHubID, c.Surface.Shown, c.Surface.Run = 9, Position{1, 1, 0}, RunID{1}
	}
	return c
}

func with(c Cell, change func(*Cell)) Cell {
	change(&c)
	return c
}

func TestApply(t *testing.T) {
	t.Parallel()
	later := at0.Add(time.Minute)
	type want struct {
		state  State
		reason string
		id     int64 // of the surface
		effect Effect
		after  time.Duration // until available, from now
		err    error
	}
	tests := map[string]struct {
		cell Cell
		ev   Event
		now  time.Time
		want want
	}{
		"a creation without a listing is refused": {pendingCell(), Sent{Op: OpCreate}, at0, want{state: StatePending, err: ErrNotLookedUp}},
		"a creation where the surface is absent": {
			with(pendingCell(), func(c *Cell) { c.Absent = true }),
			Sent{Op: OpCreate},
			at0,
			want{state: StateSending, after: DefaultRules.Grace},
		},
		"an edit of nothing is refused": {pendingCell(), Sent{Op: OpEdit}, at0, want{state: StatePending, err: ErrNotLookedUp}},
		"a lower epoch never overwrites a higher one": {with(sendingCell(OpEdit), func(c *Cell) {
			c.Intent.State, c.Surface.Shown = StatePending, Position{1, 3, 0}
		}), Sent{Op: OpEdit}, at0, want{state: StatePending, id: 9, err: ErrTransition, after: DefaultRules.Grace}},
		"a higher lifecycle is higher": {with(sendingCell(OpEdit), func(c *Cell) {
			c.Intent.State, c.Surface.Shown = StatePending, Position{2, 1, 0}
		}), Sent{Op: OpEdit}, at0, want{state: StatePending, id: 9, err: ErrTransition, after: DefaultRules.Grace}},
		"answered":                     {sendingCell(OpCreate), Answered{Placed{ID: 5}}, later, want{state: StateConfirmed, id: 5}},
		"an answer without an id":      {sendingCell(OpCreate), Answered{}, later, want{state: StateSending, err: ErrTransition, after: -45 * time.Second}},
		"surely not executed":          {sendingCell(OpCreate), Failed{Failure{Class: NotExecuted}}, at0, want{state: StatePending, after: time.Second}},
		"a lost answer waits its time": {sendingCell(OpCreate), Failed{Failure{Class: Unknown}}, at0.Add(time.Second), want{state: StateSending, after: 14 * time.Second}},
		"throttled":                    {sendingCell(OpCreate), Failed{Failure{Class: Throttled}}, at0, want{state: StatePending, effect: PauseSender{Failure{Class: Throttled}}}},
		"refused":                      {sendingCell(OpCreate), Failed{Failure{Class: Refused, Reason: "FORBIDDEN"}}, at0, want{state: StateEnded, reason: "refused_forbidden"}},
		"the page is gone":             {sendingCell(OpCreate), Failed{Failure{Class: Gone}}, at0, want{state: StateEnded, reason: ReasonGone}},
		"a person deleted the comment, a newer run makes it anew": {sendingCell(OpEdit), Failed{Failure{Class: Gone}}, at0, want{state: StatePending}},
		"a person deleted the comment of this run": {
			with(sendingCell(OpEdit), func(c *Cell) { c.Surface.Run = c.Intent.Run }),
			Failed{Failure{Class: Gone}},
			at0,
			want{state: StateEnded, reason: ReasonDeleted, id: 9},
		},
		"a person deleted the comment a second time": {
			with(sendingCell(OpEdit), func(c *Cell) { c.Surface.Recreated = true }),
			Failed{Failure{Class: Gone}},
			at0,
			want{state: StateEnded, reason: ReasonDeleted, id: 9},
		},
		"a person deleted what was to be taken back": {
			with(sendingCell(OpEdit), func(c *Cell) { c.Intent.Kind = KindSuperseded }),
			Failed{Failure{Class: Gone}},
			at0,
			want{state: StateEnded, reason: ReasonDeleted, id: 9},
		},
		"the installation is gone": {sendingCell(OpEdit), Failed{Failure{Class: Gone, Everything: true}}, at0, want{state: StateEnded, reason: ReasonGone, id: 9}},
		"absence within the grace says nothing": {
			sendingCell(OpCreate),
			LookedUp{},
			at0.Add(14 * time.Second),
			want{state: StateSending, err: ErrTooEarly, after: time.Second},
		},
		"absence after the grace":              {sendingCell(OpCreate), LookedUp{}, later, want{state: StatePending}},
		"found as sent, also within the grace": {sendingCell(OpCreate), LookedUp{Found: &Found{ID: 5, At: Position{1, 2, 0}}}, at0, want{state: StateConfirmed, id: 5}},
		"found older: edited":                  {sendingCell(OpCreate), LookedUp{Found: &Found{ID: 5, At: Position{1, 1, 0}}}, later, want{state: StatePending, id: 5}},
		"found newer: superseded":              {sendingCell(OpCreate), LookedUp{Found: &Found{ID: 5, At: Position{1, 3, 0}}}, later, want{state: StateEnded, reason: ReasonSuperseded, id: 5}},
		"adopted before the first write":       {pendingCell(), LookedUp{Found: &Found{ID: 5, At: Position{1, 1, 0}}}, at0, want{state: StatePending, id: 5}},
		"an edit read back as deleted":         {sendingCell(OpEdit), LookedUp{}, later, want{state: StatePending}},
		"unknown is not absent":                {sendingCell(OpCreate), Delayed{Failure: Failure{Class: NotExecuted}}, later, want{state: StateSending, after: time.Second}},
		"a refused read is tried again":        {pendingCell(), Delayed{Failure: Failure{Class: Gone}}, at0, want{state: StatePending, after: time.Second}},
		"and believed the third time": {
			with(pendingCell(), func(c *Cell) { c.Intent.Holds = 2 }),
			Delayed{Failure: Failure{Class: Gone}},
			at0,
			want{state: StateEnded, reason: ReasonGone},
		},
		"held until":                    {pendingCell(), Held{Until: at0.Add(20 * time.Second)}, at0, want{state: StatePending, after: 20 * time.Second}},
		"held until much later":         {pendingCell(), Held{Until: later}, at0, want{state: StatePending, after: 30 * time.Second}},
		"held with a backoff":           {with(pendingCell(), func(c *Cell) { c.Intent.Holds = 20 }), Held{}, at0, want{state: StatePending, after: 30 * time.Second}},
		"dropped":                       {pendingCell(), Dropped{ReasonSuperseded}, at0, want{state: StateEnded, reason: ReasonSuperseded}},
		"what may be out isn't dropped": {sendingCell(OpCreate), Dropped{ReasonSuperseded}, at0, want{state: StateSending, err: ErrTransition, after: 15 * time.Second}},
		"an operator's retry":           {with(pendingCell(), func(c *Cell) { c.Intent.Available = later }), Retried{}, at0, want{state: StatePending}},
		"a retry keeps the grace":       {sendingCell(OpCreate), Retried{}, at0, want{state: StateSending, after: 15 * time.Second}},
		"more to come":                  {sendingCell(OpCreate), Answered{Placed{ID: 5, More: true}}, later, want{state: StatePending, id: 5}},
		"a review with one bad comment": {
			with(sendingCell(OpCreate), func(c *Cell) { c.Intent.Ref.Kind, c.Intent.Remarks = SurfaceReview, "aa,bb" }),
			Failed{Failure{Class: Refused, Reason: ReasonUnprocessable}},
			at0,
			want{state: StateEnded, reason: "refused_unprocessable", effect: Bisect{}},
		},
		"the bad comment alone": {
			with(sendingCell(OpCreate), func(c *Cell) { c.Intent.Ref.Kind, c.Intent.Remarks = SurfaceReview, "aa" }),
			Failed{Failure{Class: Refused, Reason: ReasonUnprocessable}},
			at0,
			want{state: StateEnded, reason: "refused_unprocessable"},
		},
		"a review that GitHub never came to": {
			with(sendingCell(OpCreate), func(c *Cell) {
				c.Intent.Ref.Kind, c.Intent.Remarks, c.Intent.Attempts = SurfaceReview, "aa,bb", 3
			}),
			LookedUp{},
			later,
			want{state: StateEnded, reason: ReasonUnanswered, effect: Bisect{}},
		},
		"a comment that GitHub never came to": {
			with(sendingCell(OpCreate), func(c *Cell) {
				c.Intent.Ref.Kind, c.Intent.Remarks, c.Intent.Attempts = SurfaceReview, "aa", 3
			}),
			LookedUp{},
			later,
			want{state: StateEnded, reason: ReasonUnanswered},
		},
		"a review in a locked conversation": {
			with(sendingCell(OpCreate), func(c *Cell) { c.Intent.Ref.Kind, c.Intent.Remarks = SurfaceReview, "aa,bb" }),
			Failed{Failure{Class: Refused, Reason: "FORBIDDEN"}},
			at0,
			want{state: StateEnded, reason: "refused_forbidden"},
		},
		"a commit that is not known yet": {
			with(sendingCell(OpCreate), func(c *Cell) { c.Intent.Ref.Kind = SurfaceReview }),
			Failed{Failure{Class: Refused, Reason: ReasonCommitUnknown}},
			at0,
			want{state: StatePending, after: time.Second},
		},
		"a check run without the permission": {
			with(sendingCell(OpCreate), func(c *Cell) { c.Intent.Ref.Kind, c.Intent.Attempts = SurfaceCheckRun, 3 }),
			Failed{Failure{Class: Refused, Reason: ReasonNotPermitted}},
			at0,
			want{state: StateEnded, reason: "refused_not_permitted", effect: FallBack{}},
		},
		"taking a check run back without the permission": {
			with(sendingCell(OpEdit), func(c *Cell) {
				c.Intent.Ref.Kind, c.Intent.Attempts, c.Intent.Rank = SurfaceCheckRun, 3, RankTakeBack
			}),
			Failed{Failure{Class: Refused, Reason: ReasonNotPermitted}},
			at0,
			want{state: StateEnded, reason: "refused_not_permitted", id: 9},
		},
		"what an older database forgot is written over": {
			pendingCell(),
			LookedUp{Found: &Found{ID: 5, At: Position{1, 9, 0}}, Last: Position{1, 2, 7}},
			at0,
			want{state: StatePending, id: 5},
		},
		"what a later epoch shows is not": {
			pendingCell(),
			LookedUp{Found: &Found{ID: 5, At: Position{1, 3, 0}}, Last: Position{1, 3, 0}},
			at0,
			want{state: StateEnded, reason: ReasonSuperseded, id: 5},
		},
		"ended stays ended": {
			with(pendingCell(), func(c *Cell) { c.Intent.State = StateConfirmed }),
			Retried{},
			at0,
			want{state: StateConfirmed, err: ErrIntentEnded},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, effects, err := DefaultRules.Apply(tt.cell, tt.ev, tt.now)
			if !errors.Is(err, tt.want.err) {
				t.Fatalf("error %v, want %v", err, tt.want.err)
			}
			have := want{state: got.Intent.State, reason: got.Intent.Reason, id: got.Surface.GitHubID, err: tt.want.err}
			if len(effects) > 0 {
				have.effect = effects[0]
			}
			if !got.Intent.Ended() {
				have.after = got.Intent.Available.Sub(tt.now)
			}
			if diff := cmp.Diff(tt.want, have, cmp.AllowUnexported(want{}), cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWhatStaysOpen: progress of a check run, and a review, until they are taken back.
func TestWhatStaysOpen(t *testing.T) {
	t.Parallel()
	gone := with(sendingCell(OpEdit), func(c *Cell) { c.Surface.Open, c.Intent.Rank = true, RankTakeBack })
	if got, _, err := DefaultRules.Apply(gone, Failed{Failure{Class: Gone}}, at0); err != nil || got.Surface.Open {
		t.Errorf("what is gone is open: %+v, %v", got.Surface, err)
	}
	tests := map[string]struct {
		surface SurfaceKind
		kind    Kind
		rank    Rank
		want    bool
	}{
		"progress":                {SurfaceCheckRun, KindInProgress, RankCheckRun, true},
		"progress as a status":    {SurfaceStatus, KindQueued, RankStatus, true},
		"a result's check run":    {SurfaceCheckRun, KindResult, RankCheckRun, false},
		"a review":                {SurfaceReview, KindResult, RankReview, true},
		"a review, taken back":    {SurfaceReview, KindResult, RankTakeBack, false},
		"a check run, taken back": {SurfaceCheckRun, KindInProgress, RankTakeBack, false},
		"a comment":               {SurfaceSummary, KindResult, RankSummary, false},
		"a remark that is fixed":  {SurfaceRemark, KindResult, RankRemark, false},
	}
	for name, tt := range tests {
		c := with(sendingCell(OpEdit), func(c *Cell) {
			c.Intent.Ref.Kind, c.Intent.Kind, c.Intent.Rank, c.Surface.Ref.Kind, c.Surface.Open = tt.surface, tt.kind, tt.rank, tt.surface, !tt.want
		})
		got, _, err := DefaultRules.Apply(c, Answered{Placed{ID: 9}}, at0)
		if err != nil || got.Surface.Open != tt.want {
			t.Errorf("%s: open %t, %v", name, got.Surface.Open, err)
		}
	}
}

// TestWhatIsTooManyIsSoonRemoved, also where it was there before the write.
func TestWhatIsTooManyIsSoonRemoved(t *testing.T) {
	t.Parallel()
	c, _, err := DefaultRules.Apply(pendingCell(), LookedUp{Found: &Found{ID: 5, At: Position{1, 1, 0}, Extra: 1}}, at0)
	if err == nil {
		c, _, err = DefaultRules.Apply(c, Sent{Op: OpEdit}, at0)
	}
	if err == nil {
		c, _, err = DefaultRules.Apply(c, Answered{Placed{ID: 5}}, at0)
	}
	if err != nil || !c.Surface.CheckAt.Equal(at0.Add(20*time.Second)) {
		t.Errorf("looked at again at %s, %v", c.Surface.CheckAt, err)
	}
}

// TestWhatIsNeverMade: what takes something back, or says that it is fixed, only ever edits.
// An App that may not write check runs may not list them either: the status comes instead as well.
func TestCheckRunsThatMayNotBeListed(t *testing.T) {
	t.Parallel()
	forbidden := Failure{Class: Refused, Reason: ReasonNotPermitted}
	for name, tc := range map[string]struct {
		kind SurfaceKind
		ev   Delayed
		want []Effect
	}{
		"the check runs themselves":        {SurfaceCheckRun, Delayed{Failure: forbidden, Own: true}, []Effect{FallBack{}}},
		"what has to be asked before":      {SurfaceCheckRun, Delayed{Failure: forbidden}, nil},
		"comments, and nothing is as good": {SurfaceSummary, Delayed{Failure: forbidden, Own: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := with(pendingCell(), func(c *Cell) {
				c.Intent.Ref.Kind, c.Intent.Rank, c.Intent.Holds = tc.kind, RankCheckRun, believed-1
			})
			got, effects, err := DefaultRules.Apply(c, tc.ev, at0)
			if err != nil || got.Intent.State != StateEnded || !cmp.Equal(effects, tc.want) {
				t.Errorf("%s with %v, %v", got.Intent.State, effects, err)
			}
		})
	}
}

// A creation that was not answered, and is not seen after its grace, may show up later: what another epoch makes in
// its place is looked at soon, too.
func TestWhatWasNotSeenMayShowUp(t *testing.T) {
	t.Parallel()
	now := at0.Add(DefaultRules.Grace)
	lost, _, err := DefaultRules.Apply(sendingCell(OpCreate), LookedUp{}, now)
	if err != nil {
		t.Fatal(err)
	}
	next := with(sendingCell(OpCreate), func(c *Cell) { c.Surface, c.Intent.At = lost.Surface, Position{1, 3, 0} })
	next, _, err = DefaultRules.Apply(next, Answered{Placed{ID: 5}}, now)
	if err != nil || next.Surface.Checks != looksUnsure || !next.Surface.CheckAt.Equal(now.Add(20*time.Second)) {
		t.Errorf("%d looks, the first at %s: %v", next.Surface.Checks, next.Surface.CheckAt, err)
	}
}

func TestWhatIsNeverMade(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		surface SurfaceKind
		kind    Kind
		rank    Rank
		want    Step
	}{
		"a result's comment":            {SurfaceSummary, KindResult, RankSummary, StepCreate},
		"a comment that takes back":     {SurfaceSummary, KindSuperseded, RankSummary, StepNothing},
		"a check run that was skipped":  {SurfaceCheckRun, KindOverBudget, RankCheckRun, StepCreate},
		"a check run that is gone":      {SurfaceCheckRun, KindResult, RankTakeBack, StepNothing},
		"a remark that is gone":         {SurfaceRemark, KindResult, RankRemark, StepNothing},
		"a review that was taken back":  {SurfaceReview, KindSuperseded, RankTakeBack, StepNothing},
		"a review":                      {SurfaceReview, KindResult, RankReview, StepCreate},
		"the reaction to a command":     {SurfaceReaction, KindReply, RankReaction, StepCreate},
		"progress that nobody saw made": {SurfaceCheckRun, KindQueued, RankCheckRun, StepCreate},
	}
	for name, tt := range tests {
		c := with(pendingCell(), func(c *Cell) {
			c.Intent.Ref.Kind, c.Intent.Kind, c.Intent.Rank, c.Absent = tt.surface, tt.kind, tt.rank, true
		})
		if got := DefaultRules.Next(c, at0); got != tt.want {
			t.Errorf("%s: step %d, want %d", name, got, tt.want)
		}
	}
}

func TestPublication(t *testing.T) {
	t.Parallel()
	summary := func(s State, reason string) Cell {
		return Cell{Intent: Intent{Ref: Ref{Kind: SurfaceSummary}, State: s, Reason: reason, GitHubID: 1, URL: "u"}}
	}
	check := func(s State, reason string) Cell {
		return Cell{Intent: Intent{Ref: Ref{Kind: SurfaceCheckRun}, State: s, Reason: reason, GitHubID: 2}}
	}
	review := func(s State, reason string) Cell {
		return Cell{Intent: Intent{Ref: Ref{Kind: SurfaceReview}, Rank: RankReview, State: s, Reason: reason}}
	}
	status := Cell{Intent: Intent{Ref: Ref{Kind: SurfaceStatus}, Rank: RankStatus, State: StateConfirmed}}
	back := Cell{Intent: Intent{Ref: Ref{Kind: SurfaceCheckRun}, Rank: RankTakeBack, State: StateConfirmed, GitHubID: 9}}
	tests := map[string]struct {
		cells     []Cell
		delivered bool
		reason    string
	}{
		"both":                      {[]Cell{summary(StateConfirmed, ""), check(StateConfirmed, "")}, true, ""},
		"the comment alone":         {[]Cell{summary(StateConfirmed, ""), check(StateEnded, "refused_forbidden")}, true, "refused_forbidden"},
		"the check run alone":       {[]Cell{summary(StateEnded, "refused_forbidden"), check(StateConfirmed, "")}, false, "refused_forbidden"},
		"no comment to change":      {[]Cell{summary(StateEnded, ReasonNothing), check(StateConfirmed, "")}, true, ReasonNothing},
		"nothing to take back":      {[]Cell{summary(StateEnded, ReasonNothing)}, false, ReasonNothing},
		"what is taken back beside": {[]Cell{summary(StateEnded, ReasonNothing), back}, false, ReasonNothing},
		"nothing new to say":        {[]Cell{review(StateEnded, ReasonNothingNew), summary(StateConfirmed, "")}, true, ""},
		"no comment, nothing new":   {[]Cell{review(StateEnded, ReasonNothingNew)}, true, ""},
		"a review in halves":        {[]Cell{review(StateEnded, "refused_unprocessable"), review(StateConfirmed, "")}, true, "refused_unprocessable"},
		"a status instead":          {[]Cell{check(StateEnded, "refused_not_permitted"), status}, true, "refused_not_permitted"},
		"the comment, not the review": {
			[]Cell{review(StateConfirmed, ""), summary(StateEnded, "refused_forbidden")},
			false, "refused_forbidden",
		},
		"superseded before it began": {[]Cell{summary(StateEnded, ReasonSuperseded), check(StateEnded, ReasonSuperseded)}, false, ReasonSuperseded},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Work{Cells: tt.cells}.Publication()
			if got.Delivered != tt.delivered || got.Reason != tt.reason {
				t.Errorf("got %+v, want delivered %t, reason %q", got, tt.delivered, tt.reason)
			}
		})
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	for n, want := range []time.Duration{time.Minute, time.Minute, 2 * time.Minute, 4 * time.Minute} {
		if got := (Failure{}).Pause(n); got != want {
			t.Errorf("the %d. pause is %s, want %s", n, got, want)
		}
	}
	if got := (Failure{}).Pause(100); got != time.Hour {
		t.Errorf("the longest pause is %s", got)
	}
	if got := (Failure{RetryAfter: 7 * time.Second}).Pause(9); got != 7*time.Second {
		t.Errorf("GitHub said 7 s, the pause is %s", got)
	}
}
