package githubsim

import (
	"net/http"
	"slices"
	"strings"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// toldComment is a comment with its history, and with what the call has raised.
func (s *Server) toldComment(m *comment, raised ...*delivery) control.Comment {
	last := m.history.now()
	out := control.Comment{
		ID: m.id, RepositoryID: m.pull.repo.id, Number: m.pull.number, Author: toldAccount(m.author), Body: last.value.body,
		HTMLURL: s.commentPage(m), CreatedAt: m.created, UpdatedAt: last.value.updated, History: []control.CommentVersion{},
		Reactions: []control.Reaction{}, Deliveries: s.told(raised...),
	}
	if last.deleted {
		at := last.at
		out.DeletedAt = &at
	}
	for _, v := range m.history {
		out.History = append(out.History, control.CommentVersion{At: v.at, By: v.value.by.login, Body: v.value.body, Deleted: v.deleted})
	}
	for _, r := range m.reactions {
		out.Reactions = append(out.Reactions, control.Reaction{ID: r.id, User: r.by.login, Content: r.content})
	}
	return out
}

func (s *Server) ctlComment(req *http.Request, in control.NewComment) (any, error) {
	p, err := s.ctlPull(req)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, by := s.now(), s.sender(in.Options, p.repo)
	m, d := s.newComment(p, by, version[commentText]{at: now, value: commentText{in.Body, by, now}}, in.Webhook)
	return s.toldComment(m, d), nil
}

// ctlTheComment is the comment a control path names, if it is still there.
func (s *Server) ctlTheComment(r *http.Request) (*comment, error) {
	m := s.comments[pathNumber(r, "id")]
	if m == nil || m.history.now().deleted {
		return nil, cannot(http.StatusNotFound, "no comment %s", r.PathValue("id"))
	}
	return m, nil
}

func (s *Server) ctlEditComment(req *http.Request, in control.NewComment) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.ctlTheComment(req)
	if err != nil {
		return nil, err
	}
	now, by, before := s.now(), s.sender(in.Options, m.pull.repo), m.history.now().value.body
	m.history = append(m.history, version[commentText]{at: now, value: commentText{in.Body, by, now}})
	d := s.raiseComment("edited", m, by, &before, in.Webhook)
	return s.toldComment(m, d), nil
}

func (s *Server) ctlDeleteComment(req *http.Request, in control.Options) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.ctlTheComment(req)
	if err != nil {
		return nil, err
	}
	by := s.sender(in, m.pull.repo)
	d := s.dropComment(m, by, version[commentText]{at: s.now(), value: m.history.now().value, deleted: true}, in.Webhook)
	return s.toldComment(m, d), nil
}

func (s *Server) ctlRerequest(req *http.Request, in control.Options) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.checks[pathNumber(req, "id")]
	if r == nil {
		return nil, cannot(http.StatusNotFound, "no check run %s", req.PathValue("id"))
	}
	d := s.raiseCheck("rerequested", r, s.sender(in, r.repo), in.Webhook)
	if d == nil {
		return control.Delivery{}, nil
	}
	return s.hooks.told(d, false), nil
}

func (s *Server) toldCheck(r *checkRun) control.CheckRun {
	v := r.history.now().value
	text := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	out := control.CheckRun{
		ID: r.id, RepositoryID: r.repo.id, HeadSHA: r.sha, Name: v.name, ExternalID: v.externalID, DetailsURL: v.detailsURL,
		Status: v.status, Conclusion: v.conclusion, Title: text(v.title), Summary: text(v.summary), Text: text(v.text),
		Annotations: len(v.annotations), AppID: s.cfg.AppID, HTMLURL: s.checkPage(r), CreatedAt: r.created, Updates: len(r.history) - 1,
	}
	if !v.started.IsZero() {
		out.StartedAt = &v.started
	}
	if !v.completed.IsZero() {
		out.CompletedAt = &v.completed
	}
	return out
}

func (s *Server) ctlComments(r *http.Request) (any, error) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []control.Comment{}
	for _, m := range s.comments {
		if matchesID(q.Get("repository"), m.pull.repo.id) && matchesID(q.Get("number"), int64(m.pull.number)) {
			list = append(list, s.toldComment(m))
		}
	}
	slices.SortFunc(list, func(a, b control.Comment) int { return int(a.ID - b.ID) })
	return list, nil
}

func (s *Server) ctlChecks(r *http.Request) (any, error) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []control.CheckRun{}
	for _, one := range s.checks {
		if matchesID(q.Get("repository"), one.repo.id) && strings.HasPrefix(one.sha, q.Get("sha")) {
			list = append(list, s.toldCheck(one))
		}
	}
	slices.SortFunc(list, func(a, b control.CheckRun) int { return int(a.ID - b.ID) })
	return list, nil
}
