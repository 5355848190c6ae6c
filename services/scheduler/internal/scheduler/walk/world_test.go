package walk

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// op is what one step of a history does. What it finds nothing to do with, it leaves alone.
type op int

const (
	opPush op = iota
	opPushBack
	opRetarget
	opCloseOrReopen
	opDraftOrReady
	opEdit
	opBaseMoves
	opDeliver
	opLose
	opRequest
	opReplay
	opSweep
	opRing
	opLoseRings
	opScan
	opWork
	opCrash
	opStop
	opResume
	opOutbox
	opPublish
	opMoney
	opRetention
)

// How often an op comes up.
var (
	stormy = []int{
		opPush: 6, opPushBack: 4, opRetarget: 1, opCloseOrReopen: 2, opDraftOrReady: 2, opEdit: 2, opBaseMoves: 2,
		opDeliver: 16, opLose: 2, opRequest: 2, opReplay: 1, opSweep: 1,
		opRing: 9, opLoseRings: 1, opScan: 3, opWork: 40, opCrash: 2, opStop: 2, opResume: 3,
		opOutbox: 14, opPublish: 14, opMoney: 1, opRetention: 0,
	}
	calm = []int{
		opPush: 2, opPushBack: 1, opRetarget: 0, opCloseOrReopen: 1, opDraftOrReady: 1, opEdit: 2, opBaseMoves: 3,
		opDeliver: 20, opLose: 1, opRequest: 2, opReplay: 1, opSweep: 1,
		opRing: 20, opLoseRings: 1, opScan: 12, opWork: 150, opCrash: 2, opStop: 1, opResume: 8,
		opOutbox: 40, opPublish: 40, opMoney: 1, opRetention: 1,
	}
)

type step struct {
	op   op
	dice uint64
	gap  time.Duration
}

type counts map[string]int

// world is everything that a history moves.
type world struct {
	now    time.Time
	faulty bool // until rest
	dice   uint64
	ids    uint64

	github    github
	inbox     []scheduler.Activity // on their way to the scheduler, in no order
	scheduler *store
	reviewer  *reviewer
	publisher *publisher

	counts  counts
	telling bool
	story   []string
}

func newWorld(telling bool) *world {
	w := &world{
		now: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC), faulty: true,
		counts: counts{}, telling: telling,
	}
	w.scheduler = newStore(w)
	w.reviewer = newReviewer(w)
	w.publisher = &publisher{world: w, intents: map[position]*intent{}, checks: map[scheduler.RunID]position{}}
	w.github.open(w)
	return w
}

// say adds a line to the story.
func (w *world) say(format string, args ...any) {
	if w.telling {
		w.story = append(w.story, w.now.Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

// roll takes one of n from the step's dice, which each roll turns on.
func (w *world) roll(n int) int {
	w.dice = w.dice*6364136223846793005 + 1442695040888963407
	return int((w.dice >> 33) % uint64(n))
}

// chance is true once in n, and never once the faults have stopped.
func (w *world) chance(n int) bool { return w.roll(n) == 0 && w.faulty }

// id is a new identity.
func (w *world) id() (id [16]byte) {
	w.ids++
	binary.BigEndian.PutUint64(id[8:], w.ids)
	return id
}

func (w *world) take(s step) {
	w.dice = s.dice
	switch s.op {
	case opPush, opPushBack, opRetarget, opCloseOrReopen, opDraftOrReady, opEdit, opBaseMoves:
		w.github.change(w, s.op)
	case opDeliver:
		w.deliver(w.chance(6))
	case opLose:
		if len(w.inbox) > 0 {
			w.lose(w.roll(len(w.inbox)))
		}
	case opRequest:
		w.request()
	case opReplay:
		w.inbox = append(w.inbox, w.github.activity(w, scheduler.CauseReplay, w.github.seen(w)))
	case opSweep:
		w.sweep()
	case opRing:
		w.scheduler.ring()
	case opLoseRings:
		w.scheduler.rings = nil
	case opScan:
		w.reviewer.claim()
	case opWork:
		for who, more := w.roll(len(w.reviewer.workers)), true; more; more = w.roll(2) == 0 {
			w.reviewer.work(who)
		}
	case opCrash:
		w.reviewer.crash(w.roll(len(w.reviewer.workers)))
	case opStop, opResume:
		w.reviewer.workers[w.roll(len(w.reviewer.workers))].stopped = s.op == opStop
	case opOutbox:
		w.scheduler.dispatch(w.chance(6))
	case opPublish:
		w.publisher.work()
	case opMoney:
		w.reviewer.broke = !w.reviewer.broke
	case opRetention:
		w.now = w.now.Add(time.Duration(w.roll(4)) * time.Hour)
		w.scheduler.retire()
	}
}

// deliver hands one activity over, perhaps to be handed over again.
func (w *world) deliver(doubled bool) {
	if len(w.inbox) == 0 {
		return
	}
	i := w.roll(len(w.inbox))
	a := w.inbox[i]
	if !doubled {
		w.inbox = append(w.inbox[:i:i], w.inbox[i+1:]...)
	}
	w.scheduler.record(a)
}

// lose drops a delivery or a sweep: a replay or a request is a row before anyone is told.
func (w *world) lose(i int) {
	if a := w.inbox[i]; a.Cause == scheduler.CauseWebhook || a.Cause == scheduler.CauseSweep {
		w.say("lost: %s", a.ID)
		w.inbox = append(w.inbox[:i:i], w.inbox[i+1:]...)
	}
}

func (w *world) request() {
	id := scheduler.RequestID(fmt.Sprintf("request-%d", w.next()))
	ask := scheduler.Request{ID: id, Dry: w.roll(2) == 0, Rerun: w.roll(3) == 0}
	w.say("%s asks for a review: dry %t, re-run %t", id, ask.Dry, ask.Rerun)
	w.scheduler.asked = append(w.scheduler.asked, id)
	w.scheduler.reruns[id] = ask.Rerun
	w.inbox = append(w.inbox, scheduler.Activity{
		ID: scheduler.ActivityID(id), Cause: scheduler.CauseRequest, Request: ask, PullRequest: identity,
	})
}

// sweep looks at GitHub without being told to, which heals what was lost.
func (w *world) sweep() {
	w.inbox = append(w.inbox, w.github.activity(w, scheduler.CauseSweep, w.github.seen(w)))
}

func (w *world) next() uint64 { w.ids++; return w.ids }
