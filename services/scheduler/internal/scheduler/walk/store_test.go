package walk

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// store is the scheduler around the rules: it loads, decides, saves, and keeps what has to leave.
type store struct {
	world  *world
	rules  scheduler.Rules
	target scheduler.Target
	runs   map[scheduler.RunID]scheduler.Run
	known  map[scheduler.ActivityID]bool
	asked  []scheduler.RequestID

	outbox   []message
	keys     map[string]string // of every message ever enqueued, with its digest
	rings    []scheduler.Ring
	lastRing time.Time // the latest moment a ring was enqueued for
	lastTold position
	answered map[scheduler.RequestID]int
	reruns   map[scheduler.RequestID]bool
	receipts map[scheduler.RunID]int
	wants    bool // something that wasn't dry came since the last decision
}

// message is on its way to another service, in no order.
type message struct {
	key     string
	deliver func()
}

func newStore(w *world) *store {
	rules := scheduler.Defaults()
	rules.Retention = 2 * time.Hour
	return &store{
		world: w, rules: rules, runs: map[scheduler.RunID]scheduler.Run{},
		target: scheduler.NewTarget(scheduler.TargetID(w.id()), scheduler.TenantID(w.id()), identity, w.now),
		known:  map[scheduler.ActivityID]bool{}, keys: map[string]string{},
		answered: map[scheduler.RequestID]int{}, reruns: map[scheduler.RequestID]bool{}, receipts: map[scheduler.RunID]int{},
	}
}

// save is the transaction's second half.
func (s *store) save(next scheduler.Target, e scheduler.Effects) {
	last := s.target
	s.target = next
	for _, run := range e.Runs {
		s.checkRun(run)
		s.runs[run.ID] = run
	}
	for _, d := range e.Decisions {
		s.world.counts[string(d.Kind)]++
		s.world.say("  decision: %s %s (generation %d, epoch %d)", d.Kind, d.Reason, d.Generation, d.Epoch)
	}
	s.checkDecisions(e)
	for _, r := range e.Rings {
		s.enqueue(r.Key(), r, nil)
		s.rings = append(s.rings, r)
		s.lastRing = r.At
	}
	for _, r := range e.Receipts {
		s.receipts[r.Run]++
		s.enqueue(r.Key(), r, nil)
	}
	if p := e.Publish; p != nil {
		s.enqueue(p.Key(), *p, func() { s.world.publisher.receive(*p) })
	}
	if p := e.Progress; p != nil {
		s.checkProgress(last, next, *p)
		s.enqueue(p.Key(), *p, func() { s.world.publisher.receiveProgress(*p) })
	}
	if p := e.Purge; p != nil {
		s.purge(*p)
	}
	s.check(last, next)
}

// enqueue refuses one key with two meanings, as the outbox does.
func (s *store) enqueue(key string, payload any, deliver func()) {
	digest := fmt.Sprintf("%+v", payload)
	if was, ok := s.keys[key]; ok && was != digest {
		breaks("outbox key %s means two things:\n  %s\n  %s", key, was, digest)
	}
	s.keys[key] = digest
	if deliver != nil {
		s.outbox = append(s.outbox, message{key, deliver})
	}
}

// record folds an activity in, once.
func (s *store) record(a scheduler.Activity) {
	if s.known[a.ID] {
		s.world.say("%s comes again", a.ID)
		return
	}
	s.known[a.ID] = true
	s.world.say("%s is heard: %s %s onto %s", a.ID, a.Hint.State, a.Hint.Head, a.Hint.BaseRef)
	next, e := s.rules.Record(s.target, a, s.world.now)
	s.wants = s.wants || next.Generation > s.target.Generation && !a.Request.Dry
	s.save(next, e)
}

// ring wakes a worker with one of the rings whose time has come, which may get lost instead.
func (s *store) ring() {
	due := slices.IndexFunc(s.rings, func(r scheduler.Ring) bool { return !r.At.After(s.world.now) })
	if due < 0 {
		return
	}
	s.rings = slices.Delete(s.rings, due, due+1)
	if !s.world.chance(5) {
		s.world.reviewer.claim()
	}
}

