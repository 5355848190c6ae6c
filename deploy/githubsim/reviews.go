package githubsim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// The states of a review.
const (
	pending          = "PENDING"
	commented        = "COMMENTED"
	approved         = "APPROVED"
	changesRequested = "CHANGES_REQUESTED"
)

// review is a pull request review. Only its author sees it while it is pending.
type review struct {
	id       int64
	pull     *pull
	author   *account
	created  time.Time
	commit   string
	comments []*reviewComment
	history  history[reviewState]
}

type reviewState struct {
	body, state string
	by          *account
	updated     time.Time
	submitted   time.Time // zero while pending
}

// reviewComment is one inline comment. It stands where it was written, and in the newest diff where that still
// has its line.
type reviewComment struct {
	id        int64
	review    *review
	author    *account
	created   time.Time
	commit    string // it was written on
	anchor    anchor // in that commit's diff
	current   spot
	replyTo   *reviewComment
	reactions []reaction
	history   history[commentText]
}

// spot is where a comment stands in the pull request's newest diff; without a position it is outdated.
type spot struct {
	commit                string
	position, line, start int
}

// seenBy reports whether an account sees the review at all. The world's lock is held.
func (r *review) seenBy(a *account, v *reviewState) bool {
	return v != nil && (v.state != pending || r.author == a)
}

func (r *review) isPending() bool {
	v := r.history.now()
	return !v.deleted && v.value.state == pending
}

// shownReviewComments counts those of submitted reviews.
func (p *pull) shownReviewComments() int {
	n := 0
	for _, r := range p.reviews {
		for _, m := range r.comments {
			if !r.isPending() && !m.history.now().deleted {
				n++
			}
		}
	}
	return n
}

func (s *Server) reviewBody(r *review, v *reviewState) obj {
	html, api := s.reviewPage(r), fmt.Sprintf("%s/repos/%s/pulls/%d", s.APIURL(), r.pull.repo.fullName(), r.pull.number)
	body := obj{
		"id": r.id, "node_id": nodeID("PullRequestReview", r.id), "user": s.userBody(r.author), "body": v.body, "state": v.state,
		"html_url": html, "pull_request_url": api, "author_association": r.pull.repo.association(r.author), "commit_id": r.commit,
		"_links": obj{"html": obj{"href": html}, "pull_request": obj{"href": api}},
	}
	if !v.submitted.IsZero() {
		body["submitted_at"] = stamp(v.submitted)
	}
	return body
}

func (s *Server) reviewPage(r *review) string {
	return fmt.Sprintf("%s#pullrequestreview-%d", s.pullPage(r.pull), r.id)
}

// remarkBody is an inline comment. Of an outdated one line is absent, where GitHub sends null against its schema.
func (s *Server) remarkBody(m *reviewComment, text *commentText) obj {
	p := m.review.pull
	api := fmt.Sprintf("%s/repos/%s/pulls", s.APIURL(), p.repo.fullName())
	self, html, pull := fmt.Sprintf("%s/comments/%d", api, m.id), s.remarkPage(m), fmt.Sprintf("%s/%d", api, p.number)
	numberOrNil := func(n int) any {
		if n == 0 {
			return nil
		}
		return n
	}
	body := obj{
		"url": self, "pull_request_review_id": m.review.id, "id": m.id, "node_id": nodeID("PullRequestReviewComment", m.id),
		"diff_hunk": m.anchor.hunk, "path": m.anchor.path, "commit_id": m.current.commit, "original_commit_id": m.commit,
		"position": numberOrNil(m.current.position), "original_position": m.anchor.position, "user": s.userBody(m.author),
		"body": text.body, "created_at": stamp(m.created), "updated_at": stamp(text.updated), "html_url": html, "pull_request_url": pull,
		"author_association": p.repo.association(m.author), "reactions": s.rollup(self, m.reactions), "side": m.anchor.side,
		"original_line": m.anchor.line, "start_line": numberOrNil(m.current.start), "original_start_line": numberOrNil(m.anchor.start),
		"start_side": nil, "subject_type": "line",
		"_links": obj{"self": obj{"href": self}, "html": obj{"href": html}, "pull_request": obj{"href": pull}},
	}
	if m.anchor.start != 0 {
		body["start_side"] = m.anchor.startSide
	}
	if m.current.line != 0 {
		body["line"] = m.current.line
	}
	if m.replyTo != nil {
		body["in_reply_to_id"] = m.replyTo.id
	}
	return body
}

