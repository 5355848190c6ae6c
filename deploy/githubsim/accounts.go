package githubsim

import (
	"fmt"
	"net/http"
	"net/url"
)

// userBody is an account as it stands inside every other body.
func (s *Server) userBody(a *account) obj {
	if a == nil {
		return nil
	}
	api := s.APIURL() + "/users/" + url.PathEscape(a.login)
	page := a.login
	if a.kind == "Bot" {
		page = "apps/" + s.cfg.AppSlug
	}
	return obj{
		"login": a.login, "id": a.id, "node_id": nodeID(a.kind, a.id), "gravatar_id": "", "type": a.kind, "site_admin": false,
		"avatar_url": fmt.Sprintf("%s/avatars/u/%d?v=4", s.cfg.HTMLURL, a.id), "html_url": s.cfg.HTMLURL + "/" + page,
		"url": api, "followers_url": api + "/followers", "following_url": api + "/following{/other_user}",
		"gists_url": api + "/gists{/gist_id}", "starred_url": api + "/starred{/owner}{/repo}",
		"subscriptions_url": api + "/subscriptions", "organizations_url": api + "/orgs", "repos_url": api + "/repos",
		"events_url": api + "/events{/privacy}", "received_events_url": api + "/received_events",
	}
}

// userOrNil keeps a missing account a JSON null instead of an empty object.
func (s *Server) userOrNil(a *account) any {
	if a == nil {
		return nil
	}
	return s.userBody(a)
}

// orgBody is the organization object that payloads carry where the owner is one.
func (s *Server) orgBody(a *account) obj {
	api := s.APIURL() + "/orgs/" + a.login
	return obj{
		"login": a.login, "id": a.id, "node_id": nodeID("Organization", a.id), "url": api, "repos_url": api + "/repos",
		"events_url": api + "/events", "hooks_url": api + "/hooks", "issues_url": api + "/issues",
		"members_url": api + "/members{/member}", "public_members_url": api + "/public_members{/member}",
		"avatar_url": fmt.Sprintf("%s/avatars/u/%d?v=4", s.cfg.HTMLURL, a.id), "description": "",
	}
}

func (s *Server) getUser(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.accounts {
		if a.login == c.r.PathValue("login") {
			return s.profile(a)
		}
	}
	return c.notFound()
}

func (s *Server) getUserByID(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.accounts {
		if a.id == c.number("id") {
			return s.profile(a)
		}
	}
	return c.notFound()
}

func (s *Server) profile(a *account) reply {
	body := s.userBody(a)
	body["name"] = nil
	if a.name != "" {
		body["name"] = a.name
	}
	return reply{status: http.StatusOK, body: body}
}
