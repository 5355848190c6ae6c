package githubsim

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// toldReview is a review with its comments and its history, and with what the call has raised.
func (s *Server) toldReview(r *review, raised ...*delivery) control.Review {
	last := r.history.now()
	out := control.Review{
		ID: r.id, RepositoryID: r.pull.repo.id, Number: r.pull.number, Author: toldAccount(r.author), State: last.value.state,
		Body: last.value.body, CommitID: r.commit, HTMLURL: s.reviewPage(r), CreatedAt: r.created,
		History: []control.CommentVersion{}, Comments: []control.ReviewComment{}, Deliveries: s.told(raised...),
	}
	if at := last.value.submitted; !at.IsZero() {
		out.SubmittedAt = &at
	}
	if last.deleted {
		at := last.at
		out.DeletedAt = &at
	}
	for _, v := range r.history {
		out.History = append(out.History, control.CommentVersion{At: v.at, By: v.value.by.login, Body: v.value.body, Deleted: v.deleted})
	}
	for _, m := range r.comments {
		out.Comments = append(out.Comments, s.toldRemark(m))
	}
	return out
}

func (s *Server) toldRemark(m *reviewComment, raised ...*delivery) control.ReviewComment {
	last, p := m.history.now(), m.review.pull
	out := control.ReviewComment{
		ID: m.id, ReviewID: m.review.id, RepositoryID: p.repo.id, Number: p.number, Author: toldAccount(m.author), Body: last.value.body,
		Path: m.anchor.path, Side: m.anchor.side, OriginalCommitID: m.commit, OriginalLine: m.anchor.line,
		OriginalStartLine: m.anchor.start, OriginalPosition: m.anchor.position, StartSide: m.anchor.startSide, DiffHunk: m.anchor.hunk,
		Outdated: m.current.position == 0, CommitID: m.current.commit, Line: m.current.line, StartLine: m.current.start,
		Position: m.current.position, HTMLURL: s.remarkPage(m), CreatedAt: m.created, UpdatedAt: last.value.updated,
		Reactions: toldReactions(m.reactions), Deliveries: s.told(raised...),
	}
	out.History, out.DeletedAt = toldTexts(m.history)
	if m.replyTo != nil {
		out.InReplyTo = m.replyTo.id
	}
	return out
}

// ctlReview is a person's review, under the same rules as the App's.
func (s *Server) ctlReview(req *http.Request, in control.NewReview) (any, error) {
	p, err := s.ctlPull(req)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	by := s.sender(in.Options, p.repo)
	s.mu.Unlock()
	asked := reviewInput{Body: &in.Body, Event: &in.Event, CommitID: &in.CommitID}
	for i := range in.Comments {
		m := &in.Comments[i]
		one := remarkInput{Path: &m.Path, Body: &m.Body, Line: &m.Line, Side: new(cmp.Or(m.Side, right))}
		if m.StartLine != 0 {
			one.StartLine = &m.StartLine
		}
		asked.Comments = append(asked.Comments, one)
	}
	if wrong := asked.schema(); wrong != "" {
		return nil, cannot(http.StatusBadRequest, "%s", wrong)
	}
	r, raised, err := s.addReview(&call{r: req, now: s.now()}, p, by, asked, in.Webhook)
	if wrong := reviewError(nil); errors.As(err, &wrong) {
		return nil, cannot(http.StatusUnprocessableEntity, "%v", wrong)
	} else if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.toldReview(r, raised...), nil
}

func (s *Server) ctlEditReview(req *http.Request, in control.NewComment) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reviews[pathNumber(req, "id")]
	if r == nil || r.history.now().deleted {
		return nil, cannot(http.StatusNotFound, "no review %s", req.PathValue("id"))
	}
	by := s.sender(in.Options, r.pull.repo)
	d := s.editReview(r, version[reviewState]{at: s.now(), value: reviewState{body: in.Body, by: by}}, in.Webhook)
	return s.toldReview(r, d), nil
}

// ctlRemark is the inline comment a control path names, if it is still there.
func (s *Server) ctlRemark(r *http.Request) (*reviewComment, error) {
	m := s.remarks[pathNumber(r, "id")]
	if m == nil || m.history.now().deleted {
		return nil, cannot(http.StatusNotFound, "no inline comment %s", r.PathValue("id"))
	}
	return m, nil
}

// ctlReply answers an inline comment. As on GitHub it is a review of its own, without a body.
func (s *Server) ctlReply(req *http.Request, in control.NewComment) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, err := s.ctlRemark(req)
	if err != nil {
		return nil, err
	}
	now, p := s.now(), to.review.pull
	by := s.sender(in.Options, p.repo)
	r := &review{id: s.id(), pull: p, author: by, created: now, commit: p.now().headSHA}
	r.history = history[reviewState]{{at: now, value: reviewState{state: commented, by: by, updated: now, submitted: now}}}
	m := &reviewComment{id: s.id(), review: r, author: by, created: now, commit: to.commit, anchor: to.anchor, current: to.current, replyTo: to}
	m.history = history[commentText]{{at: now, value: commentText{in.Body, by, now}}}
	r.comments = []*reviewComment{m}
	s.reviews[r.id], s.remarks[m.id], p.reviews = r, m, append(p.reviews, r)
	s.touch(p, now)
	return s.toldRemark(m, s.raiseSubmitted(r, in.Webhook)...), nil
}

func (s *Server) ctlEditRemark(req *http.Request, in control.NewComment) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.ctlRemark(req)
	if err != nil {
		return nil, err
	}
	now, by := s.now(), s.sender(in.Options, m.review.pull.repo)
	d := s.editRemark(m, version[commentText]{at: now, value: commentText{in.Body, by, now}}, in.Webhook)
	return s.toldRemark(m, d), nil
}

func (s *Server) ctlDeleteRemark(req *http.Request, in control.Options) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.ctlRemark(req)
	if err != nil {
		return nil, err
	}
	v := version[commentText]{at: s.now(), value: m.history.now().value, deleted: true}
	v.value.by = s.sender(in, m.review.pull.repo)
	return s.toldRemark(m, s.dropRemark(m, v, in.Webhook)), nil
}

func (s *Server) ctlReviews(r *http.Request) (any, error) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []control.Review{}
	for _, one := range s.reviews {
		if matchesID(q.Get("repository"), one.pull.repo.id) && matchesID(q.Get("number"), int64(one.pull.number)) {
			list = append(list, s.toldReview(one))
		}
	}
	slices.SortFunc(list, func(a, b control.Review) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}
