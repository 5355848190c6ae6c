package githubsim

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// installation is the App on one account.
type installation struct {
	id        int64
	account   *account
	grants    map[string]string
	selected  map[int64]bool // nil: every repository of the account
	created   time.Time
	updated   time.Time
	suspended time.Time
	by        *account // who suspended it
}

func (i *installation) reaches(r *repo) bool {
	return r.owner == i.account && (i.selected == nil || i.selected[r.id])
}

func (i *installation) selection() string {
	if i.selected == nil {
		return "all"
	}
	return "selected"
}

// installationOf returns the installation that reaches a repository, or nil.
func (w *world) installationOf(r *repo) *installation {
	for _, i := range w.installs {
		if i.reaches(r) {
			return i
		}
	}
	return nil
}

// reposOf lists what an installation reaches, by id.
func (w *world) reposOf(i *installation) []*repo {
	var list []*repo
	for _, r := range w.repos {
		if i.reaches(r) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *repo) int { return cmp.Compare(a.id, b.id) })
	return list
}

func (s *Server) installationBody(i *installation) obj {
	kind := i.account.kind
	page := fmt.Sprintf("%s/settings/installations/%d", s.cfg.HTMLURL, i.id)
	if kind == "Organization" {
		page = fmt.Sprintf("%s/organizations/%s/settings/installations/%d", s.cfg.HTMLURL, i.account.login, i.id)
	}
	return obj{
		"id": i.id, "account": s.userBody(i.account), "repository_selection": i.selection(),
		"access_tokens_url": fmt.Sprintf("%s/app/installations/%d/access_tokens", s.APIURL(), i.id),
		"repositories_url":  s.APIURL() + "/installation/repositories", "html_url": page,
		"app_id": s.cfg.AppID, "app_slug": s.cfg.AppSlug, "target_id": i.account.id, "target_type": kind,
		"permissions": i.grants, "events": s.cfg.Events, "created_at": stamp(i.created), "updated_at": stamp(i.updated),
		"single_file_name": nil, "has_multiple_single_files": false, "single_file_paths": []string{},
		"suspended_at": stampOrNil(i.suspended), "suspended_by": s.userOrNil(i.by),
	}
}

// appBody is the App as it stands in check runs and comments.
func (s *Server) appBody() obj {
	const since = "2024-01-15T00:00:00Z"
	return obj{
		"id": s.cfg.AppID, "slug": s.cfg.AppSlug, "node_id": nodeID("App", s.cfg.AppID),
		"owner": s.userBody(s.account("github-apps", "Organization")), "name": s.cfg.AppSlug, "description": "",
		"external_url": s.cfg.HTMLURL, "html_url": s.cfg.HTMLURL + "/apps/" + s.cfg.AppSlug,
		"created_at": since, "updated_at": since, "permissions": s.cfg.Permissions, "events": s.cfg.Events,
	}
}

func (s *Server) getApp(*call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := s.appBody()
	body["installations_count"] = len(s.installs)
	return ok(body)
}

func (s *Server) listInstallations(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := pageOf(c.r)
	list := []obj{}
	for _, id := range cut(slices.Sorted(maps.Keys(s.installs)), p) {
		list = append(list, s.installationBody(s.installs[id]))
	}
	return reply{status: http.StatusOK, body: list, header: s.links(c, p, len(s.installs))}
}

func (s *Server) getInstallation(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.installs[c.number("id")]; i != nil {
		return ok(s.installationBody(i))
	}
	return c.notFound()
}

func (s *Server) getRepoInstallation(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.installationOf(c.repo); i != nil {
		return ok(s.installationBody(i))
	}
	return c.notFound()
}

func (s *Server) listInstallationRepos(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.DeleteFunc(s.reposOf(c.token.inst), func(r *repo) bool { return !c.token.reaches(r) })
	p := pageOf(c.r)
	list := []obj{}
	for _, r := range cut(all, p) {
		list = append(list, s.repoBody(r))
	}
	body := obj{"total_count": len(all), "repository_selection": c.token.inst.selection(), "repositories": list}
	return reply{status: http.StatusOK, body: body, header: s.links(c, p, len(all))}
}
