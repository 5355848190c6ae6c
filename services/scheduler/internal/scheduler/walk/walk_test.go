// Package walk plays seeded histories over the scheduler's pure rules: a pull request that moves,
// messages that get lost, doubled and late, workers that die, a publisher. Whatever happened, once
// the faults stop it must come to rest with the current head reviewed and the page showing it.
package walk

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	seeds = flag.Uint64("walk.seeds", 1000, "how many histories to play")
	seed  = flag.Uint64("walk.seed", 0, "play this history alone, and tell it")
)

func TestWalk(t *testing.T) {
	t.Parallel()
	if *seed != 0 {
		steps := history(*seed)
		story, err := tell(steps)
		t.Logf("seed %d, %d steps:\n%s", *seed, len(steps), story)
		if err != nil {
			report(t, *seed, steps)
		}
		return
	}
	var total tally
	for s := uint64(1); s <= *seeds; s++ {
		w, err := play(history(s), false)
		if err != nil {
			report(t, s, history(s))
			return
		}
		total.add(w)
	}
	t.Logf("%d histories: %s", *seeds, total)
	total.check(t, *seeds)
}

// report shrinks a failing history and tells what is left of it.
func report(t *testing.T, seed uint64, steps []step) {
	t.Helper()
	steps = shrink(steps)
	story, err := tell(steps)
	t.Fatalf("seed %d fails: %v\nits story, shrunk to %d steps (play it whole with -walk.seed=%d):\n%s",
		seed, err, len(steps), seed, story)
}

// history is a seed's list of steps. Each bears its own dice, so that dropping one leaves the others
// as they were. Storms, in which everything moves at once, take turns with calms, in which reviews
// get done.
func history(seed uint64) []step {
	rng := rand.New(rand.NewPCG(seed, 0x5eed))
	var steps []step
	for range 2 + rng.IntN(30) {
		bag, gap := bagOf(stormy), stormyGap
		if rng.IntN(3) > 0 {
			bag, gap = bagOf(calm), calmGap
		}
		for range 20 + rng.IntN(80) {
			steps = append(steps, step{op: bag[rng.IntN(len(bag))], dice: rng.Uint64(), gap: gap(rng)})
		}
	}
	return steps
}

// bagOf holds every op as often as its weight says.
func bagOf(weights []int) []op {
	var bag []op
	for o, weight := range weights {
		bag = append(bag, slices.Repeat([]op{op(o)}, weight)...)
	}
	return bag
}

// stormyGap is mostly short, so that things happen at once.
func stormyGap(rng *rand.Rand) time.Duration {
	if rng.IntN(10) == 0 {
		return time.Duration(rng.IntN(60)) * time.Second
	}
	return time.Duration(rng.IntN(1500)) * time.Millisecond
}

// calmGap is mostly some seconds; sometimes longer than a lease.
func calmGap(rng *rand.Rand) time.Duration {
	if rng.IntN(150) == 0 {
		return time.Duration(rng.IntN(20)) * time.Minute
	}
	return time.Duration(rng.IntN(3500)) * time.Millisecond
}

// play runs a history through its faults and to its rest. What breaks a promise panics with a
// broken.
func play(steps []step, telling bool) (w *world, err error) {
	w = newWorld(telling)
	defer func() {
		switch p := recover().(type) {
		case nil:
		case broken:
			err = p
		default:
			panic(p)
		}
	}()
	for _, s := range steps {
		w.now = w.now.Add(s.gap)
		w.take(s)
	}
	w.rest()
	return w, nil
}

func tell(steps []step) (string, error) {
	w, err := play(steps, true)
	return strings.Join(w.story, "\n"), err
}

// shrink drops steps and loads dice for as long as what is left still fails.
func shrink(steps []step) []step {
	for range 4 {
		before := len(steps)
		steps = loadDice(dropSteps(steps))
		if len(steps) == before {
			break
		}
	}
	return steps
}

func fails(steps []step) bool {
	_, err := play(steps, false)
	return err != nil
}

// dropSteps drops ever smaller pieces.
func dropSteps(steps []step) []step {
	for size := len(steps) / 2; size > 0; {
		dropped := false
		for at := 0; at+size <= len(steps); {
			if shorter := slices.Delete(slices.Clone(steps), at, at+size); fails(shorter) {
				steps, dropped = shorter, true
			} else {
				at += size
			}
		}
		if !dropped || size > 1 {
			size /= 2
		}
	}
	return steps
}

// loadDice lets each step roll what every other rolls, so that steps stop depending on what was
// dropped before them.
func loadDice(steps []step) []step {
	for i := range steps {
		for dice := range uint64(4) {
			loaded := slices.Clone(steps)
			loaded[i].dice = dice
			if fails(loaded) {
				steps = loaded
				break
			}
		}
	}
	return steps
}

// broken is a promise that was not kept.
type broken string

func (b broken) Error() string { return string(b) }

func breaks(format string, args ...any) { panic(broken(fmt.Sprintf(format, args...))) }

// tally shows that the histories went where they were meant to go.
type tally struct {
	counts
	histories int
}

func (c *tally) add(w *world) {
	c.histories++
	for name, n := range w.counts {
		if c.counts == nil {
			c.counts = counts{}
		}
		c.counts[name] += n
	}
}

func (c tally) String() string {
	names := make([]string, 0, len(c.counts))
	for name, n := range c.counts {
		names = append(names, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// check fails a walk that has stopped meeting what it is about.
func (c tally) check(t *testing.T, seeds uint64) {
	t.Helper()
	if seeds < 100 {
		return
	}
	for _, name := range []string{
		"accepted", "adopted", "already_seen", "coalesced", "fenced", "lapsed", "over_budget",
		"read_believed", "read_lags", "refused", "released", "reused", "skipped", "superseded",
		"lifecycle_ended", "engine starts", "cancelled", "answers lost", "publications",
		"queued", "in_progress",
	} {
		if c.counts[name] == 0 {
			t.Errorf("no history met %q", name)
		}
	}
}
