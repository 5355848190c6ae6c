package githubsim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// maxBody is counted in characters, not bytes.
const maxBody = 65536

// comment is an issue comment. Nothing stops two from being the same: GitHub knows no idempotency key.
type comment struct {
	id        int64
	pull      *pull
	author    *account
	created   time.Time
	reactions []reaction
	history   history[commentText]
}

type commentText struct {
	body    string
	by      *account
	updated time.Time
}

// newVersion is a version that a fault may hide for a while.
func newVersion[T any](c *call, value T, deleted bool) version[T] {
	v := version[T]{at: c.now, value: value, deleted: deleted}
	if h := c.hit.hide; h != nil {
		v.shown, v.getToo = c.now.Add(time.Duration(h.For)), h.Get
	}
	return v
}

func (s *Server) commentBody(m *comment, text *commentText) obj {
	p := m.pull
	self := fmt.Sprintf("%s/repos/%s/issues/comments/%d", s.APIURL(), p.repo.fullName(), m.id)
	body := obj{
		"url": self, "html_url": s.commentPage(m), "id": m.id, "node_id": nodeID("IssueComment", m.id),
		"issue_url": fmt.Sprintf("%s/repos/%s/issues/%d", s.APIURL(), p.repo.fullName(), p.number), "user": s.userBody(m.author),
		"created_at": stamp(m.created), "updated_at": stamp(text.updated), "body": text.body,
		"author_association": p.repo.association(m.author), "performed_via_github_app": nil,
		"reactions": s.rollup(self, m.reactions),
	}
	if m.author == s.bot {
		body["performed_via_github_app"] = s.appBody()
	}
	return body
}

func (s *Server) commentPage(m *comment) string {
	return fmt.Sprintf("%s#issuecomment-%d", s.pullPage(m.pull), m.id)
}

// newComment adds a comment and tells the App of it, its own included.
func (s *Server) newComment(p *pull, by *account, v version[commentText], mode control.WebhookMode) (*comment, *delivery) {
	m := &comment{id: s.id(), pull: p, author: by, created: v.at, history: history[commentText]{v}}
	s.comments[m.id] = m
	p.comments = append(p.comments, m)
	s.touch(p, v.at)
	return m, s.raiseComment("created", m, by, nil, mode)
}

// touch moves a pull request's updated_at without making anything of it stale.
func (s *Server) touch(p *pull, at time.Time) { p.now().updated = at }

// raiseComment raises issue_comment. before is the body that an edit replaced.
func (s *Server) raiseComment(action string, m *comment, by *account, before *string, mode control.WebhookMode) *delivery {
	payload := obj{"issue": s.issueBody(m.pull), "comment": s.commentBody(m, &m.history.now().value)}
	if before != nil {
		payload["changes"] = obj{"body": obj{"from": *before}}
	}
	return s.raise("issue_comment", action, m.pull.repo, by, payload, mode)
}

func (s *Server) createComment(c *call) reply {
	var in struct {
		Body *string `json:"body"`
	}
	if wrong := c.decode(&in); wrong != nil {
		return *wrong
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := c.repo.pull(c.number("number"))
	invalid := func(code, field, message string) reply {
		return refuse(http.StatusUnprocessableEntity, "Validation Failed", c.route.link, fieldError("IssueComment", field, code, message))
	}
	switch {
	case p == nil:
		return c.notFound()
	case in.Body == nil || *in.Body == "":
		return invalid("missing_field", "body", "")
	case utf8.RuneCountInString(*in.Body) > maxBody:
		return invalid("unprocessable", "data", "Body is too long (maximum is 65536 characters)")
	case p.now().locked:
		return refuse(http.StatusForbidden, "Unable to create comment because issue is locked.", lockedPage)
	}
	m, _ := s.newComment(p, s.bot, newVersion(c, commentText{*in.Body, s.bot, c.now}, false), control.Send)
	body := s.commentBody(m, &m.history.now().value)
	return reply{status: http.StatusCreated, body: body, header: http.Header{"Location": {body["url"].(string)}}}
}

// theComment is the comment the path names, as a single read sees it.
func (s *Server) theComment(c *call) (*comment, *commentText) {
	m := s.comments[c.number("id")]
	if m == nil || m.pull.repo != c.repo {
		return nil, nil
	}
	return m, m.history.seen(c.now, false)
}

func (s *Server) getComment(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, text := s.theComment(c)
	if text == nil {
		return c.notFound()
	}
	return ok(s.commentBody(m, text))
}

func (s *Server) updateComment(c *call) reply {
	var in struct {
		Body *string `json:"body"`
	}
	if wrong := c.decode(&in); wrong != nil {
		return *wrong
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, text := s.theComment(c)
	switch {
	case text == nil:
		return c.notFound()
	case m.author != s.bot:
		return refuse(http.StatusForbidden, "Resource not accessible by integration", c.route.link)
	case in.Body == nil || *in.Body == "":
		return refuse(http.StatusUnprocessableEntity, "Validation Failed", c.route.link, fieldError("IssueComment", "body", "missing_field", ""))
	case utf8.RuneCountInString(*in.Body) > maxBody:
		return refuse(http.StatusUnprocessableEntity, "Validation Failed", c.route.link,
			fieldError("IssueComment", "body", "custom", "body is too long (maximum is 65536 characters)"))
	}
	before := m.history.now().value.body
	m.history = append(m.history, newVersion(c, commentText{*in.Body, s.bot, c.now}, false))
	s.raiseComment("edited", m, s.bot, &before, control.Send)
	return ok(s.commentBody(m, &m.history.now().value))
}

func (s *Server) deleteComment(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, text := s.theComment(c)
	if text == nil || m.history.now().deleted {
		return c.notFound()
	}
	if m.author != s.bot {
		return refuse(http.StatusForbidden, "Resource not accessible by integration", c.route.link)
	}
	s.dropComment(m, s.bot, newVersion(c, *text, true), control.Send)
	return reply{status: http.StatusNoContent}
}

func (s *Server) dropComment(m *comment, by *account, v version[commentText], mode control.WebhookMode) *delivery {
	v.value.by = by
	m.history = append(m.history, v)
	return s.raiseComment("deleted", m, by, nil, mode)
}

// commentList answers a list of comments, oldest first whatever the caller asks for.
func (s *Server) commentList(c *call, comments []*comment) reply {
	var since time.Time
	if q := c.r.URL.Query().Get("since"); q != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, q); err != nil {
			return refuse(http.StatusUnprocessableEntity, "Validation Failed", c.route.link, fieldError("IssueComment", "since", "invalid", ""))
		}
	}
	type seen struct {
		m    *comment
		text *commentText
	}
	var all []seen
	for _, m := range comments {
		if text := m.history.seen(c.now, true); text != nil && !text.updated.Before(since) {
			all = append(all, seen{m, text})
		}
	}
	slices.SortFunc(all, func(a, b seen) int { return cmp.Compare(a.m.id, b.m.id) })
	p := pageOf(c.r)
	list := []obj{}
	for _, one := range cut(all, p) {
		list = append(list, s.commentBody(one.m, one.text))
	}
	return reply{status: http.StatusOK, header: s.links(c, p, len(all)), body: list}
}

func (s *Server) listComments(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := c.repo.pull(c.number("number"))
	if p == nil {
		return c.notFound()
	}
	return s.commentList(c, p.comments)
}

func (s *Server) listRepoComments(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*comment
	for _, p := range c.repo.pulls {
		all = append(all, p.comments...)
	}
	return s.commentList(c, all)
}