// dispatch hands one message over, perhaps to be handed over again.
func (s *store) dispatch(doubled bool) {
	if len(s.outbox) == 0 {
		return
	}
	i := s.world.roll(len(s.outbox))
	m := s.outbox[i]
	if !doubled {
		s.outbox = slices.Delete(s.outbox, i, i+1)
	}
	m.deliver()
}

// claim gives the target out where it may be claimed.
func (s *store) claim(worker string) (scheduler.Fence, bool) {
	if s.target.Claim.Lapsed(s.world.now) {
		s.world.say("the claim of %s is found lapsed", s.target.Claim.Worker)
		s.save(s.rules.Lapse(s.target, s.world.now))
	}
	next, err := s.rules.Claim(s.target, scheduler.ClaimID(s.world.id()), worker, false, s.world.now)
	if err != nil {
		return scheduler.Fence{}, false
	}
	s.save(next, scheduler.Effects{})
	s.world.say("%s claims generation %d", worker, next.Generation)
	return next.Fence(), true
}

// lookup is what the store would load beside the target.
func (s *store) lookup(head string) []scheduler.Run {
	var found []scheduler.Run
	for _, r := range s.runs {
		if r.HeadSHA == head || slices.Contains([]scheduler.RunID{s.target.InWork, s.target.Claim.Run, s.target.LastEnd.Run}, r.ID) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b scheduler.Run) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return found
}

func (s *store) resolve(f scheduler.Fence, in scheduler.Reading) (scheduler.Resolution, scheduler.Fence) {
	last := s.target
	next, res, e, err := s.rules.Resolve(s.target, f, in, s.lookup(in.Head), scheduler.RunID(s.world.id()), s.world.now)
	if err != nil {
		breaks("resolve: %v", err)
	}
	s.save(next, e)
	s.fenced(last, next, f, e, res.Refused)
	if res.Answer == scheduler.AnswerReview && len(e.Decisions) > 0 {
		s.checkGiven(res.Run)
	}
	return res, next.Fence()
}

func (s *store) commit(f scheduler.Fence, o scheduler.Outcome) scheduler.Commitment {
	last := s.target
	next, c, e, err := s.rules.Commit(s.target, f, s.runs[f.Run], o, s.world.now)
	if err != nil {
		breaks("commit: %v", err)
	}
	s.save(next, e)
	s.fenced(last, next, f, e, c.Refused)
	return c
}

func (s *store) release(f scheduler.Fence, why scheduler.ReleaseReason) error {
	last := s.target
	next, e, refused := s.rules.Release(s.target, f, why, "", 0, s.world.now)
	s.save(next, e)
	s.fenced(last, next, f, e, refused)
	return refused
}

func (s *store) renew(f scheduler.Fence) (scheduler.Renewal, error) {
	next, renewal, err := s.rules.Renew(s.target, f.Claim, s.world.now)
	if err == nil {
		s.save(next, scheduler.Effects{})
	}
	return renewal, err
}

// start is the renewal right before the engine is called.
func (s *store) start(f scheduler.Fence) (scheduler.Renewal, error) {
	next, renewal, e, err := s.rules.Start(s.target, f.Claim, s.runs[s.target.Claim.Run], s.world.now)
	if err == nil {
		s.save(next, e)
	}
	return renewal, err
}

// retire ends the lifecycle where it may end.
func (s *store) retire() {
	if next, e, err := s.rules.EndLifecycle(s.target, false, s.world.now); err == nil {
		s.world.say("lifecycle %d ends", s.target.Lifecycle)
		s.save(next, e)
	}
}

func (s *store) purge(p scheduler.Purge) {
	maps.DeleteFunc(s.runs, func(_ scheduler.RunID, r scheduler.Run) bool { return r.Lifecycle <= p.Lifecycle })
}
