package githubsim

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pull is a pull request. Every change of it is a new version, so that it can be read as it was.
type pull struct {
	id       int64
	number   int
	repo     *repo
	author   *account
	created  time.Time
	comments []*comment // deleted ones too
	reviews  []*review  // pending and deleted ones too
	versions []pullVersion
}

// pullVersion is a pull request as it was from at on.
type pullVersion struct {
	at       time.Time // of the change, exactly; updated is what GitHub shows
	reads    int       // reads that a fault has served the version before this one
	computed bool      // somebody has read it, so mergeable is known

	state, title, body string
	draft, locked      bool
	labels             []label
	headRepo           *repo // nil once the fork is gone
	headLabel, headRef string
	headSHA            string
	baseRef, baseSHA   string
	mergeable          bool
	mergeSHA           string // the throw-away merge, or what merging made
	commits            int
	additions          int
	deletions          int
	changed            int
	updated            time.Time
	closed, merged     time.Time
	mergedBy           *account
}

type label struct {
	id   int64
	name string
}

// shownComments counts the comments that are not deleted.
func (p *pull) shownComments() int {
	n := 0
	for _, m := range p.comments {
		if !m.history.now().deleted {
			n++
		}
	}
	return n
}

func (p *pull) now() *pullVersion { return &p.versions[len(p.versions)-1] }

// change appends a version made from the newest.
func (p *pull) change(at time.Time, with func(*pullVersion)) *pullVersion {
	next := *p.now()
	next.at, next.updated, next.reads, next.computed = at, at, 0, false
	with(&next)
	p.versions = append(p.versions, next)
	return p.now()
}

// read returns the version that a reader sees, nil where it sees no pull request yet.
func (p *pull) read(c *call) *pullVersion {
	f := c.hit.stale
	if f == nil {
		return p.now()
	}
	at := len(p.versions) - 1
	if f.Age > 0 {
		then := c.now.Add(-time.Duration(f.Age))
		for at >= 0 && p.versions[at].at.After(then) {
			at--
		}
	}
	if at >= 0 && p.versions[at].reads < f.Reads {
		p.versions[at].reads++
		at--
	}
	if at < 0 {
		return nil
	}
	return &p.versions[at]
}

// measure brings the sizes and the merge state of a version up to date with its two commits.
func (s *Server) measure(ctx context.Context, r *repo, v *pullVersion) error {
	found, err := s.compareSHAs(ctx, r, v.baseSHA, v.headSHA)
	if errors.Is(err, errNoMergeBase) { // a head was pushed that shares nothing with its base
		v.commits, v.changed, v.additions, v.deletions, v.mergeable, v.mergeSHA = 0, 0, 0, 0, false, ""
		return nil
	}
	if err != nil {
		return err
	}
	v.commits, v.changed = len(found.commits), len(found.files)
	v.additions, v.deletions = totals(found.files)
	v.mergeable, v.mergeSHA = false, ""
	if tree, clean := r.dir.mergeTree(ctx, v.baseSHA, v.headSHA); clean {
		message := fmt.Sprintf("Merge %s into %s", v.headSHA, v.baseSHA)
		v.mergeSHA, err = r.dir.commitTree(ctx, tree, message, v.baseSHA, v.headSHA)
		v.mergeable = true
	}
	return err
}

// pin keeps the head reachable from the base repository, whatever becomes of its branch or fork.
func (s *Server) pin(ctx context.Context, p *pull, v *pullVersion) error {
	if v.headRepo != nil && v.headRepo != p.repo {
		if _, err := p.repo.dir.fetch(ctx, v.headRepo.dir.path, v.headSHA); err != nil {
			return err
		}
	}
	return p.repo.dir.setRef(ctx, fmt.Sprintf("refs/pull/%d/head", p.number), v.headSHA)
}
