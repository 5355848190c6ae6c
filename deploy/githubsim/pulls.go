package githubsim

import (
	"cmp"
	"net/http"
	"slices"
)

// maxFiles is where a pull request's file list ends, however many it changed.
const maxFiles = 3000

// readPull is the pull request the path names, as this reader sees it.
func (s *Server) readPull(c *call) (*pull, *pullVersion) {
	p := c.repo.pull(c.number("number"))
	if p == nil {
		return nil, nil
	}
	return p, p.read(c)
}

func (s *Server) getPull(c *call) reply {
	if wantsDiff(c) {
		return s.pullDiff(c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, v := s.readPull(c)
	if v == nil {
		return c.notFound()
	}
	body := s.pullBody(p, v)
	v.computed = true // the first read starts the job, the next one knows
	return ok(body)
}

// ends returns the two commits of the pull request that this reader sees; ok is false where there is none.
func (s *Server) ends(c *call) (base, head string, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, v := s.readPull(c)
	if v == nil {
		return "", "", false
	}
	return v.baseSHA, v.headSHA, true
}

// pullComparison is the comparison behind a pull request; reply is set where there is none.
func (s *Server) pullComparison(c *call) (*comparison, string, *reply) {
	base, head, found := s.ends(c)
	if !found {
		r := c.notFound()
		return nil, "", &r
	}
	cmp, err := s.compareSHAs(c.r.Context(), c.repo, base, head)
	if err != nil {
		r := s.broken(c, err)
		return nil, "", &r
	}
	return cmp, head, nil
}

func (s *Server) pullDiff(c *call) reply {
	found, head, wrong := s.pullComparison(c)
	if wrong != nil {
		return *wrong
	}
	return s.rawDiff(c, found.mergeBase.sha, head, found.files)
}

func (s *Server) listFiles(c *call) reply {
	found, head, wrong := s.pullComparison(c)
	if wrong != nil {
		return *wrong
	}
	files := found.files[:min(len(found.files), maxFiles)]
	p := pageOf(c.r)
	return reply{
		status: http.StatusOK, header: s.links(c, p, len(files)),
		body: s.fileBodies(s.fullName(c.repo), head, cut(files, p)),
	}
}

func (s *Server) listPullCommits(c *call) reply {
	found, _, wrong := s.pullComparison(c)
	if wrong != nil {
		return *wrong
	}
	commits := found.commits[:min(len(found.commits), maxCompareCommits)]
	p, full := pageOf(c.r), s.fullName(c.repo)
	list := []obj{}
	for _, one := range cut(commits, p) {
		list = append(list, s.commitBody(full, one))
	}
	return reply{status: http.StatusOK, header: s.links(c, p, len(commits)), body: list}
}

func (s *Server) listPulls(c *call) reply {
	q := c.r.URL.Query()
	state := cmp.Or(q.Get("state"), "open")
	if state != "open" && state != "closed" && state != "all" {
		return refuse(http.StatusUnprocessableEntity, "Validation Failed", c.route.link, fieldError("PullRequest", "state", "invalid", ""))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	type seen struct {
		p *pull
		v *pullVersion
	}
	var all []seen
	for _, p := range c.repo.pulls {
		v := p.read(c)
		if v == nil || state != "all" && v.state != state || q.Has("base") && q.Get("base") != v.baseRef ||
			q.Has("head") && q.Get("head") != v.headLabel {
			continue
		}
		all = append(all, seen{p, v})
	}
	slices.SortStableFunc(all, func(a, b seen) int {
		if q.Get("sort") == "updated" {
			return a.v.updated.Compare(b.v.updated)
		}
		return cmp.Compare(a.p.number, b.p.number)
	})
	if q.Get("direction") == "desc" || !q.Has("direction") && (q.Get("sort") == "" || q.Get("sort") == "created") {
		slices.Reverse(all)
	}
	p := pageOf(c.r)
	list := []obj{}
	for _, one := range cut(all, p) {
		list = append(list, s.pullSimple(one.p, one.v))
	}
	return reply{status: http.StatusOK, header: s.links(c, p, len(all)), body: list}
}
