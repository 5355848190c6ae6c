package walk

import (
	"time"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

const (
	scan     = 30 * time.Second
	sweeps   = 10 * time.Minute
	restless = 12 * time.Hour // what has not come to rest by then never does
)

// rest stops the faults and lets everything run until nothing is left to do, a sweep included.
func (w *world) rest() {
	w.faulty, w.dice = false, 1
	w.say("the faults stop")
	for _, k := range w.reviewer.workers {
		k.stopped = false
	}
	end := w.now.Add(restless)
	for swept := false; !swept || !w.still(); {
		if w.now.After(end) {
			breaks("not at rest after %s: %+v", restless, w.scheduler.target)
		}
		w.settle()
		if w.still() || w.now.Unix()%int64(sweeps/time.Second) < int64(scan/time.Second) {
			w.sweep()
			w.settle()
			swept = true
		}
		w.now = w.now.Add(scan)
		w.reviewer.claim()
	}
	w.checkRest()
}

// settle lets everyone do what can be done without waiting.
func (w *world) settle() {
	for len(w.inbox) > 0 {
		w.deliver(false)
	}
	for range 12 { // enough for the longest way from a claim to its end
		for i := range w.reviewer.workers {
			w.reviewer.work(i)
		}
	}
	for range 4 { // message, check, send, report
		for len(w.scheduler.outbox) > 0 {
			w.scheduler.dispatch(false)
		}
		for range w.publisher.open() {
			w.publisher.work()
		}
	}
}

// still says that nothing is under way.
func (w *world) still() bool {
	t := w.scheduler.target
	if t.Due() || t.Claim.Held() || len(w.inbox)+len(w.scheduler.outbox)+len(w.publisher.open()) > 0 {
		return false
	}
	for _, k := range w.reviewer.workers {
		if k.phase != idle {
			return false
		}
	}
	return true
}

// checkRest holds the end of a history to what was promised.
func (w *world) checkRest() {
	t, now, shown := w.scheduler.target, w.github.now(), w.publisher.page
	if t.Generation != t.Resolved || len(t.Requests) > 0 || !t.InWork.IsZero() {
		breaks("at rest with work left: %+v", t)
	}
	if t.Read.Content != now.Content {
		breaks("at rest on %+v, and GitHub has %+v", t.Read.Content, now.Content)
	}
	if t.Page.Delivery == scheduler.DeliveryPending || shown.epoch != t.Epoch || shown.kind != t.Page.Kind || shown.run != t.Page.Run {
		breaks("epoch %d should say %+v, and the page shows %+v", t.Epoch, t.Page, shown)
	}
	if len(w.publisher.checks) > 0 {
		breaks("at rest, and a check run stands open: %v", w.publisher.checks)
	}
	current := shown.head == now.Head && shown.base == now.BaseRef
	if now.State == scheduler.StateOpen {
		w.checkShown(current)
	} else if !current && (shown.kind == scheduler.PageResult || shown.kind == scheduler.PageRefused) {
		breaks("the page shows %+v of a comparison that is gone: %+v", shown, now.Content)
	}
	for _, id := range w.scheduler.asked {
		if n := w.scheduler.answered[id]; n != 1 {
			breaks("%s was answered %d times", id, n)
		}
	}
	for _, a := range w.reviewer.attempts {
		if w.scheduler.receipts[a.run] == 0 {
			breaks("the ledger was never told how run %s ended", a.run)
		}
	}
	w.reviewer.checkPaid()
}

// checkShown holds an open pull request to showing the current head's result, or why it has none.
func (w *world) checkShown(current bool) {
	shown := w.publisher.page
	run, ok := w.scheduler.runs[shown.run]
	switch {
	case !ok || !current:
		breaks("%+v is open, and the page shows %+v", w.github.now().Content, shown)
	case shown.kind == scheduler.PageResult && run.State == scheduler.RunDone && run.Delivery == scheduler.DeliveryDelivered:
	case shown.kind == scheduler.PageRefused && run.State == scheduler.RunRefused:
	default:
		breaks("the page shows %+v of %+v", shown, run)
	}
}
