package walk

import (
	"time"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// phase is what a worker does next.
type phase int

const (
	idle phase = iota
	reading
	resolving
	preparing // adopt, or reserve, renew and start
	running   // the engine
	committing
	releasing
)

// worker is a slot that may die, or stop for as long as it likes and go on where it was.
type worker struct {
	name    string
	phase   phase
	stopped bool
	fence   scheduler.Fence
	read    scheduler.Reading
	run     scheduler.Run
	attempt *attempt
	ends    time.Time // of the engine
	outcome scheduler.Outcome
	reason  scheduler.ReleaseReason
	lost    any // the answer that didn't arrive, to hold the next one to
}

// attempt is a row of the reviewer.
type attempt struct {
	id       scheduler.AttemptID
	run      scheduler.RunID
	work     work
	claim    scheduler.ClaimID
	numbered bool // cancelled ones have given their number back
	state    string
}

// work is what an attempt may be adopted for: one diff and ordinal.
type work struct {
	lifecycle       scheduler.Lifecycle
	mergeBase, head string
	ordinal         int
}

// maxAttempts per run are few, so that histories run out of them.
const maxAttempts = 2

type reviewer struct {
	world    *world
	workers  []*worker
	attempts []*attempt
	broke    bool // the ledger holds nothing
}

func newReviewer(w *world) *reviewer {
	return &reviewer{world: w, workers: []*worker{{name: "worker a"}, {name: "worker b"}}}
}

// claim lets the first free worker ask for work.
func (r *reviewer) claim() {
	for _, k := range r.workers {
		if k.phase != idle || k.stopped {
			continue
		}
		fence, ok := r.world.scheduler.claim(k.name)
		if ok && !r.lost(k, "claim", nil) { // if lost, the claim stands, and nobody knows
			*k = worker{name: k.name, phase: reading, fence: fence}
		}
		return
	}
}

func (r *reviewer) crash(i int) {
	if k := r.workers[i]; k.phase != idle {
		r.world.say("%s crashes", k.name)
		*k = worker{name: k.name, stopped: k.stopped}
	}
}

// lost says that the answer to a call doesn't arrive, so that the worker has to ask again.
func (r *reviewer) lost(k *worker, call string, answer any) bool {
	if k.lost != nil && k.lost != answer && r.remembered(k) {
		breaks("%s asked again for its %s and got %+v, not %+v", k.name, call, answer, k.lost)
	}
	k.lost = nil
	if !r.world.chance(8) {
		return false
	}
	k.lost = answer
	r.world.counts["answers lost"]++
	r.world.say("%s loses the answer to its %s", k.name, call)
	return true
}

// remembered says that no other claim has ended since the call took effect, so that its answer can
// still be known.
func (r *reviewer) remembered(k *worker) bool {
	t := r.world.scheduler.target
	return t.Claim.ID == k.fence.Claim || t.LastEnd.Claim == k.fence.Claim && t.LastEnd.Call != "lapse"
}

// work takes a worker one step further. Nothing here looks at a clock before it writes: that a
// worker has lost its claim is for the fence to say.
func (r *reviewer) work(i int) {
	k := r.workers[i]
	if k.stopped {
		return
	}
	switch k.phase {
	case idle:
	case reading:
		k.read = r.world.github.reading(r.world.github.seen(r.world))
		k.phase = resolving
		r.world.say("%s reads: %s %s onto %s", k.name, k.read.State, k.read.Head, k.read.BaseRef)
	case resolving:
		r.resolve(k)
	case preparing:
		r.prepare(k)
	case running:
		r.attend(k)
	case committing:
		r.commit(k)
	case releasing:
		r.world.say("%s releases: %s", k.name, k.reason)
		if refused := r.world.scheduler.release(k.fence, k.reason); !r.lost(k, "release", scheduler.Reason(refused)) {
			k.phase = idle
		}
	}
}

func (r *reviewer) resolve(k *worker) {
	res, fence := r.world.scheduler.resolve(k.fence, k.read)
	if r.lost(k, "resolve", [4]any{res.Answer, res.Run.ID, res.Reason, res.Refused}) {
		return
	}
	k.phase = idle
	if res.Refused == nil && res.Answer == scheduler.AnswerReview {
		fence.Claim, fence.Run, fence.Generation = k.fence.Claim, res.Run.ID, k.fence.Generation
		k.fence, k.run, k.phase = fence, res.Run, preparing
		r.world.say("%s is to review %s on %s, ordinal %d", k.name, k.run.HeadSHA, k.run.BaseSHA, k.run.Ordinal)
	}
}

// prepare adopts a finished attempt, or starts one that is paid for.
func (r *reviewer) prepare(k *worker) {
	job := work{k.run.Lifecycle, k.run.MergeBase, k.run.HeadSHA, k.run.Ordinal}
	used := 0
	for _, a := range r.attempts {
		if a.work == job && a.state == "finished" {
			r.world.counts["adopted"]++
			r.world.say("%s adopts a finished attempt", k.name)
			r.end(k, a, true)
			return
		}
		if a.work == job && a.state == "started" && a.claim != k.fence.Claim {
			a.state = "expired"
		}
		if a.run == k.run.ID && a.numbered {
			used++
		}
	}
	switch {
	case used >= maxAttempts:
		k.outcome = scheduler.Outcome{Refused: &scheduler.Refused{Reason: "attempts_exhausted"}}
		k.phase = committing
	case r.broke && r.world.faulty:
		k.outcome = scheduler.Outcome{OverBudget: &scheduler.OverBudget{Reason: "no_credit"}}
		k.phase = committing
	case r.world.chance(12):
		k.phase, k.reason = releasing, scheduler.ReleaseDependencyAway
	default:
		r.start(k, job)
	}
}

// start proves the claim and pays. A worker whose proof's answer is lost proves it again.
func (r *reviewer) start(k *worker, job work) {
	renewal, err := r.world.scheduler.start(k.fence)
	switch {
	case err != nil:
		r.world.say("%s may not start: %v", k.name, err)
		k.phase = idle
		return
	case renewal.CancelRequested:
		k.phase, k.reason = releasing, scheduler.ReleaseCancelled
		return
	case r.world.chance(8):
		return
	}
	k.attempt = &attempt{
		id: scheduler.AttemptID(r.world.id()), run: k.run.ID, work: job, claim: k.fence.Claim, numbered: true, state: "started",
	}
	r.attempts = append(r.attempts, k.attempt)
	r.world.counts["engine starts"]++
	k.ends = r.world.now.Add(time.Duration(r.world.roll(40)) * time.Second)
	k.phase = running
	r.world.say("%s starts the engine, until %s", k.name, k.ends.Format("15:04:05"))
}

// attend renews, and ends the attempt when the engine ends or the target has moved.
func (r *reviewer) attend(k *worker) {
	renewal, err := r.world.scheduler.renew(k.fence)
	switch {
	case err != nil && r.world.now.Before(k.ends):
		// The engine goes on to its end; whether its result counts is for the fence to say.
	case renewal.CancelRequested && k.attempt.state == "started":
		r.world.counts["cancelled"]++
		r.world.say("%s cancels", k.name)
		k.attempt.state, k.attempt.numbered = "cancelled", false
		k.phase, k.reason = releasing, scheduler.ReleaseCancelled
	case r.world.now.Before(k.ends):
	case k.attempt.state != "started":
		r.world.say("%s finds its attempt %s", k.name, k.attempt.state)
		k.phase = idle
	case r.world.chance(4):
		k.attempt.state = "failed"
		k.phase, k.reason = releasing, scheduler.ReleaseAttemptFailed
	default:
		k.attempt.state = "finished"
		r.world.say("%s has finished", k.name)
		r.end(k, k.attempt, false)
	}
}

// end turns a finished attempt into an outcome.
func (r *reviewer) end(k *worker, a *attempt, adopted bool) {
	k.outcome = scheduler.Outcome{Accepted: &scheduler.Result{
		Attempt: a.id, Verdict: scheduler.VerdictClean, Engine: "model", Adopted: adopted,
	}}
	k.phase = committing
}

func (r *reviewer) commit(k *worker) {
	r.world.say("%s commits", k.name)
	if c := r.world.scheduler.commit(k.fence, k.outcome); !r.lost(k, "commit", c) {
		k.phase = idle
	}
}
