package githubsim

import (
	"net/url"
	"strings"
)

// Who may call a route.
type caller int

const (
	byToken caller = iota // an installation token
	byApp                 // an App JWT
	byAny                 // either
)

// route is one operation of the REST API.
type route struct {
	method, path string
	class        string // what faults and the truth log call it
	by           caller
	need         string // "permission=level", alternatives joined by "; " as in x-accepted-github-permissions
	link         string // page that error bodies point at
	create       bool   // counts against the limits for content creation
	handle       func(*call) reply
}

// repoRoutes are served below /repos/{owner}/{repo} and below /repositories/{id}.
func (s *Server) repoRoutes() []route {
	const comments, checks = docs + "/issues/comments", docs + "/checks/runs"
	const reviews, remarks, statuses = docs + "/pulls/reviews", docs + "/pulls/comments", docs + "/commits/statuses"
	const talk = "issues=%s; pull_requests=%s"
	level := func(l string) string { return strings.ReplaceAll(talk, "%s", l) }
	return []route{
		{method: "GET", path: "", class: "repos.get", need: "metadata=read", link: docs + "/repos/repos#get-a-repository", handle: s.getRepo},
		{method: "GET", path: "/installation", class: "apps.repo_installation", by: byApp, handle: s.getRepoInstallation},
		{method: "GET", path: "/collaborators/{login}/permission", class: "repos.permission", need: "metadata=read", link: docs + "/collaborators/collaborators", handle: s.getPermission},
		{method: "GET", path: "/pulls", class: "pulls.list", need: "pull_requests=read", link: docs + "/pulls/pulls#list-pull-requests", handle: s.listPulls},
		{method: "GET", path: "/pulls/comments", class: "review_comments.list", need: "pull_requests=read", link: remarks, handle: s.listRepoRemarks},
		{method: "GET", path: "/pulls/{number}", class: "pulls.get", need: "pull_requests=read", link: docs + "/pulls/pulls#get-a-pull-request", handle: s.getPull},
		{method: "GET", path: "/pulls/{number}/files", class: "pulls.files", need: "pull_requests=read", link: docs + "/pulls/pulls#list-pull-requests-files", handle: s.listFiles},
		{method: "GET", path: "/pulls/{number}/commits", class: "pulls.commits", need: "pull_requests=read", link: docs + "/pulls/pulls#list-commits-on-a-pull-request", handle: s.listPullCommits},
		{method: "GET", path: "/pulls/{number}/reviews", class: "reviews.list", need: "pull_requests=read", link: reviews + "#list-reviews-for-a-pull-request", handle: s.listReviews},
		{method: "POST", path: "/pulls/{number}/reviews", class: "reviews.create", need: "pull_requests=write", link: reviews + "#create-a-review-for-a-pull-request", create: true, handle: s.createReview},
		{method: "GET", path: "/pulls/{number}/reviews/{id}", class: "reviews.get", need: "pull_requests=read", link: reviews + "#get-a-review-for-a-pull-request", handle: s.getReview},
		{method: "PUT", path: "/pulls/{number}/reviews/{id}", class: "reviews.update", need: "pull_requests=write", link: reviews + "#update-a-review-for-a-pull-request", handle: s.updateReview},
		{method: "DELETE", path: "/pulls/{number}/reviews/{id}", class: "reviews.delete", need: "pull_requests=write", link: reviews + "#delete-a-pending-review-for-a-pull-request", handle: s.deleteReview},
		{method: "POST", path: "/pulls/{number}/reviews/{id}/events", class: "reviews.submit", need: "pull_requests=write", link: reviews + "#submit-a-review-for-a-pull-request", create: true, handle: s.submitReview},
		{method: "GET", path: "/pulls/{number}/reviews/{id}/comments", class: "reviews.comments", need: "pull_requests=read", link: reviews + "#list-comments-for-a-pull-request-review", handle: s.listReviewRemarks},
		{method: "GET", path: "/pulls/{number}/comments", class: "review_comments.list", need: "pull_requests=read", link: remarks + "#list-review-comments-on-a-pull-request", handle: s.listRemarks},
		{method: "GET", path: "/pulls/comments/{id}", class: "review_comments.get", need: "pull_requests=read", link: remarks + "#get-a-review-comment-for-a-pull-request", handle: s.getRemark},
		{method: "PATCH", path: "/pulls/comments/{id}", class: "review_comments.update", need: "pull_requests=write", link: remarks + "#update-a-review-comment-for-a-pull-request", handle: s.updateRemark},
		{method: "DELETE", path: "/pulls/comments/{id}", class: "review_comments.delete", need: "pull_requests=write", link: remarks + "#delete-a-review-comment-for-a-pull-request", handle: s.deleteRemark},
		{method: "GET", path: "/compare/{basehead...}", class: "repos.compare", need: "contents=read", link: docs + "/commits/commits#compare-two-commits", handle: s.compare},
		{method: "GET", path: "/contents/{path...}", class: "repos.contents", need: "contents=read", link: docs + "/repos/contents#get-repository-content", handle: s.getContents},
		{method: "GET", path: "/git/blobs/{sha}", class: "git.blob", need: "contents=read", link: docs + "/git/blobs#get-a-blob", handle: s.getBlob},
		{method: "GET", path: "/git/ref/{ref...}", class: "git.ref", need: "contents=read", link: docs + "/git/refs#get-a-reference", handle: s.getRef},
		{method: "GET", path: "/commits/{ref}", class: "repos.commit", need: "contents=read", link: docs + "/commits/commits#get-a-commit", handle: s.getCommit},
		{method: "GET", path: "/issues/comments", class: "comments.list", need: level("read"), link: comments, handle: s.listRepoComments},
		{method: "GET", path: "/issues/{number}/comments", class: "comments.list", need: level("read"), link: comments + "#list-issue-comments", handle: s.listComments},
		{method: "POST", path: "/issues/{number}/comments", class: "comments.create", need: level("write"), link: comments + "#create-an-issue-comment", create: true, handle: s.createComment},
		{method: "GET", path: "/issues/comments/{id}", class: "comments.get", need: level("read"), link: comments + "#get-an-issue-comment", handle: s.getComment},
		{method: "PATCH", path: "/issues/comments/{id}", class: "comments.update", need: level("write"), link: comments + "#update-an-issue-comment", handle: s.updateComment},
		{method: "DELETE", path: "/issues/comments/{id}", class: "comments.delete", need: level("write"), link: comments + "#delete-an-issue-comment", handle: s.deleteComment},
		{method: "GET", path: "/issues/comments/{id}/reactions", class: "reactions.list", need: level("read"), link: docs + "/reactions/reactions", handle: s.listReactions},
		{method: "POST", path: "/issues/comments/{id}/reactions", class: "reactions.create", need: level("write"), link: docs + "/reactions/reactions", create: true, handle: s.createReaction},
		{method: "GET", path: "/pulls/comments/{id}/reactions", class: "reactions.list", need: "pull_requests=read", link: docs + "/reactions/reactions", handle: s.listReactions},
		{method: "POST", path: "/pulls/comments/{id}/reactions", class: "reactions.create", need: "pull_requests=write", link: docs + "/reactions/reactions", create: true, handle: s.createReaction},
		{method: "POST", path: "/statuses/{sha}", class: "statuses.create", need: "statuses=write", link: statuses + "#create-a-commit-status", create: true, handle: s.createStatus},
		{method: "GET", path: "/commits/{ref}/statuses", class: "statuses.list", need: "statuses=read", link: statuses + "#list-commit-statuses-for-a-reference", handle: s.listStatuses},
		{method: "GET", path: "/commits/{ref}/status", class: "statuses.combined", need: "statuses=read", link: statuses + "#get-the-combined-status-for-a-specific-reference", handle: s.combinedStatus},
		{method: "POST", path: "/check-runs", class: "checks.create", need: "checks=write", link: checks + "#create-a-check-run", create: true, handle: s.createCheck},
		{method: "GET", path: "/check-runs/{id}", class: "checks.get", need: "checks=read", link: checks + "#get-a-check-run", handle: s.getCheck},
		{method: "PATCH", path: "/check-runs/{id}", class: "checks.update", need: "checks=write", link: checks + "#update-a-check-run", handle: s.updateCheck},
		{method: "GET", path: "/check-runs/{id}/annotations", class: "checks.annotations", need: "checks=read", link: checks, handle: s.listAnnotations},
		{method: "GET", path: "/commits/{ref}/check-runs", class: "checks.list", need: "checks=read", link: checks + "#list-check-runs-for-a-git-reference", handle: s.listChecks},
	}
}

