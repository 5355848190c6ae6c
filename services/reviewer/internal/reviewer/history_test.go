package reviewer

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is one target with its runs as the store keeps it: what is saved, and what was sent to the
// ledger.
type world struct {
	t        *rapid.T
	now      time.Time
	attempts []Attempt
	sent     map[string]Effects
	live     ClaimID // the claim that the scheduler would renew
	claims   byte
}

const limit = 3

func (w *world) send(e Effects) {
	note := func(key string, e Effects) {
		if _, twice := w.sent[key]; twice {
			w.t.Fatalf("message %s leaves twice", key)
		}
		w.sent[key] = e
	}
	if e.Settle != nil {
		note(e.Settle.Key(), e)
	}
	if e.Void != nil {
		note(e.Void.Key(), e)
	}
}

func (w *world) save(before, after Attempt, e Effects, err error) {
	if err != nil {
		if after != before || e != (Effects{}) {
			w.t.Fatalf("a refusal changed something: %v: %+v -> %+v", err, before, after)
		}
		return
	}
	if !before.Open() && before.State != after.State {
		w.t.Fatalf("an end was undone: %s -> %s", before.State, after.State)
	}
	for i := range w.attempts {
		if w.attempts[i].ID == after.ID {
			w.attempts[i] = after
		}
	}
	w.send(e)
}

func (w *world) pick(t *rapid.T) (Attempt, bool) {
	if len(w.attempts) == 0 {
		return Attempt{}, false
	}
	return w.attempts[rapid.IntRange(0, len(w.attempts)-1).Draw(t, "attempt")], true
}

func (w *world) with(t *rapid.T, do func(a Attempt) (Attempt, Effects, error)) {
	if a, ok := w.pick(t); ok {
		after, e, err := do(a)
		w.save(a, after, e, err)
	}
}

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"claim and open": func(t *rapid.T) {
			w.claims++
			w.live = ClaimID{w.claims}
			run := rapid.SampledFrom([]string{"A", "B"}).Draw(t, "head")
			q := Ask{
				Attempt: AttemptID{w.claims}, Fence: Fence{Target: TargetID{1}, Claim: w.live}, Lease: time.Minute, Reserve: 100, MaxPerRun: limit,
				Run: Run{ID: RunID{run[0]}, HeadSHA: run, MergeBase: "mb", Lifecycle: 1},
			}
			if o := q.Open(w.attempts); o.Kind == OpenFresh {
				o.Attempt.CreatedAt, o.Attempt.LeaseUntil = w.now, w.now.Add(q.Lease)
				w.attempts = append(w.attempts, o.Attempt)
			}
		},
		// A start comes after a renewal, so that its claim was alive once its row was there; but it may have
		// slept since, and another claim be the live one by now.
		"start": func(t *rapid.T) {
			a, ok := w.pick(t)
			if !ok {
				return
			}
			started, closed, err := a.Start(a.Claim, w.attempts, limit, time.Minute, w.now)
			if err != nil {
				return
			}
			for _, c := range closed {
				if c.Attempt.Claim == w.live {
					t.Fatalf("the live claim's attempt was closed as an orphan by %s", a.Claim)
				}
				i := slices.IndexFunc(w.attempts, func(o Attempt) bool { return o.ID == c.Attempt.ID })
				w.save(w.attempts[i], c.Attempt, c.Effects, nil)
			}
			w.save(a, started, Effects{}, nil)
		},
		"finish": func(t *rapid.T) {
			cost := Micros(rapid.IntRange(0, 150).Draw(t, "cost"))
			w.with(t, func(a Attempt) (Attempt, Effects, error) { return a.Finish(a.Claim, Report{Cost: cost}, w.now) })
		},
		"close": func(t *rapid.T) {
			end := End{
				Kind: rapid.SampledFrom([]EndKind{EndFailed, EndCancelled, EndVoided}).Draw(t, "kind"), Held: rapid.Bool().Draw(t, "held"),
				Spent: Spent{Cost: 10, Known: rapid.Bool().Draw(t, "known")},
			}
			w.with(t, func(a Attempt) (Attempt, Effects, error) { return a.Close(a.Claim, end, w.now) })
		},
		"reap": func(t *rapid.T) {
			w.with(t, func(a Attempt) (Attempt, Effects, error) { return a.Reap(time.Second, w.now) })
		},
		"": func(t *rapid.T) {
			w.check()
		},
		"wait": func(t *rapid.T) {
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
		},
	}
}

// check holds what is true after every step.
func (w *world) check() {
	running := 0
	numbers := make(map[RunID][]int)
	for _, a := range w.attempts {
		if a.State == StateStarted {
			running++
		}
		if a.Number > 0 {
			numbers[a.Run] = append(numbers[a.Run], a.Number)
		}
		w.checkMoney(a)
	}
	if running > 1 {
		w.t.Fatalf("%d engines at work on one target", running)
	}
	for run, used := range numbers {
		slices.Sort(used)
		if len(used) > limit || len(slices.Compact(used)) != len(numbers[run]) || used[0] < 1 || used[len(used)-1] > limit {
			w.t.Fatalf("numbers %v of run %s", used, run)
		}
	}
}

// checkMoney says that what ended is settled or voided, and what did not is neither.
func (w *world) checkMoney(a Attempt) {
	final, known := w.sent[Settle{Attempt: a.ID}.Key()]
	_, guess := w.sent[Settle{Attempt: a.ID, Estimate: true}.Key()]
	_, void := w.sent[Void{Attempt: a.ID}.Key()]
	switch a.State {
	case StateCreated, StateStarted:
		if known || guess || void {
			w.t.Fatalf("an open attempt is settled: %+v", a)
		}
	case StateVoided:
		if known || guess {
			w.t.Fatalf("an attempt that never started is settled: %+v", a)
		}
	case StateFinished, StateFailed, StateCancelled, StateExpired:
		if void || !known && !guess {
			w.t.Fatalf("a started attempt is not settled: %+v", a)
		}
		if known && final.Settle.Amount != a.Cost || !known && (a.Cost != a.Reserved || !a.Estimate) {
			w.t.Fatalf("settled otherwise than recorded: %+v, %+v", a, final.Settle)
		}
	}
}

func TestHistoriesOfAttempts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, now: t0, sent: make(map[string]Effects)}
		t.Repeat(w.actions())
	})
}
