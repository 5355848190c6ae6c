package githubsim

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// faultSet holds the faults that are set, in the order they were set in.
type faultSet struct {
	mu   sync.Mutex
	last int
	set  []*loaded
}

// loaded is a fault with the dice that its seed loads.
type loaded struct {
	control.Fault
	dice *rand.Rand
}

// misses rolls the dice of a fault that hits only a part of the requests.
func (f *loaded) misses() bool { return f.Probability > 0 && f.dice.Float64() >= f.Probability }

// effects is what all faults that hit a request do to it together: delays add up, of the rest the first wins.
type effects struct {
	ids   []string
	delay time.Duration
	fail  *control.ErrorFault
	limit *control.LimitFault
	lose  control.Loss
	hide  *control.HideFault
	stale *control.StaleFault
	token *control.TokenFault
}

func (f *faultSet) add(in control.Fault) control.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	in.ID = fmt.Sprintf("fault-%d", f.last)
	f.set = append(f.set, &loaded{in, rand.New(rand.NewPCG(in.Seed, in.Seed))})
	return in
}

func (f *faultSet) list() []control.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]control.Fault, 0, len(f.set))
	for _, one := range f.set {
		out = append(out, one.Fault)
	}
	return out
}

// remove drops the faults that match and reports how many they were.
func (f *faultSet) remove(match func(*control.Fault) bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.set)
	f.set = slices.DeleteFunc(f.set, func(one *loaded) bool { return match(&one.Fault) })
	return before - len(f.set)
}

// match finds the faults that hit a request and counts it against them.
func (f *faultSet) match(c *call) effects {
	f.mu.Lock()
	defer f.mu.Unlock()
	var hit effects
	f.set = slices.DeleteFunc(f.set, func(one *loaded) bool {
		if !matches(&one.Fault, c) {
			return false
		}
		if one.Skip > 0 {
			one.Skip--
			return false
		}
		if one.misses() {
			return false
		}
		hit.add(&one.Fault)
		if one.Times > 0 {
			one.Times--
			return one.Times == 0
		}
		return false
	})
	return hit
}

func matches(f *control.Fault, c *call) bool {
	read := c.r.Method == http.MethodGet || c.r.Method == http.MethodHead
	switch f.Class {
	case control.Everything:
	case control.Reads:
		if !read {
			return false
		}
	case control.Writes:
		// Minting a token writes nothing that anyone could see.
		if read || c.class() == "tokens.create" {
			return false
		}
	default:
		if f.Class != c.class() {
			return false
		}
	}
	if f.Repository != 0 && (c.repo == nil || c.repo.id != f.Repository) {
		return false
	}
	return f.Installation == 0 || f.Installation == c.installation()
}

func (e *effects) add(f *control.Fault) {
	e.ids = append(e.ids, f.ID)
	e.delay += time.Duration(f.Delay)
	if e.fail == nil {
		e.fail = f.Error
	}
	if e.limit == nil {
		e.limit = f.Limit
	}
	if e.lose == "" {
		e.lose = f.Lose
	}
	if e.hide == nil {
		e.hide = f.Hide
	}
	if e.stale == nil {
		e.stale = f.Stale
	}
	if e.token == nil {
		e.token = f.Token
	}
}

// limited is a rate limit's answer.
func limited(l control.LimitFault, c *call) reply {
	c.limited = true
	status := l.Status
	if status == 0 {
		status = http.StatusForbidden
	}
	h := http.Header{}
	if l.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(l.RetryAfter))
	}
	const page = docs + "/overview/rate-limits-for-the-rest-api"
	rep := refuse(status, tooMuch, page+"#about-secondary-rate-limits")
	if !l.Secondary {
		rep = refuse(status, fmt.Sprintf("API rate limit exceeded for installation ID %d.", c.installation()), page)
		reset := l.Reset
		if reset == 0 {
			reset = 60
		}
		h.Set("X-RateLimit-Remaining", "0")
		h.Set("X-RateLimit-Reset", strconv.FormatInt(c.now.Add(time.Duration(reset)*time.Second).Unix(), 10))
	}
	rep.header = h
	return rep
}