// rootRoutes are served as they are.
func (s *Server) rootRoutes() []route {
	const apps, hook = docs + "/apps/apps", docs + "/apps/webhooks"
	return []route{
		{method: "GET", path: "/app", class: "apps.get", by: byApp, link: apps, handle: s.getApp},
		{method: "GET", path: "/app/installations", class: "apps.installations", by: byApp, link: apps, handle: s.listInstallations},
		{method: "GET", path: "/app/installations/{id}", class: "apps.installation", by: byApp, link: apps, handle: s.getInstallation},
		{method: "POST", path: "/app/installations/{id}/access_tokens", class: "tokens.create", by: byApp, link: docs + "/reference/apps#create-an-installation-access-token-for-an-app", handle: s.createToken},
		{method: "GET", path: "/installation/repositories", class: "apps.repositories", need: "metadata=read", link: docs + "/apps/installations", handle: s.listInstallationRepos},
		{method: "DELETE", path: "/installation/token", class: "tokens.revoke", link: docs + "/apps/installations", handle: s.revokeToken},
		{method: "GET", path: "/app/hook/config", class: "apps.hook", by: byApp, link: hook, handle: s.getHook},
		{method: "GET", path: "/app/hook/deliveries", class: "deliveries.list", by: byApp, link: hook, handle: s.listDeliveries},
		{method: "GET", path: "/app/hook/deliveries/{id}", class: "deliveries.get", by: byApp, link: hook, handle: s.getDelivery},
		{method: "POST", path: "/app/hook/deliveries/{id}/attempts", class: "deliveries.redeliver", by: byApp, link: hook, handle: s.redeliver},
		{method: "GET", path: "/users/{login}", class: "users.get", by: byAny, link: docs + "/users/users", handle: s.getUser},
		{method: "GET", path: "/user/{id}", class: "users.get", by: byAny, link: docs + "/users/users", handle: s.getUserByID},
		{method: "GET", path: "/rate_limit", class: "rate_limit", by: byAny, link: docs + "/rate-limit/rate-limit", handle: s.getRateLimit},
	}
}

