package githubsim

import (
	"fmt"
)

// pullBody is a pull request as GET and payloads carry it. A nil mergeable means that nobody has asked yet.
func (s *Server) pullBody(p *pull, v *pullVersion) obj {
	body := s.pullSimple(p, v)
	body["merged"], body["merged_by"] = !v.merged.IsZero(), s.userOrNil(v.mergedBy)
	body["mergeable"], body["rebaseable"], body["mergeable_state"] = nil, nil, "unknown"
	if v.computed && v.state == "open" {
		body["mergeable"], body["rebaseable"] = v.mergeable, v.mergeable
		body["mergeable_state"] = map[bool]string{true: "clean", false: "dirty"}[v.mergeable]
	}
	body["comments"], body["review_comments"], body["maintainer_can_modify"] = p.shownComments(), p.shownReviewComments(), false
	body["commits"], body["additions"], body["deletions"], body["changed_files"] = v.commits, v.additions, v.deletions, v.changed
	return body
}

// pullSimple is the shorter form of lists.
func (s *Server) pullSimple(p *pull, v *pullVersion) obj {
	full := p.repo.fullName()
	api := fmt.Sprintf("%s/repos/%s", s.APIURL(), full)
	self, issue := fmt.Sprintf("%s/pulls/%d", api, p.number), fmt.Sprintf("%s/issues/%d", api, p.number)
	html := s.pullPage(p)
	links := map[string]string{
		"self": self, "html": html, "issue": issue, "comments": issue + "/comments", "review_comments": self + "/comments",
		"review_comment": api + "/pulls/comments{/number}", "commits": self + "/commits", "statuses": api + "/statuses/" + v.headSHA,
	}
	hrefs := obj{}
	for name, href := range links {
		hrefs[name] = obj{"href": href}
	}
	body := obj{
		"url": self, "id": p.id, "node_id": nodeID("PullRequest", p.id), "html_url": html, "diff_url": html + ".diff",
		"patch_url": html + ".patch", "issue_url": issue, "number": p.number, "state": v.state, "locked": v.locked,
		"title": v.title, "user": s.userBody(p.author), "body": nil, "created_at": stamp(p.created),
		"updated_at": stamp(v.updated), "closed_at": stampOrNil(v.closed), "merged_at": stampOrNil(v.merged),
		"merge_commit_sha": nil, "assignee": nil, "assignees": []obj{}, "requested_reviewers": []obj{},
		"requested_teams": []obj{}, "labels": s.labelBodies(p, v), "milestone": nil, "draft": v.draft,
		"commits_url": links["commits"], "review_comments_url": links["review_comments"],
		"review_comment_url": links["review_comment"], "comments_url": links["comments"], "statuses_url": links["statuses"],
		"head": s.endBody(v.headLabel, v.headRef, v.headSHA, v.headRepo), "_links": hrefs,
		"base":               s.endBody(p.repo.owner.login+":"+v.baseRef, v.baseRef, v.baseSHA, p.repo),
		"author_association": p.repo.association(p.author), "auto_merge": nil, "active_lock_reason": nil,
	}
	if v.body != "" {
		body["body"] = v.body
	}
	if v.mergeSHA != "" && (v.computed || !v.merged.IsZero()) {
		body["merge_commit_sha"] = v.mergeSHA
	}
	return body
}

// endBody is one end of a pull request. The repository of a fork that is gone is null.
func (s *Server) endBody(name, ref, sha string, r *repo) obj {
	end := obj{"label": name, "ref": ref, "sha": sha, "user": nil, "repo": nil}
	if r != nil {
		end["user"], end["repo"] = s.userBody(r.owner), s.repoBody(r)
	}
	return end
}

func (s *Server) labelBodies(p *pull, v *pullVersion) []obj {
	list := []obj{}
	for _, l := range v.labels {
		list = append(list, s.labelBody(p.repo, l))
	}
	return list
}

func (s *Server) labelBody(r *repo, l label) obj {
	return obj{
		"id": l.id, "node_id": nodeID("Label", l.id), "url": s.APIURL() + "/repos/" + r.fullName() + "/labels/" + escapePath(l.name),
		"name": l.name, "color": "d73a4a", "default": false, "description": nil,
	}
}

func (s *Server) pullPage(p *pull) string {
	return fmt.Sprintf("%s/%s/pull/%d", s.cfg.HTMLURL, p.repo.fullName(), p.number)
}

// pullMinimal is how check runs name a pull request.
func (s *Server) pullMinimal(p *pull) obj {
	v := p.now()
	end := func(ref, sha string) obj {
		return obj{"ref": ref, "sha": sha, "repo": obj{"id": p.repo.id, "name": p.repo.name, "url": s.APIURL() + "/repos/" + p.repo.fullName()}}
	}
	return obj{
		"id": p.id, "number": p.number, "url": fmt.Sprintf("%s/repos/%s/pulls/%d", s.APIURL(), p.repo.fullName(), p.number),
		"head": end(v.headRef, v.headSHA), "base": end(v.baseRef, v.baseSHA),
	}
}

// issueBody is the pull request as the issue that its comments belong to.
func (s *Server) issueBody(p *pull) obj {
	v, api := p.now(), fmt.Sprintf("%s/repos/%s", s.APIURL(), p.repo.fullName())
	self, html := fmt.Sprintf("%s/issues/%d", api, p.number), s.pullPage(p)
	body := obj{
		"url": self, "repository_url": api, "labels_url": self + "/labels{/name}", "comments_url": self + "/comments",
		"events_url": self + "/events", "html_url": html, "id": p.id + 1, "node_id": nodeID("Issue", p.id+1),
		"number": p.number, "title": v.title, "user": s.userBody(p.author), "labels": s.labelBodies(p, v), "state": v.state,
		"locked": v.locked, "assignee": nil, "assignees": []obj{}, "milestone": nil, "comments": p.shownComments(),
		"created_at": stamp(p.created), "updated_at": stamp(v.updated), "closed_at": stampOrNil(v.closed),
		"author_association": p.repo.association(p.author), "active_lock_reason": nil, "body": nil, "draft": v.draft,
		"reactions": s.rollup(self, nil), "timeline_url": self + "/timeline", "performed_via_github_app": nil, "state_reason": nil,
		"pull_request": obj{
			"url": fmt.Sprintf("%s/pulls/%d", api, p.number), "html_url": html, "diff_url": html + ".diff",
			"patch_url": html + ".patch", "merged_at": stampOrNil(v.merged),
		},
	}
	if v.body != "" {
		body["body"] = v.body
	}
	return body
}
