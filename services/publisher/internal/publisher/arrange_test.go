package publisher

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// shown is an epoch of a run at a head, with cells for its own surfaces.
func shown(kind Kind, epoch int64, run byte, head string) Work {
	e := Epoch{At: Position{Lifecycle: 1, Epoch: epoch}, Kind: kind, Run: &Run{ID: RunID{run}, HeadSHA: head, BaseRef: "main"}}
	if kind.Progress() {
		e.At.Step = ProgressStep(epoch, kind)
	}
	w := Work{Epoch: e}
	for _, ref := range e.Refs() {
		w.Cells = append(w.Cells, Cell{
			Intent:  Intent{Ref: ref, Rank: RankOf(ref), At: e.At, Kind: kind, Run: e.Run.ID, State: StatePending},
			Surface: Surface{Ref: ref},
		})
	}
	return w
}

func checkOf(run byte, head string) Ref {
	return Ref{Kind: SurfaceCheckRun, Key: head + ":" + RunID{run}.String()}
}

func reviewOf(run byte) Ref { return Ref{Kind: SurfaceReview, Key: RunID{run}.String()} }

func TestTakeBacks(t *testing.T) {
	t.Parallel()
	open := func(r Ref, epoch int64) Surface {
		return Surface{Ref: r, GitHubID: 1, Open: true, Shown: Position{Lifecycle: 1, Epoch: epoch}}
	}
	status := Ref{Kind: SurfaceStatus, Key: "old"}
	tests := map[string]struct {
		work Work
		open Surface
		want bool
	}{
		"a result, another head's check run":        {shown(KindResult, 2, 2, "new"), open(checkOf(1, "old"), 1), true},
		"a result, its own check run":               {shown(KindResult, 2, 2, "new"), open(checkOf(2, "new"), 1), false},
		"a result, another run's of its head":       {shown(KindResult, 2, 2, "new"), open(checkOf(1, "new"), 1), true},
		"a result, another run's review":            {shown(KindResult, 2, 2, "new"), open(reviewOf(1), 1), true},
		"a result, its own run's review":            {shown(KindResult, 2, 1, "old"), open(reviewOf(1), 1), false},
		"a result, a part of its own run's review":  {shown(KindResult, 2, 1, "old"), open(Ref{SurfaceReview, RunID{1}.String() + "/1.2"}, 1), false},
		"superseded, the run's own review":          {shown(KindSuperseded, 2, 1, "old"), open(reviewOf(1), 1), true},
		"superseded, the run's own check run":       {shown(KindSuperseded, 2, 1, "old"), open(checkOf(1, "old"), 1), true},
		"progress, another head's check run":        {shown(KindQueued, 2, 2, "new"), open(checkOf(1, "old"), 1), true},
		"progress, its own check run":               {shown(KindInProgress, 2, 2, "new"), open(checkOf(2, "new"), 1), false},
		"progress, a review":                        {shown(KindInProgress, 2, 2, "new"), open(reviewOf(1), 1), false},
		"over budget, another head's commit status": {shown(KindOverBudget, 2, 2, "new"), open(status, 1), true},
		"what a later epoch shows":                  {shown(KindSkipped, 2, 2, "new"), open(checkOf(1, "old"), 3), false},
		"what is not there":                         {shown(KindResult, 2, 2, "new"), Surface{Ref: checkOf(1, "old"), Open: true}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tt.work.Arrange(Plan{}, []Surface{tt.open})
			if (len(got) == 1 && got[0].Rank == RankTakeBack) != tt.want || len(got) > 1 {
				t.Errorf("%+v, want it taken back: %t", got, tt.want)
			}
			if tt.want { // once
				tt.work.Cells = append(tt.work.Cells, Cell{Intent: Intent{Ref: tt.open.Ref, Rank: RankTakeBack}})
				if again := tt.work.Arrange(Plan{}, []Surface{tt.open}); len(again) != 0 {
					t.Errorf("taken back twice: %+v", again)
				}
			}
		})
	}
}

