package githubsim

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
)

// commitInfo is a commit as git shows it.
type commitInfo struct {
	sha, tree string
	parents   []string
	author    signature
	committer signature
	message   string
}

type signature struct{ name, email, date string }

// logFormat prints ten fields a commit, each ended by NUL, which no field can hold.
const logFormat = "--format=%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B"

// log runs git log over revisions and returns the commits in its order.
func (d gitDir) log(ctx context.Context, revisions ...string) ([]commitInfo, error) {
	args := append([]string{"log", "-z", "--no-color", "--no-decorate", "--no-show-signature", logFormat}, revisions...)
	out, err := d.run(ctx, nil, append(args, "--")...)
	if err != nil {
		return nil, err
	}
	fields := bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0})
	var list []commitInfo
	for ; len(fields) >= 10; fields = fields[10:] {
		f := func(i int) string { return string(fields[i]) }
		list = append(list, commitInfo{
			sha: f(0), tree: f(1), parents: strings.Fields(f(2)), author: signature{f(3), f(4), f(5)},
			committer: signature{f(6), f(7), f(8)}, message: strings.TrimRight(f(9), "\n"),
		})
	}
	return list, nil
}

// show returns single commits, in the order they are asked for.
func (d gitDir) show(ctx context.Context, shas ...string) ([]commitInfo, error) {
	list, err := d.log(ctx, append([]string{"--no-walk=unsorted"}, shas...)...)
	if err != nil {
		return nil, err
	}
	if len(list) != len(shas) {
		return nil, fmt.Errorf("git log: %d commits of %d", len(list), len(shas))
	}
	return list, nil
}

// commitBody is a commit of the REST API. full is the repository's name.
func (s *Server) commitBody(full string, c commitInfo) obj {
	api, page := s.APIURL()+"/repos/"+full, s.cfg.HTMLURL+"/"+full
	parents := []obj{}
	for _, p := range c.parents {
		parents = append(parents, obj{"sha": p, "url": api + "/commits/" + p, "html_url": page + "/commit/" + p})
	}
	sign := func(g signature) obj {
		return obj{"name": g.name, "email": g.email, "date": strings.Replace(g.date, "+00:00", "Z", 1)}
	}
	return obj{
		"sha": c.sha, "node_id": nodeID("Commit", int64(len(c.sha))), "url": api + "/commits/" + c.sha,
		"html_url": page + "/commit/" + c.sha, "comments_url": api + "/commits/" + c.sha + "/comments",
		"commit": obj{
			"url": api + "/git/commits/" + c.sha, "author": sign(c.author), "committer": sign(c.committer),
			"message": c.message, "comment_count": 0, "tree": obj{"sha": c.tree, "url": api + "/git/trees/" + c.tree},
			"verification": obj{"verified": false, "reason": "unsigned", "signature": nil, "payload": nil, "verified_at": nil},
		},
		// Nobody here has bound an address to an account, so GitHub would name nobody either.
		"author": nil, "committer": nil, "parents": parents,
	}
}

// getCommit answers one commit with what it changed against its first parent.
func (s *Server) getCommit(c *call) reply {
	ctx := c.r.Context()
	sha, err := c.repo.dir.commit(ctx, c.r.PathValue("ref"))
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.r.PathValue("ref"), c.route.link)
	}
	found, err := c.repo.dir.show(ctx, sha)
	if err != nil {
		return s.broken(c, err)
	}
	parent := emptyTree
	if len(found[0].parents) > 0 {
		parent = found[0].parents[0]
	}
	files, err := c.repo.dir.diff(ctx, parent, sha)
	if err != nil {
		return s.broken(c, err)
	}
	full := s.fullName(c.repo)
	body := s.commitBody(full, found[0])
	p := pageOf(c.r)
	p.size = min(p.size*10, 300)
	body["files"] = s.fileBodies(full, sha, cut(files, p))
	add, del := totals(files)
	body["stats"] = obj{"additions": add, "deletions": del, "total": add + del}
	return ok(body)
}

// hasCommit reports whether a full sha is a commit of the repository.
func (s *Server) hasCommit(ctx context.Context, r *repo, sha string) bool {
	s.mu.Lock()
	known := r.commits[sha]
	s.mu.Unlock()
	if known || !isHex(sha) {
		return known
	}
	kind, err := r.dir.line(ctx, "cat-file", "-t", sha)
	if err != nil || kind != "commit" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.commits == nil {
		r.commits = map[string]bool{}
	}
	r.commits[sha] = true
	return true
}

// fullName reads a repository's name for callers that do not hold the lock.
func (s *Server) fullName(r *repo) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.fullName()
}

// broken answers 500 where git failed; the reason is logged, as a caller of GitHub never learns it.
func (s *Server) broken(c *call, err error) reply {
	if c.r.Context().Err() == nil {
		s.cfg.Log.Error("githubsim: git", "class", c.class(), "err", err)
	}
	return refuse(http.StatusInternalServerError, "Server Error", c.route.link)
}
