package githubsim

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// limiter counts what each installation asks for. The App's own calls (JWT) count as installation 0.
type limiter struct {
	mu   sync.Mutex
	max  control.Limits
	used map[int64]*usage
}

// usage is one installation's counters. The primary limit has an hour that begins with the first request; the
// secondary ones look back from now.
type usage struct {
	hour     time.Time // when it ends
	requests int
	spent    []spending  // of the last minute
	created  []time.Time // of the last hour
	running  int
}

type spending struct {
	at     time.Time
	points int
}

func newLimiter(max control.Limits) *limiter {
	if max.PerHour == 0 {
		max.PerHour = control.GitHubLimits().PerHour
	}
	return &limiter{max: max, used: map[int64]*usage{}}
}

func (l *limiter) set(max control.Limits) {
	fresh := newLimiter(max)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.max, l.used = fresh.max, fresh.used
}

// of returns the counters of the call's installation, with what is over dropped.
func (l *limiter) of(c *call) *usage {
	id := int64(0)
	if c.token != nil {
		id = c.token.inst.id
	}
	u := l.used[id]
	if u == nil {
		u = &usage{}
		l.used[id] = u
	}
	if !c.now.Before(u.hour) {
		u.hour, u.requests = c.now.Add(time.Hour), 0
	}
	for len(u.spent) > 0 && !c.now.Before(u.spent[0].at.Add(time.Minute)) {
		u.spent = u.spent[1:]
	}
	for len(u.created) > 0 && !c.now.Before(u.created[0].Add(time.Hour)) {
		u.created = u.created[1:]
	}
	return u
}

// enter counts a request that runs, until the function it returns is called.
func (l *limiter) enter(c *call) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.of(c)
	u.running++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		u.running--
	}
}

// points is what a request costs: a read 1, a write 5.
func points(method string) int {
	if method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions {
		return 1
	}
	return 5
}

// take counts a request and refuses it where a limit is passed and limits are enforced.
func (l *limiter) take(c *call) *reply {
	if c.class() == "rate_limit" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.of(c)
	if l.max.Enforce {
		if u.requests >= l.max.PerHour {
			r := limited(control.LimitFault{Status: l.max.Status, Reset: seconds(u.hour.Sub(c.now))}, c)
			return &r
		}
		if wait, words := u.secondary(c, l.max); words != "" {
			f := control.LimitFault{Secondary: true, Status: l.max.Status, RetryAfter: seconds(wait)}
			if l.max.NoRetryAfter {
				f.RetryAfter = 0
			}
			r := limited(f, c)
			r.body.(obj)["message"] = words
			return &r
		}
	}
	u.requests++
	u.spent = append(u.spent, spending{c.now, points(c.r.Method)})
	if c.route.create {
		u.created = append(u.created, c.now)
	}
	return nil
}

// GitHub's words for secondary limits.
const (
	tooMuch    = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
	tooCreated = "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry your request again later."
)

// secondary says which limit a request would pass, and how long that lasts; words is empty where it passes none.
func (u *usage) secondary(c *call, max control.Limits) (wait time.Duration, words string) {
	if c.token != nil && max.Concurrent > 0 && u.running > max.Concurrent {
		return time.Minute, tooMuch
	}
	total := 0
	for _, s := range u.spent {
		total += s.points
	}
	if passed(total, max.PointsPerMinute) {
		return u.spent[0].at.Add(time.Minute).Sub(c.now), tooMuch
	}
	if !c.route.create {
		return 0, ""
	}
	inMinute := slices.IndexFunc(u.created, func(at time.Time) bool { return c.now.Before(at.Add(time.Minute)) })
	if inMinute >= 0 && passed(len(u.created)-inMinute, max.CreatesPerMin) {
		return u.created[inMinute].Add(time.Minute).Sub(c.now), tooCreated
	}
	if passed(len(u.created), max.CreatesPerHour) {
		return u.created[0].Add(time.Hour).Sub(c.now), tooCreated
	}
	return 0, ""
}

func passed(used, max int) bool { return max > 0 && used >= max }

func seconds(d time.Duration) int { return int(d/time.Second) + 1 }

// refund gives back the request that a 304 did not cost.
func (l *limiter) refund(c *call) {
	if c.class() == "rate_limit" {
		return // it was free anyway
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(c).requests--
}

// headers sets the rate limit headers, those that a limit's own answer has not set.
func (l *limiter) headers(h http.Header, c *call) {
	state := l.state(c)
	if h.Get("X-RateLimit-Remaining") == "0" {
		state["used"] = state["limit"]
	}
	for k, v := range state {
		key := http.CanonicalHeaderKey("X-RateLimit-" + k)
		if h.Get(key) == "" || k == "used" {
			h.Set(key, strconv.FormatInt(v, 10))
		}
	}
	h.Set("X-RateLimit-Resource", "core")
}

func (l *limiter) state(c *call) map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.of(c)
	return map[string]int64{
		"limit": int64(l.max.PerHour), "remaining": int64(max(l.max.PerHour-u.requests, 0)),
		"used": int64(u.requests), "reset": u.hour.Unix(),
	}
}

func (s *Server) getRateLimit(c *call) reply {
	core := s.limits.state(c)
	search := map[string]int64{"limit": 30, "remaining": 30, "used": 0, "reset": core["reset"]}
	return ok(obj{"resources": obj{"core": core, "search": search}, "rate": core})
}
