package githubsim

import (
	"net/http"
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

// usage is one installation's counters.
type usage struct {
	hour, minute    time.Time // when the windows end
	requests        int
	points          int
	createdInMinute int
	createdInHour   int
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

// of returns the counters of the call's installation, with windows that are over begun anew.
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
		u.hour, u.requests, u.createdInHour = c.now.Add(time.Hour), 0, 0
	}
	if !c.now.Before(u.minute) {
		u.minute, u.points, u.createdInMinute = c.now.Add(time.Minute), 0, 0
	}
	return u
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
			r := limited(control.LimitFault{Reset: seconds(u.hour.Sub(c.now))}, c)
			return &r
		}
		over := passed(u.points, l.max.PointsPerMinute) ||
			c.route.create && (passed(u.createdInMinute, l.max.CreatesPerMin) || passed(u.createdInHour, l.max.CreatesPerHour))
		if over {
			r := limited(control.LimitFault{Secondary: true, RetryAfter: seconds(u.minute.Sub(c.now))}, c)
			return &r
		}
	}
	u.requests++
	u.points++
	if c.r.Method != http.MethodGet {
		u.points += 4
	}
	if c.route.create {
		u.createdInMinute++
		u.createdInHour++
	}
	return nil
}

func passed(used, max int) bool { return max > 0 && used >= max }

func seconds(d time.Duration) int { return int(d/time.Second) + 1 }

// refund gives back the request that a 304 did not cost.
func (l *limiter) refund(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(c).requests--
}

// headers sets the rate limit headers, those that a limit's own answer has not set.
func (l *limiter) headers(h http.Header, c *call) {
	for k, v := range l.state(c) {
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
