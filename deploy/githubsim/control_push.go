package githubsim

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

func (s *Server) ctlPush(req *http.Request, in control.Push) (any, error) {
	r, err := s.ctlRepo(req)
	if err != nil {
		return nil, err
	}
	if in.Branch == "" {
		return nil, cannot(http.StatusBadRequest, "a push needs a branch")
	}
	return s.push(req.Context(), r, in)
}

func (s *Server) push(ctx context.Context, r *repo, in control.Push) (any, error) {
	r.pushing.Lock()
	defer r.pushing.Unlock()
	before, err := r.dir.line(ctx, "for-each-ref", "--format=%(objectname)", "refs/heads/"+in.Branch)
	if err != nil {
		return nil, err
	}
	after, err := s.moveBranch(ctx, r, before, in)
	if err != nil {
		return nil, err
	}
	out := control.Pushed{Before: before, After: after, Pulls: []control.Pull{}, Deliveries: []control.Delivery{}}
	if before == after {
		return out, nil
	}
	s.mu.Lock()
	r.pushed = s.now()
	s.mu.Unlock()
	return out, s.synchronize(ctx, r, in, &out)
}

// moveBranch puts the branch where the push wants it and returns the new tip.
func (s *Server) moveBranch(ctx context.Context, r *repo, before string, in control.Push) (string, error) {
	after, err := s.target(ctx, r, in)
	if err != nil {
		return "", cannot(http.StatusUnprocessableEntity, "push %s: %v", in.Branch, err)
	}
	ref := "refs/heads/" + in.Branch
	if before != "" && !in.Force && !r.dir.contains(ctx, after, before) {
		return "", cannot(http.StatusUnprocessableEntity, "push %s: not a fast-forward, and not forced", in.Branch)
	}
	if err := r.dir.setRef(ctx, ref, after); err != nil {
		return "", cannot(http.StatusUnprocessableEntity, "push %s: %v", in.Branch, err)
	}
	return after, nil
}

// target makes or finds the commit that a push ends at. New commits are made on a branch of their own first, so
// that a push that is refused changes nothing.
func (s *Server) target(ctx context.Context, r *repo, in control.Push) (string, error) {
	switch {
	case in.FromPath != "":
		return r.dir.fetch(ctx, in.FromPath, cmp.Or(in.FromRef, "HEAD"))
	case len(in.Commits) == 0 && in.SHA == "":
		return "", errors.New("nothing to push")
	case len(in.Commits) == 0:
		return r.dir.commit(ctx, in.SHA)
	}
	const stage = "githubsim-push"
	commits := append([]control.Commit{}, in.Commits...)
	if commits[0].Parent == "" {
		commits[0].Parent = in.SHA
		if tip, err := r.dir.commit(ctx, "refs/heads/"+in.Branch); in.SHA == "" && err == nil {
			commits[0].Parent = tip
		}
	}
	for i := range commits {
		commits[i].Branch = stage
	}
	s.mu.Lock()
	main := r.defaultBranch
	s.mu.Unlock()
	err := r.dir.importCommits(ctx, main, commits, s.now())
	after, missing := r.dir.commit(ctx, "refs/heads/"+stage)
	_, dropped := r.dir.run(ctx, nil, "update-ref", "-d", "refs/heads/"+stage)
	return after, errors.Join(err, missing, dropped)
}

// synchronize moves the open pull requests that come from the branch, in this repository and in its parent.
func (s *Server) synchronize(ctx context.Context, r *repo, in control.Push, out *control.Pushed) error {
	s.mu.Lock()
	var moved []*pull
	for _, base := range s.repos {
		for _, p := range base.pulls {
			if v := p.now(); v.state == "open" && v.headRepo == r && v.headRef == in.Branch {
				moved = append(moved, p)
			}
		}
	}
	by := s.sender(in.Options, r)
	s.mu.Unlock()
	for _, p := range moved {
		d, err := s.advance(ctx, p, by, out.Before, out.After, in.Webhook)
		if err != nil {
			return err
		}
		out.Deliveries = append(out.Deliveries, s.told(d)...)
		out.Pulls = append(out.Pulls, s.toldPull(p))
	}
	head, err := r.dir.show(ctx, out.After)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	suite := s.suiteBody(r, s.suiteOf(r, out.After), out.After, "queued", "")
	suite["before"], suite["head_branch"] = orZero(out.Before), in.Branch
	suite["latest_check_runs_count"], suite["check_runs_url"] = 0, suite["url"].(string)+"/check-runs"
	suite["head_commit"] = headCommit(head[0])
	d := s.raise("check_suite", "requested", r, by, obj{"check_suite": suite}, in.Webhook)
	out.Deliveries = append(out.Deliveries, s.told(d)...)
	return nil
}

// headCommit is a commit as check suites carry it.
func headCommit(c commitInfo) obj {
	person := func(g signature) obj { return obj{"name": g.name, "email": g.email} }
	return obj{
		"id": c.sha, "tree_id": c.tree, "message": c.message, "timestamp": c.author.date,
		"author": person(c.author), "committer": person(c.committer),
	}
}

// advance gives a pull request its new head.
func (s *Server) advance(ctx context.Context, p *pull, by *account, before, after string, mode control.WebhookMode) (*delivery, error) {
	s.mu.Lock()
	next := *p.now()
	s.mu.Unlock()
	next.headSHA = after
	if err := s.pin(ctx, p, &next); err != nil {
		return nil, err
	}
	// The base sha follows its branch only here, when the pull request itself moves: advancing the base alone
	// tells nobody anything.
	if tip, err := p.repo.dir.commit(ctx, "refs/heads/"+next.baseRef); err == nil {
		next.baseSHA = tip
	}
	if err := s.measure(ctx, p.repo, &next); err != nil {
		return nil, err
	}
	spots, err := s.newSpots(ctx, p, next)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.move(spots)
	v := p.change(s.now(), func(v *pullVersion) {
		v.headSHA, v.baseSHA, v.mergeable, v.mergeSHA = next.headSHA, next.baseSHA, next.mergeable, next.mergeSHA
		v.commits, v.additions, v.deletions, v.changed = next.commits, next.additions, next.deletions, next.changed
	})
	payload := obj{"number": p.number, "pull_request": s.pullBody(p, v), "before": orZero(before), "after": after}
	return s.raise("pull_request", "synchronize", p.repo, by, payload, mode), nil
}

// orZero is git's name for no commit.
func orZero(sha string) string {
	if sha == "" {
		return strings.Repeat("0", 40)
	}
	return sha
}

// suiteBody is the App's check suite of one commit.
func (s *Server) suiteBody(r *repo, id int64, sha, status, conclusion string) obj {
	now := stamp(s.now())
	pulls := []obj{}
	branch := any(nil)
	for _, p := range r.pulls {
		if v := p.now(); v.state == "open" && v.headSHA == sha && v.headRepo == r {
			pulls, branch = append(pulls, s.pullMinimal(p)), v.headRef
		}
	}
	body := obj{
		"id": id, "node_id": nodeID("CheckSuite", id), "head_branch": branch, "head_sha": sha, "status": status, "conclusion": nil,
		"url": s.APIURL() + "/repos/" + r.fullName() + "/check-suites/" + strconv.FormatInt(id, 10), "before": nil, "after": sha,
		"pull_requests": pulls, "app": s.appBody(), "created_at": now, "updated_at": now,
	}
	if conclusion != "" {
		body["conclusion"] = conclusion
	}
	return body
}