// pattern is a route under one of its paths, cut into segments.
type pattern struct {
	segments []string
	route    *route
}

// newRouter puts every route under its paths. http.ServeMux will not have /issues/comments/{id} beside
// /issues/{number}/comments, which GitHub has; here the first that matches wins.
func (s *Server) newRouter() []pattern {
	var list []pattern
	add := func(path string, r route) {
		list = append(list, pattern{strings.Split(path, "/"), &r})
	}
	for _, r := range s.repoRoutes() {
		add("/repos/{owner}/{repo}"+r.path, r)
		add("/repositories/{repo_id}"+r.path, r)
	}
	for _, r := range s.rootRoutes() {
		add(r.path, r)
	}
	return list
}

// find names the route of a request and puts its path values in. A path with a trailing slash is no route.
func (s *Server) find(c *call) {
	segments := strings.Split(strings.TrimPrefix(c.r.URL.EscapedPath(), "/api/v3"), "/")
	for _, p := range s.routes {
		if p.route.method != c.r.Method {
			continue
		}
		if values, found := p.match(segments); found {
			for name, value := range values {
				c.r.SetPathValue(name, value)
			}
			c.route = p.route
			return
		}
	}
}

// match compares escaped segments, so that a slash inside a name is none.
func (p pattern) match(segments []string) (map[string]string, bool) {
	values := map[string]string{}
	for i, want := range p.segments {
		name := strings.Trim(want, "{}")
		switch {
		case i >= len(segments):
			return nil, false
		case strings.HasSuffix(want, "...}"):
			rest, err := url.PathUnescape(strings.Join(segments[i:], "/"))
			values[strings.TrimSuffix(name, "...")] = rest
			return values, err == nil
		case name != want:
			value, err := url.PathUnescape(segments[i])
			if err != nil || value == "" {
				return nil, false
			}
			values[name] = value
		case want != segments[i]:
			return nil, false
		}
	}
	return values, len(segments) == len(p.segments)
}
