package githubsim

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// toldComment is a comment with its history, and with what the call has raised.
func (s *Server) toldComment(m *comment, raised ...*delivery) control.Comment {
	last := m.history.now()
	out := control.Comment{
		ID: m.id, RepositoryID: m.pull.repo.id, Number: m.pull.number, Author: toldAccount(m.author), Body: last.value.body,
		HTMLURL: s.commentPage(m), CreatedAt: m.created, UpdatedAt: last.value.updated, Reactions: toldReactions(m.reactions),
		Deliveries: s.told(raised...),
	}
	out.History, out.DeletedAt = toldTexts(m.history)
	return out
}

// toldTexts is every text that a comment had, and when it was deleted, if it is.
func toldTexts(h history[commentText]) (told []control.CommentVersion, deleted *time.Time) {
	told = []control.CommentVersion{}
	for _, v := range h {
		told = append(told, control.CommentVersion{At: v.at, By: v.value.by.login, Body: v.value.body, Deleted: v.deleted})
	}
	if last := h.now(); last.deleted {
		at := last.at
		deleted = &at
	}
	return told, deleted
}

func toldReactions(list []reaction) []control.Reaction {
	told := []control.Reaction{}
	for _, r := range list {
		told = append(told, control.Reaction{ID: r.id, User: r.by.login, Content: r.content})
	}
	return told
}

func (s *Server) ctlComment(req *http.Request, in control.NewComment) (any, error) {
	p, err := s.ctlPull(req)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, by := s.now(), s.sender(in.Options, p.repo)
	if in.At != nil {
		now = *in.At
	}
	m, d := s.newComment(p, by, version[commentText]{at: now, value: commentText{in.Body, by, now}}, in.Webhook)
	s.touch(p, s.now())
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
	return s.toldClick(s.raiseCheck("rerequested", r, nil, s.sender(in, r.repo), in.Webhook)), nil
}

// ctlRequestAction clicks one of the buttons that the check run's newest state offers.
func (s *Server) ctlRequestAction(req *http.Request, in control.RequestAction) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.checks[pathNumber(req, "id")]
	if r == nil {
		return nil, cannot(http.StatusNotFound, "no check run %s", req.PathValue("id"))
	}
	offered := r.history.now().value.actions
	if !slices.ContainsFunc(offered, func(a checkAction) bool { return a.Identifier == in.Identifier }) {
		return nil, cannot(http.StatusUnprocessableEntity, "the check run has no action %q", in.Identifier)
	}
	extra := obj{"requested_action": obj{"identifier": in.Identifier}}
	return s.toldClick(s.raiseCheck("requested_action", r, extra, s.sender(in.Options, r.repo), in.Webhook)), nil
}

func (s *Server) toldClick(d *delivery) control.Delivery {
	if d == nil {
		return control.Delivery{}
	}
	return s.hooks.told(d, false)
}

func (s *Server) toldCheck(r *checkRun) control.CheckRun {
	v := r.history.now().value
	out := control.CheckRun{
		ID: r.id, RepositoryID: r.repo.id, HeadSHA: r.sha, Name: v.name, ExternalID: v.externalID, DetailsURL: v.detailsURL,
		Status: v.status, Conclusion: v.conclusion, Title: orEmpty(v.title), Summary: orEmpty(v.summary), Text: orEmpty(v.text),
		Annotations: len(v.annotations), AppID: s.cfg.AppID, HTMLURL: s.checkPage(r), CreatedAt: r.created, Updates: len(r.history) - 1,
	}
	if !v.started.IsZero() {
		out.StartedAt = &v.started
	}
	out.AnnotationList, out.Actions, out.History = []control.Annotation{}, []control.CheckAction{}, []control.CheckVersion{}
	if raw, err := json.Marshal(v.annotations); err == nil && len(v.annotations) > 0 {
		_ = json.Unmarshal(raw, &out.AnnotationList) // a number with a fraction is left at nought
	}
	for _, a := range v.actions {
		out.Actions = append(out.Actions, control.CheckAction(a))
	}
	for _, one := range r.history {
		was := one.value
		out.History = append(out.History, control.CheckVersion{
			At: one.at, Status: was.status, Conclusion: was.conclusion, Title: orEmpty(was.title), Annotations: len(was.annotations),
		})
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
