package walk

import (
	"slices"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

// intent is one epoch to be put on the page.
type intent struct {
	scheduler.Publish
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
	intents map[scheduler.Epoch]*intent
	page    page
}

// receive records an epoch, once.
func (p *publisher) receive(m scheduler.Publish) {
	if p.intents[m.Epoch] == nil {
		p.intents[m.Epoch] = &intent{Publish: m}
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
	slices.SortFunc(open, func(a, b *intent) int { return int(a.Epoch - b.Epoch) })
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
	currency, _ := target.CheckCurrent(i.Lifecycle, i.Epoch, nil, p.world.now)
	switch currency {
	case scheduler.Superseded:
		i.done = true
	case scheduler.Wait:
	case scheduler.Current:
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

// send writes the page, unless a higher epoch has, and reports through the outbox.
func (p *publisher) send(i *intent) {
	if p.page.epoch <= i.Epoch {
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