// TestConcludes: what is open of the epoch's own run on a surface that its project does not choose ends with it.
func TestConcludes(t *testing.T) {
	t.Parallel()
	open := []Surface{
		{Ref: checkOf(1, "head"), GitHubID: 1, Open: true}, {Ref: Ref{Kind: SurfaceStatus, Key: "head"}, GitHubID: 2, Open: true},
	}
	for kind, want := range map[Kind]int{KindResult: 2, KindRefused: 2, KindOverBudget: 2, KindQueued: 0, KindInProgress: 0} {
		w := shown(kind, 2, 1, "head")
		w.Cells = nil
		got := w.Arrange(Plan{}, open)
		for _, d := range got {
			if d.Rank != RankOf(d.Surface.Ref) {
				t.Errorf("%s: %s is written at rank %d", kind, d.Surface.Kind, d.Rank)
			}
		}
		if len(got) != want {
			t.Errorf("%s concludes %d, want %d", kind, len(got), want)
		}
	}
}

func TestArrangeReview(t *testing.T) {
	t.Parallel()
	say := Plan{Say: []Said{{Fingerprint: "aa"}, {Fingerprint: "bb"}}}
	part := Ref{SurfaceReview, RunID{1}.String() + "/3.1"}
	tests := map[string]struct {
		plan     Plan
		id       int64
		open     bool
		remarks  Fingerprints
		wantPart Fingerprints
		wantDrop bool
	}{
		"new, with something to say":       {plan: say},
		"new, with nothing to say":         {wantDrop: true},
		"there and current":                {id: 1, open: true, wantDrop: true},
		"there and current, with more":     {plan: say, id: 1, open: true, wantPart: "aa,bb", wantDrop: true},
		"there and taken back":             {id: 1},
		"there and taken back, with more":  {plan: say, id: 1, wantPart: "aa,bb"},
		"tried, and what it said is known": {plan: Plan{Say: say.Say[:1]}, remarks: "bb", wantDrop: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := shown(KindResult, 3, 1, "head")
			w.Cells[0].Surface.GitHubID, w.Cells[0].Surface.Open, w.Cells[0].Intent.Remarks = tt.id, tt.open, tt.remarks
			add, drop := w.ArrangeReview(tt.plan)
			var got Fingerprints
			if len(add) == 1 && add[0].Surface.Ref == part {
				got = add[0].Remarks
			}
			if got != tt.wantPart || len(add) > 1 || drop != tt.wantDrop {
				t.Errorf("%+v, dropped %t", add, drop)
			}
		})
	}
}

// TestHalves: whatever GitHub takes or refuses, halving ends, every remark is tried until it is taken or stands alone,
// and no part has the key of another.
func TestHalves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfNDistinct(rapid.StringMatching(`[0-9a-f]{4}`), 1, 40, rapid.ID[string]).Draw(t, "remarks")
		bad := map[string]bool{}
		for _, f := range all {
			bad[f] = rapid.IntRange(0, 5).Draw(t, "dice") == 0
		}
		w := shown(KindResult, 3, 1, "head")
		w.Cells = w.Cells[:1]
		w.Cells[0].Intent.Remarks = JoinFingerprints(all)
		plan := Plan{}
		for _, f := range all {
			plan.Say = append(plan.Say, Said{Fingerprint: f})
		}
		for n := 0; n < len(w.Cells); n++ {
			i := &w.Cells[n].Intent
			says := i.Remarks.List()
			i.State = StateConfirmed
			if !slices.ContainsFunc(says, func(f string) bool { return bad[f] }) {
				continue
			}
			i.State, i.Reason = StateEnded, "refused_unprocessable"
			if len(says) == 1 {
				continue
			}
			for _, d := range w.Halves(*i) {
				if w.cell(d.Surface.Ref) != nil {
					t.Fatalf("two parts are %s", d.Surface.Ref.Key)
				}
				w.Cells = append(w.Cells, Cell{Intent: Intent{Ref: d.Surface.Ref, Rank: d.Rank, Remarks: d.Remarks, State: StatePending}})
			}
		}
		settled := w.Settled(plan)
		var said, unplaced []string
		for _, f := range all {
			if bad[f] {
				unplaced = append(unplaced, f)
			} else {
				said = append(said, f)
			}
		}
		if diff := cmp.Diff(JoinFingerprints(said), settled.Fingerprints()); diff != "" {
			t.Fatal(diff)
		}
		if len(settled.Unplaced) != len(unplaced) {
			t.Fatalf("%d could not be placed, want %d", len(settled.Unplaced), len(unplaced))
		}
	})
}

