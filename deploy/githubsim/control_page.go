package githubsim

import (
	"net/http"
	"slices"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// ctlPage is a pull request as a person sees it now.
func (s *Server) ctlPage(req *http.Request) (any, error) {
	p, err := s.ctlPull(req)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := control.Page{
		Pull: s.pullAsIs(p), Comments: []control.Comment{}, Reviews: []control.Review{}, Checks: []control.CheckRun{},
		Statuses: []control.Status{},
	}
	for _, m := range p.comments {
		if !m.history.now().deleted {
			out.Comments = append(out.Comments, s.toldComment(m))
		}
	}
	for _, r := range p.reviews {
		if r.history.now().deleted || r.isPending() {
			continue
		}
		one := s.toldReview(r)
		one.Comments = slices.DeleteFunc(one.Comments, func(m control.ReviewComment) bool { return m.DeletedAt != nil })
		out.Reviews = append(out.Reviews, one)
	}
	head := p.now().headSHA
	for _, r := range p.repo.checks {
		if r.sha == head {
			out.Checks = append(out.Checks, s.toldCheck(r))
		}
	}
	var all []*commitStatus
	for _, one := range slices.Backward(p.repo.statuses) {
		if one.sha == head {
			all = append(all, one)
		}
	}
	for _, one := range slices.Backward(latest(all)) {
		out.Statuses = append(out.Statuses, s.toldStatus(one))
	}
	return out, nil
}
