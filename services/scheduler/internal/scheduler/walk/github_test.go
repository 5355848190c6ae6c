package walk

import (
	"fmt"
	"time"

	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

var identity = scheduler.PullRequest{
	Host: "github.example", Installation: 7, Repository: 42, FullName: "acme/widgets", Number: 12,
}

// pull is a pull request at one moment.
type pull struct {
	scheduler.Content
	before    string
	updatedAt time.Time // whole seconds, as GitHub's
	since     time.Time
}

// github is a repository with one pull request, and its past, which replicas may still show.
type github struct {
	past  []pull
	heads []string
	tips  map[string]int // commits on each base branch
}

func (g *github) open(w *world) {
	g.tips = map[string]int{"main": 1, "next": 1}
	g.heads = []string{"h1"}
	g.set(w, pull{Content: scheduler.Content{State: scheduler.StateOpen, Head: "h1", BaseRef: "main"}}, "opened")
}

func (g *github) now() pull { return g.past[len(g.past)-1] }

// set changes the pull request and sends the webhook.
func (g *github) set(w *world, p pull, event string) {
	p.updatedAt, p.since = w.now.Truncate(time.Second), w.now
	g.past = append(g.past, p)
	a := g.activity(w, scheduler.CauseWebhook, p)
	w.say("GitHub: %s: %s %s onto %s (%s)", event, p.State, p.Head, p.BaseRef, a.ID)
	w.inbox = append(w.inbox, a)
	if w.chance(8) {
		w.lose(len(w.inbox) - 1)
	}
}

// change is one thing that people do.
func (g *github) change(w *world, o op) {
	p := g.now()
	was := p
	p.before = ""
	event := ""
	if was.State == scheduler.StateOpen && (o == opCloseOrReopen || o == opDraftOrReady) && w.roll(3) > 0 {
		return // most of the time there is something to review
	}
	switch o {
	case opPush:
		g.heads = append(g.heads, fmt.Sprintf("h%d", len(g.heads)+1))
		p.Head, p.before, event = g.heads[len(g.heads)-1], was.Head, "push"
	case opPushBack:
		p.Head, p.before, event = g.heads[w.roll(len(g.heads))], was.Head, "push back"
	case opRetarget:
		p.BaseRef, event = map[string]string{"main": "next", "next": "main"}[p.BaseRef], "retarget"
	case opCloseOrReopen:
		p.State, event = scheduler.StateClosed, "close"
		if was.State == scheduler.StateClosed {
			p.State, event = scheduler.StateOpen, "reopen"
		}
	case opDraftOrReady:
		if was.State == scheduler.StateClosed {
			return
		}
		p.State, event = scheduler.StateDraft, "to draft"
		if was.State == scheduler.StateDraft {
			p.State, event = scheduler.StateOpen, "ready"
		}
	case opEdit:
		event = "edit the title"
	case opBaseMoves:
		g.tips[p.BaseRef]++
		w.say("GitHub: %s moves to %d, and nobody is told", p.BaseRef, g.tips[p.BaseRef])
		return
	default:
		return
	}
	if o == opPushBack && p.Head == was.Head {
		return
	}
	g.set(w, p, event)
}

// seen is what a read finds: the present, or the past of up to 40 s where a replica lags, or a 404
// where the pull request is younger than that.
func (g *github) seen(w *world) pull {
	if !w.chance(4) {
		return g.now()
	}
	asOf := w.now.Add(-time.Duration(w.roll(40)) * time.Second)
	found := pull{Content: scheduler.Content{State: scheduler.StateGone}}
	for _, p := range g.past {
		if !p.since.After(asOf) {
			found = p
		}
	}
	return found
}

// reading is what a worker makes of a read.
func (g *github) reading(p pull) scheduler.Reading {
	if p.State == scheduler.StateGone {
		return scheduler.Reading{Content: p.Content}
	}
	return scheduler.Reading{
		Content: p.Content, UpdatedAt: p.updatedAt,
		BaseSHA:   fmt.Sprintf("%s@%d", p.BaseRef, g.tips[p.BaseRef]),
		MergeBase: fmt.Sprintf("fork of %s from %s", p.Head, p.BaseRef),
	}
}

// activity is what ingest makes of a payload or a read.
func (g *github) activity(w *world, cause scheduler.Cause, p pull) scheduler.Activity {
	return scheduler.Activity{
		ID: scheduler.ActivityID(fmt.Sprintf("%s-%d", cause, w.next())), Cause: cause, PullRequest: identity,
		Hint: scheduler.Hint{Content: p.Content, Before: p.before, UpdatedAt: p.updatedAt},
	}
}
