package walk

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// position orders what goes to the page: progress comes after its epoch.
type position struct {
	epoch scheduler.Epoch
	step  int64 // 0: the epoch itself
}

func positionOf(p scheduler.Progress) position {
	step := 2 * int64(p.Generation)
	if p.State == scheduler.ProgressStarted {
		step++
	}
	return position{p.Epoch, step}
}

func (p position) after(other position) bool {
	return p.epoch > other.epoch || p.epoch == other.epoch && p.step > other.step
}

// intent is one epoch to be put on the page, or the progress of a run that follows it.
type intent struct {
	scheduler.Publish
	at      position
	checked bool // current, and read so: the send may start
	done    bool
}

// page is what the pull request shows.
type page struct {
	epoch scheduler.Epoch
	kind  scheduler.PageKind
	run   scheduler.RunID
	head  string
	base  string
}

type publisher struct {
	world   *world
	intents map[position]*intent
	page    page
	checks  map[scheduler.RunID]position // those that stand open
}

// receive records an epoch, once.
func (p *publisher) receive(m scheduler.Publish) {
	at := position{epoch: m.Epoch}
	if p.intents[at] == nil {
		p.intents[at] = &intent{Publish: m, at: at}
	}
}

// receiveProgress records what a run's check run should say until there is more to say.
func (p *publisher) receiveProgress(m scheduler.Progress) {
	at := positionOf(m)
	if p.intents[at] == nil {
		p.intents[at] = &intent{Publish: scheduler.Publish{Lifecycle: m.Lifecycle, Epoch: m.Epoch, Run: m.Run}, at: at}
	}
}

// open are the epochs still to be sent.
func (p *publisher) open() []*intent {
	var open []*intent
	for _, i := range p.intents {
		if !i.done {
			open = append(open, i)
		}
	}
	slices.SortFunc(open, func(a, b *intent) int {
		return cmp.Or(cmp.Compare(a.at.epoch, b.at.epoch), cmp.Compare(a.at.step, b.at.step))
	})
	return open
}

// work takes one intent one step further: the check and the send are two steps, between which
// anything may happen.
func (p *publisher) work() {
	open := p.open()
	if len(open) == 0 {
		return
	}
	i := open[p.world.roll(len(open))]
	if i.checked {
		p.send(i)
		return
	}
	target := p.world.scheduler.target
	check := scheduler.Check{Lifecycle: i.Lifecycle, Epoch: i.Epoch}
	if i.at.step > 0 {
		check.Progress = i.Run.ID
	}
	currency, _ := target.CheckCurrent(check, nil, p.world.now)
	switch currency {
	case scheduler.Superseded:
		i.done = true
	case scheduler.Wait:
		if i.at.step > 0 {
			breaks("progress that nothing holds up has to wait: %+v", i)
		}
	case scheduler.Current:
		if i.at.step > 0 && (i.Run.ID != target.InWork || i.Run.HeadSHA != target.Hint.Head) {
			breaks("progress %+v is current, and %+v is heard", i, target.Hint)
		}
		if i.Page.Kind == scheduler.PageResult && target.Generation != target.Resolved {
			breaks("a result is current that doesn't answer what was heard")
		}
		i.checked = i.Page.Kind != scheduler.PageResult || p.confirmed(i)
	}
}

// confirmed reads GitHub for an epoch that shows a result, and reports a read that differs.
func (p *publisher) confirmed(i *intent) bool {
	seen := p.world.github.seen(p.world)
	if seen.Content == (scheduler.Content{State: scheduler.StateOpen, Head: i.Page.Head, BaseRef: i.Page.BaseRef}) {
		return true
	}
	p.world.say("the publisher reads %s %s onto %s, not epoch %d's", seen.State, seen.Head, seen.BaseRef, i.Epoch)
	p.world.inbox = append(p.world.inbox, p.world.github.activity(p.world, scheduler.CauseSweep, seen))
	return false
}

// send writes the page, unless something later has, and reports an epoch through the outbox.
func (p *publisher) send(i *intent) {
	if i.at.step > 0 {
		p.sendProgress(i)
		return
	}
	if p.page.epoch <= i.Epoch {
		p.conclude(i.at) // its own run's check run, too
		p.page = page{i.Epoch, i.Page.Kind, i.Page.Run, i.Page.Head, i.Page.BaseRef}
		p.world.counts["publications"]++
		p.world.say("the page says: epoch %d, %s of %s", i.Epoch, i.Page.Kind, i.Page.Head)
	}
	if p.world.chance(10) {
		i.checked = false // killed after the write: it is looked up and found later
		return
	}
	i.done = true
	s := p.world.scheduler
	s.outbox = append(s.outbox, message{"publication", func() {
		s.save(s.target.RecordPublication(scheduler.Publication{
			Lifecycle: i.Lifecycle, Epoch: i.Epoch, Delivery: scheduler.DeliveryDelivered,
		}, s.runs[s.target.Page.Run], s.world.now))
	}})
}

// conclude ends the check runs that are older than what is sent.
func (p *publisher) conclude(by position) {
	maps.DeleteFunc(p.checks, func(_ scheduler.RunID, at position) bool { return by.after(at) })
}

// sendProgress opens a run's check run, and concludes every other.
func (p *publisher) sendProgress(i *intent) {
	if p.page.epoch <= i.Epoch && !p.checks[i.Run.ID].after(i.at) {
		p.conclude(i.at)
		p.checks[i.Run.ID] = i.at
		p.world.say("the page says: a run of %s goes on (epoch %d, step %d)", i.Run.HeadSHA, i.at.epoch, i.at.step)
	}
	i.done = !p.world.chance(10)
	i.checked = i.done
}
