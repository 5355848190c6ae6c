package githubsim

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// reviewInput is the body of a create.
type reviewInput struct {
	CommitID *string       `json:"commit_id"`
	Body     *string       `json:"body"`
	Event    *string       `json:"event"`
	Comments []remarkInput `json:"comments"`
}

type remarkInput struct {
	Path      *string `json:"path"`
	Body      *string `json:"body"`
	Position  *int    `json:"position"`
	Line      *int    `json:"line"`
	Side      *string `json:"side"`
	StartLine *int    `json:"start_line"`
	StartSide *string `json:"start_side"`
}

// reviewStates are what the events make of a review.
var reviewStates = map[string]string{"": pending, "COMMENT": commented, "APPROVE": approved, "REQUEST_CHANGES": changesRequested}

// reviewError is a refusal of a review in GitHub's words.
type reviewError []string

func (e reviewError) Error() string { return strings.Join(e, ", ") }

// unprocessable is the refusal of a review: its errors are plain strings.
func unprocessable(link string, errs ...string) reply {
	list := make([]any, len(errs))
	for i, text := range errs {
		list[i] = text
	}
	return refuse(http.StatusUnprocessableEntity, "Unprocessable Entity", link, list...)
}

func orEmpty(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// schema checks what can be wrong with a request before the pull request is looked at.
func (in *reviewInput) schema() string {
	if _, known := reviewStates[orEmpty(in.Event)]; !known {
		return orEmpty(in.Event) + " is not a possible value of event."
	}
	side := func(p *string) bool { return p == nil || *p == left || *p == right }
	for _, m := range in.Comments {
		switch {
		case m.Path == nil || m.Body == nil:
			return `"body", "path" weren't supplied.`
		case !side(m.Side) || !side(m.StartSide):
			return "side is neither LEFT nor RIGHT."
		}
	}
	return ""
}

// refusedText checks a review's own text and event.
func refusedText(p *pull, by *account, event, body string) string {
	switch {
	case event == "APPROVE" && p.author == by:
		return "Can not approve your own pull request"
	case event == "REQUEST_CHANGES" && p.author == by:
		return "Can not request changes on your own pull request"
	case (event == "COMMENT" || event == "REQUEST_CHANGES") && strings.TrimSpace(body) == "":
		return "Pull request review body can't be blank"
	case utf8.RuneCountInString(body) > maxBody:
		return "Pull request review body is too long (maximum is 65536 characters)"
	}
	return ""
}

// wants is where a comment is asked to stand. A comment with neither line nor position stands nowhere.
func (m remarkInput) wants() anchor {
	a := anchor{path: orEmpty(m.Path), side: orEmpty(m.Side)}
	if a.side == "" {
		a.side = right
	}
	if m.Position != nil {
		a.position = *m.Position
	}
	if m.Line != nil {
		a.position, a.line = 0, *m.Line
	}
	if m.StartLine != nil && m.Line != nil {
		a.start, a.startSide = *m.StartLine, orEmpty(m.StartSide)
		if a.startSide == "" {
			a.startSide = a.side
		}
	}
	return a
}

// anchors resolves every comment or none. GitHub says what is wrong, once each, and never with which.
func (in *reviewInput) anchors(files []changedFile) ([]anchor, error) {
	diff := newAnchorer(files)
	var list []anchor
	var wrong reviewError
	refuse := func(text string) {
		if !slices.Contains(wrong, text) {
			wrong = append(wrong, text)
		}
	}
	for _, m := range in.Comments {
		switch n := utf8.RuneCountInString(*m.Body); {
		case strings.TrimSpace(*m.Body) == "":
			refuse("Pull request review comment body can't be blank")
			continue
		case n > maxBody:
			refuse("Pull request review comment body is too long (maximum is 65536 characters)")
			continue
		}
		want := m.wants()
		if m.Line == nil && want.position <= 0 {
			refuse(wrongPosition)
			continue
		}
		got, text := diff.resolve(want)
		if text != "" {
			refuse(text)
			continue
		}
		list = append(list, got)
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return list, nil
}

// createReview answers 200, as GitHub does.
func (s *Server) createReview(c *call) reply {
	var in reviewInput
	if wrong := c.decode(&in); wrong != nil {
		return *wrong
	}
	if wrong := in.schema(); wrong != "" {
		return refuse(http.StatusUnprocessableEntity, "Invalid request.\n\n"+wrong, c.route.link)
	}
	s.mu.Lock()
	p := c.repo.pull(c.number("number"))
	s.mu.Unlock()
	if p == nil {
		return c.notFound()
	}
	r, _, err := s.addReview(c, p, s.bot, in, control.Send)
	if wrong := reviewError(nil); errors.As(err, &wrong) {
		return unprocessable(c.route.link, wrong...)
	} else if errors.Is(err, errLocked) {
		return refuse(http.StatusForbidden, "Unable to create review because issue is locked.", lockedPage)
	} else if err != nil {
		return s.broken(c, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return ok(s.reviewBody(r, &r.history.now().value))
}

// errLocked is a conversation that takes nothing new.
var errLocked = errors.New("the conversation is locked")

// lockedPage is where GitHub's refusals of a locked conversation point.
const lockedPage = "https://docs.github.com/articles/locking-conversations/"

// addReview checks a review against the diff of the commit it names and adds it, with all its comments or none.
func (s *Server) addReview(c *call, p *pull, by *account, in reviewInput, mode control.WebhookMode) (*review, []*delivery, error) {
	for {
		s.mu.Lock()
		v := *p.now()
		s.mu.Unlock()
		r, spots, err := s.draftReview(c, p, v, by, in)
		if err != nil {
			return nil, nil, err
		}
		s.mu.Lock()
		if now := p.now(); now.headSHA != v.headSHA || now.baseSHA != v.baseSHA {
			s.mu.Unlock()
			continue // somebody pushed while git ran
		}
		raised, err := s.keepReview(c, r, spots, orEmpty(in.Event), mode)
		s.mu.Unlock()
		return r, raised, err
	}
}

// draftReview makes a review that nobody sees yet.
func (s *Server) draftReview(c *call, p *pull, v pullVersion, by *account, in reviewInput) (*review, map[*reviewComment]spot, error) {
	ctx := c.r.Context()
	if wrong := refusedText(p, by, orEmpty(in.Event), orEmpty(in.Body)); wrong != "" {
		return nil, nil, reviewError{wrong}
	}
	commit := orEmpty(in.CommitID)
	if commit == "" {
		commit = v.headSHA
	}
	now, err := s.compareSHAs(ctx, p.repo, v.baseSHA, v.headSHA)
	if err != nil {
		return nil, nil, err
	}
	if !slices.ContainsFunc(now.commits, func(one commitInfo) bool { return one.sha == commit }) {
		return nil, nil, reviewError{"commit_id is not part of the pull request"}
	}
	was, err := s.compareSHAs(ctx, p.repo, v.baseSHA, commit)
	if err != nil {
		return nil, nil, err
	}
	anchors, err := in.anchors(was.files)
	if err != nil {
		return nil, nil, err
	}
	r := &review{pull: p, author: by, created: c.now, commit: commit}
	for _, a := range anchors {
		r.comments = append(r.comments, &reviewComment{review: r, author: by, created: c.now, commit: commit, anchor: a})
	}
	for i, m := range in.Comments {
		r.comments[i].history = history[commentText]{newVersion(c, commentText{*m.Body, by, c.now}, false)}
	}
	state := reviewState{body: orEmpty(in.Body), state: reviewStates[orEmpty(in.Event)], by: by, updated: c.now}
	if state.state != pending {
		state.submitted = c.now
	}
	r.history = history[reviewState]{newVersion(c, state, false)}
	spots, err := s.spots(ctx, p.repo, v.baseSHA, v.headSHA, r.comments)
	return r, spots, err
}

// keepReview adds a drafted review where the conversation takes it. The world's lock is held.
func (s *Server) keepReview(c *call, r *review, spots map[*reviewComment]spot, event string, mode control.WebhookMode) ([]*delivery, error) {
	p := r.pull
	if p.now().locked {
		return nil, errLocked
	}
	for _, one := range p.reviews {
		if one.author == r.author && one.isPending() {
			return nil, reviewError{"User can only have one pending review per pull request"}
		}
	}
	r.id = s.id()
	for _, m := range r.comments {
		m.id, m.current = s.id(), spot{commit: r.commit}
		if to, found := spots[m]; found {
			m.current = to
		}
		s.remarks[m.id] = m
	}
	s.reviews[r.id], p.reviews = r, append(p.reviews, r)
	if event == "" {
		return nil, nil
	}
	s.touch(p, c.now)
	return s.raiseSubmitted(r, mode), nil
}

// raiseSubmitted tells of a review and of each of its comments.
func (s *Server) raiseSubmitted(r *review, mode control.WebhookMode) []*delivery {
	raised := []*delivery{s.raiseReview("submitted", r, r.author, nil, mode)}
	if !s.subscribed("pull_request_review_comment") {
		return raised // three hundred payloads that nobody gets
	}
	for _, m := range r.comments {
		if !m.history.now().deleted {
			raised = append(raised, s.raiseRemark("created", m, r.author, nil, mode))
		}
	}
	return raised
}

// theReview is the review the path names, as a single read by the App sees it.
func (s *Server) theReview(c *call) (*review, *reviewState) {
	r := s.reviews[c.number("id")]
	if r == nil || r.pull.repo != c.repo || int64(r.pull.number) != c.number("number") {
		return nil, nil
	}
	v := r.history.seen(c.now, false)
	if !r.seenBy(s.bot, v) {
		return nil, nil
	}
	return r, v
}

// updateReview changes the body of the App's own review, submitted or not.
func (s *Server) updateReview(c *call) reply {
	var in struct {
		Body *string `json:"body"`
	}
	if wrong := c.decode(&in); wrong != nil {
		return *wrong
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, v := s.theReview(c)
	switch {
	case v == nil:
		return c.notFound()
	case r.author != s.bot:
		return refuse(http.StatusForbidden, "Resource not accessible by integration", c.route.link)
	case in.Body == nil:
		return refuse(http.StatusUnprocessableEntity, "Invalid request.\n\n\"body\" wasn't supplied.", c.route.link)
	case v.state != pending && strings.TrimSpace(*in.Body) == "":
		return unprocessable(c.route.link, "Pull request review body can't be blank")
	case utf8.RuneCountInString(*in.Body) > maxBody:
		return unprocessable(c.route.link, "Pull request review body is too long (maximum is 65536 characters)")
	}
	s.editReview(r, newVersion(c, reviewState{body: *in.Body, by: s.bot}, false), control.Send)
	return ok(s.reviewBody(r, &r.history.now().value))
}

// editReview gives a review another body, whoever wrote it.
func (s *Server) editReview(r *review, v version[reviewState], mode control.WebhookMode) *delivery {
	was := r.history.now().value
	v.value.state, v.value.submitted, v.value.updated = was.state, was.submitted, v.at
	r.history = append(r.history, v)
	if was.state == pending {
		return nil
	}
	return s.raiseReview("edited", r, v.value.by, &was.body, mode)
}

// deleteReview drops a pending review. GitHub has no way to delete a submitted one.
func (s *Server) deleteReview(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, v := s.theReview(c)
	switch {
	case v == nil || r.history.now().deleted:
		return c.notFound()
	case v.state != pending:
		return unprocessable(c.route.link, "Can not delete a non-pending pull request review")
	}
	body := s.reviewBody(r, v)
	r.history = append(r.history, newVersion(c, *v, true))
	for _, m := range r.comments {
		m.history = append(m.history, newVersion(c, m.history.now().value, true))
	}
	return ok(body)
}

// submitReview submits a pending review.
func (s *Server) submitReview(c *call) reply {
	var in struct {
		Body  *string `json:"body"`
		Event *string `json:"event"`
	}
	if wrong := c.decode(&in); wrong != nil {
		return *wrong
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, v := s.theReview(c)
	if v == nil || r.history.now().deleted {
		return c.notFound()
	}
	event, body := orEmpty(in.Event), v.body
	if in.Body != nil {
		body = *in.Body
	}
	state, known := reviewStates[event]
	switch {
	case event == "" || !known:
		return refuse(http.StatusUnprocessableEntity, "Invalid request.\n\n\"event\" wasn't supplied.", c.route.link)
	case r.history.now().value.state != pending:
		return unprocessable(c.route.link, "Can not submit a review that was submitted already")
	case r.pull.now().locked:
		return refuse(http.StatusForbidden, "Unable to create review because issue is locked.", lockedPage)
	}
	if wrong := refusedText(r.pull, r.author, event, body); wrong != "" {
		return unprocessable(c.route.link, wrong)
	}
	r.history = append(r.history, newVersion(c, reviewState{body: body, state: state, by: s.bot, updated: c.now, submitted: c.now}, false))
	s.touch(r.pull, c.now)
	s.raiseSubmitted(r, control.Send)
	return ok(s.reviewBody(r, &r.history.now().value))
}
