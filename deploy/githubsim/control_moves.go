package githubsim

import (
	"net/http"
	"slices"
	"strings"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// ctlTransfer gives a repository to another account. Its old path redirects; whoever reaches it afterwards is
// told, as is whoever reached it before where the App is not with the new owner.
func (s *Server) ctlTransfer(req *http.Request, in control.Transfer) (any, error) {
	r, err := s.ctlRepo(req)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	to, from := s.account(in.Owner, "User"), r.owner
	if known := s.names[strings.ToLower(to.login+"/"+r.name)]; known != nil && known != r && strings.EqualFold(known.fullName(), to.login+"/"+r.name) {
		s.mu.Unlock()
		return nil, cannot(http.StatusConflict, "%s/%s exists", to.login, r.name)
	}
	for _, i := range s.installs {
		delete(i.selected, r.id)
		if i.account == to && i.selected != nil && in.Selected {
			i.selected[r.id] = true
		}
	}
	r.owner = to
	s.names[strings.ToLower(r.fullName())] = r // the old path stays, and redirects
	kind := "user"
	if from.kind == "Organization" {
		kind = "organization"
	}
	s.raise("repository", "transferred", r, s.sender(in.Options, r), obj{"changes": obj{"owner": obj{"from": obj{kind: s.userBody(from)}}}}, in.Webhook)
	s.mu.Unlock()
	return s.toldRepo(req.Context(), r)
}

// ctlArchive archives a repository, or ends that.
func (s *Server) ctlArchive(req *http.Request, in control.Archive) (any, error) {
	r, err := s.ctlRepo(req)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	r.archived = !in.End
	action := "archived"
	if in.End {
		action = "unarchived"
	}
	s.raise("repository", action, r, s.sender(in.Options, r), obj{}, in.Webhook)
	s.mu.Unlock()
	return s.toldRepo(req.Context(), r)
}

// archived refuses what writes to an archived repository. The world's lock is held.
func (c *call) archived() *reply {
	if c.repo == nil || !c.repo.archived || c.r.Method == http.MethodGet {
		return nil
	}
	r := refuse(http.StatusForbidden, "Repository was archived so is read-only.", c.route.link)
	return &r
}

// ctlRenameAccount gives an account another login; its repositories' old paths redirect. The old login is free
// for somebody else.
func (s *Server) ctlRenameAccount(req *http.Request, in control.RenameAccount) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := req.PathValue("login")
	a := s.accounts[strings.ToLower(from)]
	switch {
	case a == nil:
		return nil, cannot(http.StatusNotFound, "no account %s", from)
	case in.Login == "" || s.accounts[strings.ToLower(in.Login)] != nil:
		return nil, cannot(http.StatusConflict, "%q is no login, or taken", in.Login)
	}
	delete(s.accounts, strings.ToLower(from))
	from, a.login = a.login, in.Login
	s.accounts[strings.ToLower(a.login)] = a
	for _, r := range s.repos {
		if r.owner == a {
			s.names[strings.ToLower(r.fullName())] = r
		}
	}
	for _, i := range s.installs {
		if i.account != a {
			continue
		}
		changes := obj{"login": obj{"from": from}}
		body := obj{"account": s.userBody(a), "target_type": a.kind, "changes": changes}
		body["installation"] = obj{"id": i.id, "node_id": nodeID("IntegrationInstallation", i.id)}
		s.emit("installation_target", "renamed", i.id, 0, a, body, in.Webhook)
	}
	return toldAccount(a), nil
}

// ctlForget drops deliveries from the App's log, as time does after three days: they are listed no longer, and
// can't be delivered again.
func (s *Server) ctlForget(_ *http.Request, in control.Forget) (any, error) {
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	n := 0
	for _, d := range s.hooks.list {
		if !d.forgotten && (len(in.GUIDs) == 0 || slices.Contains(in.GUIDs, d.guid)) {
			d.forgotten = true
			n++
		}
	}
	return map[string]int{"forgotten": n}, nil
}
