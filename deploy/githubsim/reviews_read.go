package githubsim

import (
	"cmp"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

func (s *Server) getReview(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, v := s.theReview(c)
	if v == nil {
		return c.notFound()
	}
	return ok(s.reviewBody(r, v))
}

// listReviews lists in the order they were made, the App's own pending one among them.
func (s *Server) listReviews(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := c.repo.pull(c.number("number"))
	if p == nil {
		return c.notFound()
	}
	type seen struct {
		r *review
		v *reviewState
	}
	var all []seen
	for _, r := range p.reviews {
		if v := r.history.seen(c.now, true); r.seenBy(s.bot, v) {
			all = append(all, seen{r, v})
		}
	}
	at := pageOf(c.r)
	list := []obj{}
	for _, one := range cut(all, at) {
		list = append(list, s.reviewBody(one.r, one.v))
	}
	return reply{status: http.StatusOK, header: s.links(c, at, len(all)), body: list}
}

// shownRemark is an inline comment as a reader sees it.
type shownRemark struct {
	m    *reviewComment
	text *commentText
}

// listReviewRemarks lists one review's comments in the older form, which knows positions but no lines.
func (s *Server) listReviewRemarks(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, v := s.theReview(c)
	if v == nil {
		return c.notFound()
	}
	var all []shownRemark
	for _, m := range r.comments {
		if text := m.history.seen(c.now, true); text != nil {
			all = append(all, shownRemark{m, text})
		}
	}
	at := pageOf(c.r)
	list := []obj{}
	for _, one := range cut(all, at) {
		body := s.remarkBody(one.m, one.text)
		for _, newer := range []string{"line", "original_line", "start_line", "original_start_line", "side", "start_side", "subject_type"} {
			delete(body, newer)
		}
		list = append(list, body)
	}
	return reply{status: http.StatusOK, header: s.links(c, at, len(all)), body: list}
}

// listRemarks lists the comments of all submitted reviews of a pull request; those of pending ones are not there,
// the App's own neither.
func (s *Server) listRemarks(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := c.repo.pull(c.number("number"))
	if p == nil {
		return c.notFound()
	}
	return s.remarkList(c, p.remarks())
}

func (s *Server) listRepoRemarks(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*reviewComment
	for _, p := range c.repo.pulls {
		all = append(all, p.remarks()...)
	}
	return s.remarkList(c, all)
}

func (s *Server) remarkList(c *call, remarks []*reviewComment) reply {
	q := c.r.URL.Query()
	var since time.Time
	if text := q.Get("since"); text != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, text); err != nil {
			return refuse(http.StatusUnprocessableEntity, "Validation Failed", c.route.link, fieldError("PullRequestReviewComment", "since", "invalid", ""))
		}
	}
	var all []shownRemark
	for _, m := range remarks {
		text, state := m.history.seen(c.now, true), m.review.history.seen(c.now, true)
		if text != nil && state != nil && state.state != pending && !text.updated.Before(since) {
			all = append(all, shownRemark{m, text})
		}
	}
	slices.SortStableFunc(all, func(a, b shownRemark) int {
		if q.Get("sort") == "updated" {
			return a.text.updated.Compare(b.text.updated)
		}
		return cmp.Compare(a.m.id, b.m.id)
	})
	if q.Has("sort") && q.Get("direction") == "desc" { // ignored without sort
		slices.Reverse(all)
	}
	at := pageOf(c.r)
	list := []obj{}
	for _, one := range cut(all, at) {
		list = append(list, s.remarkBody(one.m, one.text))
	}
	return reply{status: http.StatusOK, header: s.links(c, at, len(all)), body: list}
}

// theRemark is the inline comment the path names, as a single read sees it.
func (s *Server) theRemark(c *call) (*reviewComment, *commentText) {
	m := s.remarks[c.number("id")]
	if m == nil || m.review.pull.repo != c.repo {
		return nil, nil
	}
	state := m.review.history.seen(c.now, false)
	if !m.review.seenBy(s.bot, state) {
		return nil, nil
	}
	return m, m.history.seen(c.now, false)
}

func (s *Server) getRemark(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, text := s.theRemark(c)
	if text == nil {
		return c.notFound()
	}
	return ok(s.remarkBody(m, text))
}

func (s *Server) updateRemark(c *call) reply {
	var in struct {
		Body *string `json:"body"`
	}
	if wrong := c.decode(&in); wrong != nil {
		return *wrong
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, text := s.theRemark(c)
	invalid := func(code, message string) reply {
		return refuse(http.StatusUnprocessableEntity, "Validation Failed", c.route.link, fieldError("PullRequestReviewComment", "body", code, message))
	}
	switch {
	case text == nil:
		return c.notFound()
	case m.author != s.bot:
		return refuse(http.StatusForbidden, "Resource not accessible by integration", c.route.link)
	case in.Body == nil || *in.Body == "":
		return invalid("missing_field", "")
	case utf8.RuneCountInString(*in.Body) > maxBody:
		return invalid("custom", "body is too long (maximum is 65536 characters)")
	}
	s.editRemark(m, newVersion(c, commentText{*in.Body, s.bot, c.now}, false), control.Send)
	return ok(s.remarkBody(m, &m.history.now().value))
}

func (s *Server) editRemark(m *reviewComment, v version[commentText], mode control.WebhookMode) *delivery {
	before := m.history.now().value.body
	m.history = append(m.history, v)
	if m.review.isPending() {
		return nil
	}
	return s.raiseRemark("edited", m, v.value.by, &before, mode)
}

func (s *Server) deleteRemark(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, text := s.theRemark(c)
	switch {
	case text == nil || m.history.now().deleted:
		return c.notFound()
	case m.author != s.bot:
		return refuse(http.StatusForbidden, "Resource not accessible by integration", c.route.link)
	}
	v := newVersion(c, *text, true)
	v.value.by = s.bot
	s.dropRemark(m, v, control.Send)
	return reply{status: http.StatusNoContent}
}

func (s *Server) dropRemark(m *reviewComment, v version[commentText], mode control.WebhookMode) *delivery {
	m.history = append(m.history, v)
	if m.review.isPending() {
		return nil
	}
	return s.raiseRemark("deleted", m, v.value.by, nil, mode)
}
