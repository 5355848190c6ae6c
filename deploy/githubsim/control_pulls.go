package githubsim

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// toldPull is a pull request as it is now, for callers that do not hold the lock.
func (s *Server) toldPull(p *pull) control.Pull {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pullAsIs(p)
}

func (s *Server) pullAsIs(p *pull) control.Pull {
	v := p.now()
	return control.Pull{
		ID: p.id, RepositoryID: p.repo.id, Number: p.number, State: v.state, Draft: v.draft, Merged: !v.merged.IsZero(),
		Title: v.title, HeadRef: v.headRef, HeadSHA: v.headSHA, BaseRef: v.baseRef, BaseSHA: v.baseSHA,
		HTMLURL: s.pullPage(p), UpdatedAt: v.updated,
	}
}

// ctlPull is the pull request a control path names.
func (s *Server) ctlPull(r *http.Request) (*pull, error) {
	found, err := s.ctlRepo(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := found.pull(pathNumber(r, "number")); p != nil {
		return p, nil
	}
	return nil, cannot(http.StatusNotFound, "no pull request %s", r.PathValue("number"))
}

func (s *Server) ctlGetPull(r *http.Request) (any, error) {
	p, err := s.ctlPull(r)
	if err != nil {
		return nil, err
	}
	return s.toldPull(p), nil
}

func (s *Server) ctlOpen(req *http.Request, in control.OpenPull) (any, error) {
	r, err := s.ctlRepo(req)
	if err != nil {
		return nil, err
	}
	r.pushing.Lock()
	defer r.pushing.Unlock()
	ctx := req.Context()
	v, err := s.newVersionOf(ctx, r, in)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	author := s.sender(in.Options, r)
	p := &pull{id: s.id(), number: len(r.pulls) + 1, repo: r, author: author, created: s.now()}
	s.id() // the issue's
	s.mu.Unlock()
	if err := s.pin(ctx, p, &v); err != nil {
		return nil, cannot(http.StatusUnprocessableEntity, "open: %v", err)
	}
	if err := s.measure(ctx, r, &v); err != nil {
		return nil, cannot(http.StatusUnprocessableEntity, "open: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v.at, v.updated = p.created, p.created
	p.versions = []pullVersion{v}
	r.pulls = append(r.pulls, p)
	d := s.raisePull("opened", p, author, obj{}, in.Webhook)
	return control.Changed{Pull: s.pullAsIs(p), Deliveries: s.told(d)}, nil
}

// newVersionOf resolves the two ends of a new pull request.
func (s *Server) newVersionOf(ctx context.Context, r *repo, in control.OpenPull) (pullVersion, error) {
	head, branch := r, in.Head
	s.mu.Lock()
	base := cmp.Or(in.Base, r.defaultBranch)
	if owner, ref, far := strings.Cut(in.Head, ":"); far {
		head, branch = s.forkOf(r, owner), ref
	}
	for _, p := range r.pulls {
		if v := p.now(); v.state == "open" && v.headRepo == head && v.headRef == branch && v.baseRef == base {
			s.mu.Unlock()
			return pullVersion{}, cannot(http.StatusUnprocessableEntity, "a pull request of %s onto %s is open: %d", branch, base, p.number)
		}
	}
	s.mu.Unlock()
	if head == nil {
		return pullVersion{}, cannot(http.StatusNotFound, "no fork %s", in.Head)
	}
	headSHA, err := head.dir.commit(ctx, "refs/heads/"+branch)
	if err != nil {
		return pullVersion{}, cannot(http.StatusUnprocessableEntity, "no branch %s", in.Head)
	}
	baseSHA, err := r.dir.commit(ctx, "refs/heads/"+base)
	if err != nil {
		return pullVersion{}, cannot(http.StatusUnprocessableEntity, "no branch %s", base)
	}
	return pullVersion{
		state: "open", title: cmp.Or(in.Title, branch), body: in.Body, draft: in.Draft, headRepo: head,
		headLabel: head.owner.login + ":" + branch, headRef: branch, headSHA: headSHA, baseRef: base, baseSHA: baseSHA,
	}, nil
}

// raisePull raises a pull_request event with the pull request as it is now.
func (s *Server) raisePull(action string, p *pull, by *account, payload obj, mode control.WebhookMode) *delivery {
	payload["number"], payload["pull_request"] = p.number, s.pullBody(p, p.now())
	return s.raise("pull_request", action, p.repo, by, payload, mode)
}

func (s *Server) ctlAct(req *http.Request, in control.Act) (any, error) {
	p, err := s.ctlPull(req)
	if err != nil {
		return nil, err
	}
	p.repo.pushing.Lock()
	defer p.repo.pushing.Unlock()
	s.mu.Lock()
	was := *p.now()
	by := s.sender(in.Options, p.repo)
	s.mu.Unlock()
	step, err := s.step(req.Context(), p, was, in)
	if err != nil {
		return nil, err
	}
	next := was
	step.next(&next)
	moves := next.headSHA != was.headSHA || next.baseSHA != was.baseSHA
	var spots map[*reviewComment]spot
	if moves {
		if spots, err = s.newSpots(req.Context(), p, next); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if moves {
		p.move(spots)
	}
	p.change(s.now(), func(v *pullVersion) {
		step.next(v)
		if in.Action == control.Merge {
			v.mergedBy = by
		}
	})
	d := s.raisePull(step.event, p, by, step.extra, in.Webhook)
	return control.Changed{Pull: s.pullAsIs(p), Deliveries: s.told(d)}, nil
}

// step is what one click does: the change, and the event that tells of it.
type step struct {
	event string
	extra obj
	next  func(*pullVersion)
}

// step prepares a click. It runs git where the click needs it, and refuses what GitHub would not offer.
func (s *Server) step(ctx context.Context, p *pull, was pullVersion, in control.Act) (step, error) {
	open := was.state == "open"
	refused := cannot(http.StatusUnprocessableEntity, "%s: the pull request is %s (draft %t)", in.Action, was.state, was.draft)
	now := s.now()
	simple := func(allowed bool, event string, next func(*pullVersion)) (step, error) {
		if !allowed {
			return step{}, refused
		}
		return step{event, obj{}, next}, nil
	}
	switch in.Action {
	case control.Close:
		return simple(open, "closed", func(v *pullVersion) { v.state, v.closed = "closed", now })
	case control.ToDraft:
		return simple(open && !was.draft, "converted_to_draft", func(v *pullVersion) { v.draft = true })
	case control.Ready:
		return simple(open && was.draft, "ready_for_review", func(v *pullVersion) { v.draft = false })
	case control.Lock:
		return simple(!was.locked, "locked", func(v *pullVersion) { v.locked = true })
	case control.Unlock:
		return simple(was.locked, "unlocked", func(v *pullVersion) { v.locked = false })
	case control.Label:
		return s.labelStep(p, in)
	case control.Edit:
		return s.editStep(was, in), nil
	case control.Reopen:
		if open || !was.merged.IsZero() {
			return step{}, refused
		}
		return s.reopenStep(ctx, p, was)
	case control.Merge:
		if !open || was.draft {
			return step{}, refused
		}
		return s.mergeStep(ctx, p, was, in, now)
	case control.Retarget:
		if !open || in.Base == "" {
			return step{}, refused
		}
		return s.retargetStep(ctx, p, was, in)
	}
	return step{}, cannot(http.StatusBadRequest, "no action %q", in.Action)
}

func (s *Server) labelStep(p *pull, in control.Act) (step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := label{s.id(), in.Label}
	return step{"labeled", obj{"label": s.labelBody(p.repo, l)}, func(v *pullVersion) {
		v.labels = append(append([]label{}, v.labels...), l)
	}}, nil
}

func (s *Server) editStep(was pullVersion, in control.Act) step {
	changes := obj{}
	if in.Title != "" {
		changes["title"] = obj{"from": was.title}
	}
	if in.Body != "" {
		changes["body"] = obj{"from": was.body}
	}
	return step{"edited", obj{"changes": changes}, func(v *pullVersion) {
		v.title, v.body = cmp.Or(in.Title, v.title), cmp.Or(in.Body, v.body)
	}}
}

// reopenStep takes the branch as it is now: pushes to it while the pull request was closed count at once.
func (s *Server) reopenStep(ctx context.Context, p *pull, was pullVersion) (step, error) {
	if was.headRepo == nil {
		return step{}, cannot(http.StatusUnprocessableEntity, "reopen: the head repository is gone")
	}
	next := was
	var err error
	if next.headSHA, err = was.headRepo.dir.commit(ctx, "refs/heads/"+was.headRef); err != nil {
		return step{}, cannot(http.StatusUnprocessableEntity, "reopen: the head branch is gone")
	}
	if err := s.pin(ctx, p, &next); err != nil {
		return step{}, err
	}
	if err := s.measure(ctx, p.repo, &next); err != nil {
		return step{}, err
	}
	return step{"reopened", obj{}, func(v *pullVersion) {
		comments := *v
		*v = next
		v.at, v.updated = comments.at, comments.updated
		v.state, v.closed, v.computed = "open", time.Time{}, false
	}}, nil
}

func (s *Server) mergeStep(ctx context.Context, p *pull, was pullVersion, in control.Act, now time.Time) (step, error) {
	dir, ref := p.repo.dir, "refs/heads/"+was.baseRef
	tip, err := dir.commit(ctx, ref)
	if err != nil {
		return step{}, cannot(http.StatusUnprocessableEntity, "merge: the base branch is gone")
	}
	tree, clean := dir.mergeTree(ctx, tip, was.headSHA)
	if !clean {
		return step{}, cannot(http.StatusMethodNotAllowed, "merge: conflict")
	}
	parents := []string{tip, was.headSHA}
	if in.Squash {
		parents = parents[:1]
	}
	made, err := dir.commitTree(ctx, tree, "Merge pull request: "+was.title, parents...)
	if err != nil {
		return step{}, err
	}
	if err := dir.setRef(ctx, ref, made); err != nil {
		return step{}, err
	}
	return step{"closed", obj{}, func(v *pullVersion) {
		v.state, v.closed, v.merged, v.mergeSHA = "closed", now, now, made
	}}, nil
}

func (s *Server) retargetStep(ctx context.Context, p *pull, was pullVersion, in control.Act) (step, error) {
	next := was
	next.baseRef = in.Base
	var err error
	if next.baseSHA, err = p.repo.dir.commit(ctx, "refs/heads/"+in.Base); err != nil {
		return step{}, cannot(http.StatusUnprocessableEntity, "no branch %s", in.Base)
	}
	if err := s.measure(ctx, p.repo, &next); err != nil {
		return step{}, cannot(http.StatusUnprocessableEntity, "retarget: %v", err)
	}
	changes := obj{"base": obj{"ref": obj{"from": was.baseRef}, "sha": obj{"from": was.baseSHA}}}
	return step{"edited", obj{"changes": changes}, func(v *pullVersion) {
		v.baseRef, v.baseSHA, v.mergeable, v.mergeSHA = next.baseRef, next.baseSHA, next.mergeable, next.mergeSHA
		v.commits, v.additions, v.deletions, v.changed = next.commits, next.additions, next.deletions, next.changed
	}}, nil
}
