package githubsim

import (
	"net/http"
	"strconv"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

func (s *Server) ctlAddFault(_ *http.Request, in control.Fault) (any, error) {
	switch {
	case !s.classes()[in.Class]:
		return nil, cannot(http.StatusBadRequest, "no class %q", in.Class)
	case in.Probability < 0 || in.Probability > 1:
		return nil, cannot(http.StatusBadRequest, "a probability is between 0 and 1")
	case in.Skip < 0 || in.Times < 0 || in.Delay < 0:
		return nil, cannot(http.StatusBadRequest, "skip, times and delay must not be negative")
	case in.Error != nil && !in.Error.Close && (in.Error.Status < 400 || in.Error.Status > 599):
		return nil, cannot(http.StatusBadRequest, "an error needs a status of 400 to 599")
	case in.Limit != nil && in.Limit.Status != 0 && in.Limit.Status != 403 && in.Limit.Status != 429:
		return nil, cannot(http.StatusBadRequest, "a limit is 403 or 429")
	case in.Delay == 0 && in.Error == nil && in.Limit == nil && in.Lose == "" && in.Hide == nil && in.Stale == nil && in.Token == nil:
		return nil, cannot(http.StatusBadRequest, "the fault has no effect")
	}
	switch in.Lose {
	case "", control.LoseClose, control.Lose502, control.LoseHang, control.LoseError, control.LoseCut, control.LoseStall:
	default:
		return nil, cannot(http.StatusBadRequest, "no loss %q", in.Lose)
	}
	return s.faults.add(in), nil
}

// classes are the route classes that exist, so that a fault spelled wrong is refused.
func (s *Server) classes() map[string]bool {
	known := map[string]bool{control.Everything: true, control.Reads: true, control.Writes: true}
	for _, r := range append(s.repoRoutes(), s.rootRoutes()...) {
		known[r.class] = true
	}
	return known
}

func (s *Server) ctlClearFaults(*http.Request) (any, error) {
	s.faults.remove(func(*control.Fault) bool { return true })
	return done, nil
}

func (s *Server) ctlRemoveFault(r *http.Request) (any, error) {
	if s.faults.remove(func(f *control.Fault) bool { return f.ID == r.PathValue("id") }) == 0 {
		return nil, cannot(http.StatusNotFound, "no fault %s", r.PathValue("id"))
	}
	return done, nil
}

// ctlSettle ends every lag: from here on all readers see what is.
func (s *Server) ctlSettle(*http.Request) (any, error) {
	s.faults.remove(func(f *control.Fault) bool { return f.Hide != nil || f.Stale != nil || f.Token != nil })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.comments {
		m.history.settle()
	}
	for _, r := range s.checks {
		r.history.settle()
	}
	for _, r := range s.repos {
		for _, one := range r.statuses {
			one.history.settle()
		}
	}
	for _, r := range s.reviews {
		r.history.settle()
	}
	for _, m := range s.remarks {
		m.history.settle()
	}
	for _, t := range s.tokens {
		t.usable, t.misses = time.Time{}, 0
	}
	return done, nil
}

func (s *Server) ctlLimits(_ *http.Request, in control.Limits) (any, error) {
	s.limits.set(in)
	return done, nil
}

func (s *Server) ctlRequests(r *http.Request) (any, error) {
	q := r.URL.Query()
	number := func(name string) int64 { n, _ := strconv.ParseInt(q.Get(name), 10, 64); return max(n, 0) }
	return s.truth.list(control.RequestFilter{
		After: number("after"), Class: q.Get("class"), Method: q.Get("method"), Writes: q.Get("writes") == "true",
		Repository: number("repository"), Installation: number("installation"),
	}), nil
}

// matchesID reports whether a query names id, or nothing.
func matchesID(query string, id int64) bool {
	return query == "" || query == "0" || query == strconv.FormatInt(id, 10)
}
