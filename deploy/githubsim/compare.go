package githubsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Caps of a comparison.
const (
	maxCompareFiles   = 300
	maxCompareCommits = 250
	maxDiffLines      = 20000
)

// errNoMergeBase is two histories that share nothing.
var errNoMergeBase = errors.New("no common ancestor")

// comparison is everything about merge-base(base, head)..head. It never changes, so it is kept.
type comparison struct {
	base, mergeBase commitInfo
	ahead, behind   int
	commits         []commitInfo // oldest first
	files           []changedFile
}

// compareSHAs compares two commits three-dot.
func (s *Server) compareSHAs(ctx context.Context, r *repo, base, head string) (*comparison, error) {
	key := base + head
	s.mu.Lock()
	kept := r.cache[key]
	s.mu.Unlock()
	if kept != nil {
		return kept, nil
	}
	mb, err := r.dir.line(ctx, "merge-base", base, head)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errNoMergeBase
	}
	made := &comparison{}
	ends, err := r.dir.show(ctx, base)
	if err != nil {
		return nil, err
	}
	made.base, made.mergeBase = ends[0], ends[0]
	if mb != base {
		if ends, err = r.dir.show(ctx, mb); err != nil {
			return nil, err
		}
		made.mergeBase = ends[0]
	}
	if made.commits, err = r.dir.log(ctx, "--reverse", "--topo-order", base+".."+head); err != nil {
		return nil, err
	}
	made.ahead = len(made.commits)
	if mb != base {
		behind, err := r.dir.line(ctx, "rev-list", "--count", head+".."+base)
		if err != nil {
			return nil, err
		}
		if made.behind, err = strconv.Atoi(behind); err != nil {
			return nil, fmt.Errorf("git rev-list: %w", err)
		}
	}
	if made.files, err = r.dir.diff(ctx, mb, head); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(r.cache) > 256 {
		r.cache = nil
	}
	if r.cache == nil {
		r.cache = map[string]*comparison{}
	}
	r.cache[key] = made
	return made, nil
}

func (c *comparison) status() string {
	switch {
	case c.ahead > 0 && c.behind > 0:
		return "diverged"
	case c.ahead > 0:
		return "ahead"
	case c.behind > 0:
		return "behind"
	}
	return "identical"
}

// compare answers GET compare/BASE...HEAD.
func (s *Server) compare(c *call) reply {
	base, head, cutHere := strings.Cut(c.r.PathValue("basehead"), "...")
	if !cutHere {
		return c.notFound()
	}
	ctx := c.r.Context()
	baseSHA, err := s.revision(ctx, c.repo, base)
	if err != nil {
		return c.notFound()
	}
	headSHA, err := s.revision(ctx, c.repo, head)
	if err != nil {
		return c.notFound()
	}
	found, err := s.compareSHAs(ctx, c.repo, baseSHA, headSHA)
	if errors.Is(err, errNoMergeBase) {
		return refuse(http.StatusNotFound, fmt.Sprintf("No common ancestor between %s and %s.", base, head), c.route.link)
	} else if err != nil {
		return s.broken(c, err)
	}
	if wantsDiff(c) {
		return s.rawDiff(c, found.mergeBase.sha, headSHA, found.files)
	}
	return s.comparisonReply(c, found, base, head, headSHA)
}

func (s *Server) comparisonReply(c *call, found *comparison, base, head, headSHA string) reply {
	full := s.fullName(c.repo)
	p := pageOf(c.r)
	commits, header := found.commits, http.Header(nil)
	if p.asked {
		commits, header = cut(commits, p), s.links(c, p, len(commits))
	} else if len(commits) > maxCompareCommits {
		commits = commits[len(commits)-maxCompareCommits:]
	}
	list := []obj{}
	for _, one := range commits {
		list = append(list, s.commitBody(full, one))
	}
	files := []changedFile(nil)
	if p.number == 1 {
		files = found.files[:min(len(found.files), maxCompareFiles)]
	}
	api, page := s.APIURL()+"/repos/"+full+"/compare/", s.cfg.HTMLURL+"/"+full+"/compare/"
	span := escapePath(base) + "..." + escapePath(head)
	return reply{status: http.StatusOK, header: header, body: obj{
		"url": api + span, "html_url": page + span, "permalink_url": page + found.base.sha + "..." + headSHA,
		"diff_url": page + span + ".diff", "patch_url": page + span + ".patch",
		"base_commit": s.commitBody(full, found.base), "merge_base_commit": s.commitBody(full, found.mergeBase),
		"status": found.status(), "ahead_by": found.ahead, "behind_by": found.behind,
		"total_commits": len(found.commits), "commits": list, "files": s.fileBodies(full, headSHA, files),
	}}
}

// revision resolves one side of a comparison: a name here, or "owner:branch" of a fork.
func (s *Server) revision(ctx context.Context, r *repo, name string) (string, error) {
	owner, branch, far := strings.Cut(name, ":")
	if !far {
		return r.dir.commit(ctx, name)
	}
	s.mu.Lock()
	from := s.forkOf(r, owner)
	s.mu.Unlock()
	if from == nil {
		return "", errNoRevision
	}
	sha, err := from.dir.commit(ctx, branch)
	if err != nil || from == r {
		return sha, err
	}
	return r.dir.fetch(ctx, from.dir.path, sha)
}

// forkOf finds the repository of the same network that owner has.
func (w *world) forkOf(r *repo, owner string) *repo {
	root := r
	if r.parent != nil {
		root = r.parent
	}
	for _, one := range w.repos {
		if (one == root || one.parent == root) && strings.EqualFold(one.owner.login, owner) {
			return one
		}
	}
	return nil
}

// wantsDiff reports whether the caller asked for the diff itself instead of JSON.
func wantsDiff(c *call) bool {
	accept := c.r.Header.Get("Accept")
	return strings.Contains(accept, "vnd.github") && strings.Contains(accept, ".diff")
}

// rawDiff answers with git's diff, or 406 where it is too large to be one answer.
func (s *Server) rawDiff(c *call, from, to string, files []changedFile) reply {
	const link = docs + "/pulls/pulls#list-pull-requests-files"
	tooLarge := func(message string) reply {
		return refuse(http.StatusNotAcceptable, message, link, fieldError("PullRequest", "diff", "too_large", ""))
	}
	if len(files) > maxCompareFiles {
		return tooLarge("Sorry, the diff exceeded the maximum number of files (300). Consider using 'List pull requests files' API or locally cloning the repository instead.")
	}
	out, err := c.repo.dir.run(c.r.Context(), nil, "diff-tree", "-r", "-M", "-p", "--no-color", "--no-ext-diff", "--no-textconv", from, to)
	if err != nil {
		return s.broken(c, err)
	}
	if bytes.Count(out, []byte("\n")) > maxDiffLines {
		return tooLarge("Sorry, the diff exceeded the maximum number of lines (20000)")
	}
	return reply{status: http.StatusOK, raw: out, header: http.Header{"Content-Type": {"application/vnd.github.v3.diff; charset=utf-8"}}}
}