func (s *Server) remarkPage(m *reviewComment) string {
	return fmt.Sprintf("%s#discussion_r%d", s.pullPage(m.review.pull), m.id)
}

// raiseReview raises pull_request_review; payloads spell the state in lower case. before is the body that an edit
// replaced.
func (s *Server) raiseReview(action string, r *review, by *account, before *string, mode control.WebhookMode) *delivery {
	v := &r.history.now().value
	body := s.reviewBody(r, v)
	body["state"] = strings.ToLower(v.state)
	payload := obj{"review": body, "pull_request": s.pullSimple(r.pull, r.pull.now())}
	if before != nil {
		payload["changes"] = obj{"body": obj{"from": *before}}
	}
	return s.raise("pull_request_review", action, r.pull.repo, by, payload, mode)
}

func (s *Server) raiseRemark(action string, m *reviewComment, by *account, before *string, mode control.WebhookMode) *delivery {
	body := s.remarkBody(m, &m.history.now().value)
	if m.current.line == 0 {
		body["line"] = nil
	}
	payload := obj{"comment": body, "pull_request": s.pullSimple(m.review.pull, m.review.pull.now())}
	if before != nil {
		payload["changes"] = obj{"body": obj{"from": *before}}
	}
	return s.raise("pull_request_review_comment", action, m.review.pull.repo, by, payload, mode)
}

// spots finds where comments stand in the diff of a head: those written on it where they are, others where their
// lines went.
func (s *Server) spots(ctx context.Context, r *repo, base, head string, list []*reviewComment) (map[*reviewComment]spot, error) {
	found := map[*reviewComment]spot{}
	now, err := s.compareSHAs(ctx, r, base, head)
	if len(list) == 0 || errors.Is(err, errNoMergeBase) {
		return found, nil
	} else if err != nil {
		return nil, err
	}
	paths, commits := map[string]bool{}, map[string]moved{}
	for _, m := range list {
		paths[m.anchor.path], commits[m.commit] = true, nil
	}
	sameBase := map[string]bool{}
	for commit := range commits {
		if commits[commit], err = r.dir.movedLines(ctx, commit, head, paths); err != nil {
			return nil, err
		}
		was, err := s.compareSHAs(ctx, r, base, commit)
		if err != nil && !errors.Is(err, errNoMergeBase) {
			return nil, err
		}
		sameBase[commit] = err == nil && was.mergeBase.sha == now.mergeBase.sha
	}
	diff := newAnchorer(now.files)
	for _, m := range list {
		to := m.anchor
		to.position = 0
		if to.start, to.line = m.follow(commits[m.commit], sameBase[m.commit]); to.line == 0 {
			continue
		}
		if got, wrong := diff.resolve(to); wrong == "" {
			found[m] = spot{head, got.position, got.line, got.start}
		}
	}
	return found, nil
}

// newSpots finds where all inline comments of a pull request stand in its next version.
func (s *Server) newSpots(ctx context.Context, p *pull, next pullVersion) (map[*reviewComment]spot, error) {
	s.mu.Lock()
	list := p.remarks()
	s.mu.Unlock()
	return s.spots(ctx, p.repo, next.baseSHA, next.headSHA, list)
}

// follow returns the comment's lines in another head, line 0 where one is gone. Lines of the left side stay while
// the merge base does.
func (m *reviewComment) follow(by moved, sameBase bool) (start, line int) {
	to := func(side string, line int) int {
		switch {
		case line == 0 || side == left && sameBase:
			return line
		case side == left:
			return 0
		}
		return by.line(m.anchor.path, line)
	}
	line, start = to(m.anchor.side, m.anchor.line), to(m.anchor.startSide, m.anchor.start)
	if m.anchor.start != 0 && start == 0 {
		return 0, 0
	}
	return start, line
}

// move puts every inline comment where it stands now; what has no spot is outdated. The world's lock is held.
func (p *pull) move(spots map[*reviewComment]spot) {
	for _, m := range p.remarks() {
		to, found := spots[m]
		if !found {
			to.commit = m.current.commit
		}
		m.current = to
	}
}

// remarks are all inline comments of a pull request. The world's lock is held.
func (p *pull) remarks() []*reviewComment {
	var list []*reviewComment
	for _, r := range p.reviews {
		list = append(list, r.comments...)
	}
	return list
}