func TestFixedAreMarkedThirtyAnEpoch(t *testing.T) {
	t.Parallel()
	w := shown(KindResult, 3, 1, "head")
	var plan Plan
	for n := range 40 {
		plan.Fixed = append(plan.Fixed, Remark{ID: int64(n + 1), Fingerprint: string(rune('a' + n))})
	}
	plan.Fixed[1].Fingerprint = plan.Fixed[0].Fingerprint // a duplicate
	got := w.Arrange(plan, nil)
	if len(got) != 30 || got[0].Surface.GitHubID != 1 || got[1].Surface.GitHubID != 3 {
		t.Fatalf("%d are marked", len(got))
	}
	for _, d := range got {
		w.Cells = append(w.Cells, Cell{Intent: Intent{Ref: d.Surface.Ref, Rank: RankRemark, State: StateConfirmed}})
	}
	if again := w.Arrange(plan, nil); len(again) != 0 {
		t.Errorf("%d more in the same epoch", len(again))
	}
	if n := len(w.Settled(Plan{}).Fixed); n != 30 {
		t.Errorf("%d count as fixed once they are marked", n)
	}
	if got := shown(KindSkipped, 4, 1, "head").Arrange(plan, nil); len(got) != 0 {
		t.Error("an epoch without a review marks remarks")
	}
}

// TestWhatIsWrittenFirst: review, comment, check run; take-backs wait for nothing.
func TestWhatIsWrittenFirst(t *testing.T) {
	t.Parallel()
	w := shown(KindResult, 2, 2, "new")
	w.Cells = append(w.Cells,
		Cell{Intent: Intent{Ref: checkOf(1, "old"), Rank: RankTakeBack, State: StatePending}, Surface: Surface{GitHubID: 1}},
		Cell{Intent: Intent{Ref: Ref{SurfaceReview, "part"}, Rank: RankReview, State: StatePending}})
	var got []SurfaceKind
	for {
		c := w.Ready(DefaultRules, at0)
		if c == nil {
			break
		}
		got = append(got, c.Intent.Ref.Kind)
		c.Intent.State = StateConfirmed
	}
	want := []SurfaceKind{SurfaceReview, SurfaceReview, SurfaceSummary, SurfaceCheckRun, SurfaceStatus, SurfaceCheckRun}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	w = shown(KindResult, 2, 2, "new")
	w.Cells[0].Intent.Available = at0.Add(time.Minute)
	if c := w.Ready(DefaultRules, at0); c != nil {
		t.Errorf("%s goes before the review", c.Intent.Ref.Kind)
	}
	if until, waits := w.Waits(w.Cells[2].Intent); !waits || !until.Equal(at0.Add(time.Minute)) {
		t.Errorf("the check run waits until %s", until)
	}
}

func TestLatest(t *testing.T) {
	t.Parallel()
	at := func(w Work, last Position) Work { w.Last = last; return w }
	one, two := shown(KindResult, 1, 1, "a"), shown(KindSuperseded, 2, 1, "a")
	queued, begun := shown(KindQueued, 2, 2, "b"), shown(KindInProgress, 2, 2, "b")
	tests := map[string]struct {
		works          []Work
		last, progress int
	}{
		"two epochs":                       {[]Work{one, two}, 1, -1},
		"progress alone":                   {[]Work{at(queued, queued.Epoch.At)}, -1, 0},
		"progress after its epoch":         {[]Work{one, two, at(queued, begun.Epoch.At), at(begun, begun.Epoch.At)}, 1, 3},
		"progress before an epoch":         {[]Work{at(queued, Position{1, 3, 0}), shown(KindResult, 3, 2, "b")}, 1, -1},
		"progress before an epoch that is": {[]Work{at(begun, Position{1, 3, 0})}, -1, -1},
	}
	for name, tt := range tests {
		if last, progress := Latest(tt.works); last != tt.last || progress != tt.progress {
			t.Errorf("%s: %d and %d, want %d and %d", name, last, progress, tt.last, tt.progress)
		}
	}
}

func TestOverlay(t *testing.T) {
	t.Parallel()
	loaded := []Surface{{Ref: checkOf(1, "a"), GitHubID: 1, Open: true}, {Ref: reviewOf(1), GitHubID: 2, Open: true}}
	known := map[Ref]Surface{
		checkOf(1, "a"): {Ref: checkOf(1, "a"), GitHubID: 1},
		checkOf(2, "b"): {Ref: checkOf(2, "b"), GitHubID: 3, Open: true},
	}
	var got []int64
	for _, s := range Overlay(loaded, known) {
		got = append(got, s.GitHubID)
	}
	if !slices.Equal(got, []int64{3, 2}) {
		t.Errorf("open are %v, want the new check run and the review", got)
	}
}
