package githubsim

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// repo is a repository. id and dir never change; the rest is guarded by the world's lock.
type repo struct {
	id      int64
	dir     gitDir
	pushing *sync.Mutex // one change of refs at a time among a repository and its forks; taken before the world's lock

	owner         *account
	name          string
	private       bool
	archived      bool
	defaultBranch string
	parent        *repo // what it was forked from
	created       time.Time
	pushed        time.Time
	pulls         []*pull // number n is pulls[n-1]
	checks        []*checkRun
	statuses      []*commitStatus
	collaborators map[*account]string
	cache         map[string]*comparison // by base and head sha: a comparison never changes
	commits       map[string]bool        // that were found once: none ever goes
}

func (r *repo) fullName() string { return r.owner.login + "/" + r.name }

// pull returns a pull request by number, nil where there is none.
func (r *repo) pull(number int64) *pull {
	if number < 1 || number > int64(len(r.pulls)) {
		return nil
	}
	return r.pulls[number-1]
}

// repoBody is a repository as lists, pull requests and payloads carry it.
func (s *Server) repoBody(r *repo) obj {
	api, page := s.APIURL()+"/repos/"+r.fullName(), s.cfg.HTMLURL+"/"+r.fullName()
	host := strings.TrimPrefix(strings.TrimPrefix(s.cfg.HTMLURL, "https://"), "http://")
	visibility := "public"
	if r.private {
		visibility = "private"
	}
	open := 0
	for _, p := range r.pulls {
		if p.now().state == "open" {
			open++
		}
	}
	body := obj{
		"id": r.id, "node_id": nodeID("Repository", r.id), "name": r.name, "full_name": r.fullName(), "private": r.private,
		"owner": s.userBody(r.owner), "html_url": page, "description": nil, "fork": r.parent != nil, "url": api,
		"created_at": stamp(r.created), "updated_at": stamp(r.created), "pushed_at": stamp(r.pushed),
		"git_url": "git://" + host + "/" + r.fullName() + ".git", "ssh_url": "git@" + host + ":" + r.fullName() + ".git",
		"clone_url": page + ".git", "svn_url": page, "homepage": nil, "size": 0, "stargazers_count": 0, "watchers_count": 0,
		"language": nil, "has_issues": true, "has_projects": true, "has_downloads": true, "has_wiki": true, "has_pages": false,
		"has_discussions": false, "forks_count": 0, "mirror_url": nil, "archived": r.archived, "disabled": false,
		"open_issues_count": open, "license": nil, "allow_forking": true, "is_template": false,
		"web_commit_signoff_required": false, "topics": []string{}, "visibility": visibility, "forks": 0, "open_issues": open,
		"watchers": 0, "default_branch": r.defaultBranch, "custom_properties": obj{},
	}
	for name, tail := range repoLinks {
		body[name] = api + tail
	}
	return body
}

// repoLinks are the URLs of a repository's body, below its own.
var repoLinks = map[string]string{
	"archive_url": "/{archive_format}{/ref}", "assignees_url": "/assignees{/user}", "blobs_url": "/git/blobs{/sha}",
	"branches_url": "/branches{/branch}", "collaborators_url": "/collaborators{/collaborator}",
	"comments_url": "/comments{/number}", "commits_url": "/commits{/sha}", "compare_url": "/compare/{base}...{head}",
	"contents_url": "/contents/{+path}", "contributors_url": "/contributors", "deployments_url": "/deployments",
	"downloads_url": "/downloads", "events_url": "/events", "forks_url": "/forks", "git_commits_url": "/git/commits{/sha}",
	"git_refs_url": "/git/refs{/sha}", "git_tags_url": "/git/tags{/sha}", "hooks_url": "/hooks",
	"issue_comment_url": "/issues/comments{/number}", "issue_events_url": "/issues/events{/number}",
	"issues_url": "/issues{/number}", "keys_url": "/keys{/key_id}", "labels_url": "/labels{/name}",
	"languages_url": "/languages", "merges_url": "/merges", "milestones_url": "/milestones{/number}",
	"notifications_url": "/notifications{?since,all,participating}", "pulls_url": "/pulls{/number}",
	"releases_url": "/releases{/id}", "stargazers_url": "/stargazers", "statuses_url": "/statuses/{sha}",
	"subscribers_url": "/subscribers", "subscription_url": "/subscription", "tags_url": "/tags", "teams_url": "/teams",
	"trees_url": "/git/trees{/sha}",
}

func (s *Server) getRepo(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := s.repoBody(c.repo)
	body["network_count"], body["subscribers_count"] = 0, 0
	if c.repo.parent != nil {
		body["parent"], body["source"] = s.repoBody(c.repo.parent), s.repoBody(c.repo.parent)
	}
	return ok(body)
}

// permission is what an account may do: the role's name, and the coarser word that older clients know.
func (r *repo) permission(a *account) (role, legacy string) {
	role = r.collaborators[a]
	switch {
	case a == r.owner:
		role = "admin"
	case role == "" && !r.private:
		role = "read"
	case role == "":
		role = "none"
	}
	legacy = map[string]string{"maintain": "write", "triage": "read"}[role]
	if legacy == "" {
		legacy = role
	}
	return role, legacy
}

// association is how GitHub words an author's part in a repository.
func (r *repo) association(a *account) string {
	switch {
	case a == r.owner:
		return "OWNER"
	case r.collaborators[a] != "":
		return "COLLABORATOR"
	}
	return "NONE"
}

func (s *Server) getPermission(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[strings.ToLower(c.r.PathValue("login"))]
	if a == nil {
		return refuse(http.StatusNotFound, c.r.PathValue("login")+" is not a user", c.route.link)
	}
	role, legacy := c.repo.permission(a)
	user := s.userBody(a)
	user["role_name"] = role
	can := levels[legacy]
	user["permissions"] = obj{
		"pull": can >= 1, "triage": role == "triage" || can >= 2, "push": can >= 2,
		"maintain": role == "maintain" || can >= 3, "admin": can >= 3,
	}
	return ok(obj{"permission": legacy, "role_name": role, "user": user})
}
