package githubsim

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

func toldAccount(a *account) control.Account {
	return control.Account{ID: a.id, Login: a.login, Type: a.kind, Name: a.name}
}

func (s *Server) ctlAccount(_ *http.Request, in control.Account) (any, error) {
	if in.Login == "" {
		return nil, cannot(http.StatusBadRequest, "an account needs a login")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.accounts[strings.ToLower(in.Login)]; known {
		return nil, cannot(http.StatusConflict, "%s exists", in.Login)
	}
	a := s.account(in.Login, cmp.Or(in.Type, "User"))
	a.name, a.id = in.Name, cmp.Or(in.ID, a.id)
	return toldAccount(a), nil
}

// toldInstallation is an installation as it is now, with what the call has raised.
func (s *Server) toldInstallation(i *installation, raised ...*delivery) control.Installation {
	out := control.Installation{
		ID: i.id, Account: toldAccount(i.account), Suspended: !i.suspended.IsZero(), All: i.selected == nil, Repositories: []int64{},
		Deliveries: s.told(raised...),
	}
	for _, r := range s.reposOf(i) {
		out.Repositories = append(out.Repositories, r.id)
	}
	return out
}

// pick finds repositories of an account by name.
func (s *Server) pick(owner *account, names []string) ([]*repo, error) {
	var list []*repo
	for _, name := range names {
		r := s.names[strings.ToLower(owner.login+"/"+name)]
		if r == nil {
			return nil, cannot(http.StatusNotFound, "no repository %s/%s", owner.login, name)
		}
		list = append(list, r)
	}
	return list, nil
}

// shortRepos is how installation events list repositories.
func shortRepos(list []*repo) []obj {
	out := []obj{}
	for _, r := range list {
		out = append(out, obj{"id": r.id, "node_id": nodeID("Repository", r.id), "name": r.name, "full_name": r.fullName(), "private": r.private})
	}
	return out
}

func (s *Server) ctlInstall(_ *http.Request, in control.NewInstallation) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner := s.account(in.Account, "User")
	for _, i := range s.installs {
		if i.account == owner {
			return nil, cannot(http.StatusConflict, "the App is installed on %s", owner.login)
		}
	}
	repos, err := s.pick(owner, in.Repositories)
	if err != nil {
		return nil, err
	}
	now := s.now()
	i := &installation{id: in.ID, account: owner, created: now, updated: now, grants: s.cfg.Permissions}
	if i.id == 0 {
		i.id = s.id()
	}
	if in.Permissions != nil {
		i.grants = in.Permissions
	}
	if len(repos) > 0 {
		i.selected = map[int64]bool{}
		for _, r := range repos {
			i.selected[r.id] = true
		}
	}
	s.installs[i.id] = i
	d := s.raiseInstallation("installation", "created", i, s.by(in.Options, owner), obj{"repositories": shortRepos(s.reposOf(i))}, in.Webhook)
	return s.toldInstallation(i, d), nil
}

// by is who clicks: the one that is named, else the account itself.
func (s *Server) by(o control.Options, owner *account) *account {
	if o.Sender != "" {
		return s.account(o.Sender, "User")
	}
	return owner
}

// ctlInstallation runs a change of an installation under the lock.
func (s *Server) ctlInstallation(r *http.Request, o control.Options, change func(*installation, *account) (any, error)) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.installs[pathNumber(r, "id")]
	if i == nil {
		return nil, cannot(http.StatusNotFound, "no installation %s", r.PathValue("id"))
	}
	i.updated = s.now()
	return change(i, s.by(o, i.account))
}

func (s *Server) ctlSuspend(r *http.Request, o control.Options) (any, error) {
	return s.ctlInstallation(r, o, func(i *installation, by *account) (any, error) {
		i.suspended, i.by = i.updated, by
		s.dropTokens(i)
		d := s.raiseInstallation("installation", "suspend", i, by, obj{"repositories": shortRepos(s.reposOf(i))}, o.Webhook)
		return s.toldInstallation(i, d), nil
	})
}

func (s *Server) ctlUnsuspend(r *http.Request, o control.Options) (any, error) {
	return s.ctlInstallation(r, o, func(i *installation, by *account) (any, error) {
		i.suspended, i.by = time.Time{}, nil
		d := s.raiseInstallation("installation", "unsuspend", i, by, obj{"repositories": shortRepos(s.reposOf(i))}, o.Webhook)
		return s.toldInstallation(i, d), nil
	})
}

func (s *Server) ctlUninstall(r *http.Request, o control.Options) (any, error) {
	return s.ctlInstallation(r, o, func(i *installation, by *account) (any, error) {
		s.dropTokens(i)
		d := s.raiseInstallation("installation", "deleted", i, by, obj{"repositories": shortRepos(s.reposOf(i))}, o.Webhook)
		delete(s.installs, i.id)
		return s.toldInstallation(i, d), nil
	})
}

func (s *Server) ctlRevokeTokens(r *http.Request) (any, error) {
	return s.ctlInstallation(r, control.Options{}, func(i *installation, _ *account) (any, error) {
		s.dropTokens(i)
		return done, nil
	})
}

// ctlPermissions is an owner who accepts other permissions.
func (s *Server) ctlPermissions(r *http.Request, in control.Permissions) (any, error) {
	return s.ctlInstallation(r, in.Options, func(i *installation, by *account) (any, error) {
		i.grants = in.Permissions
		d := s.raiseInstallation("installation", "new_permissions_accepted", i, by, obj{}, in.Webhook)
		return s.toldInstallation(i, d), nil
	})
}

func (s *Server) dropTokens(i *installation) {
	maps.DeleteFunc(s.tokens, func(_ string, t *token) bool { return t.inst == i })
}

func (s *Server) ctlSelect(r *http.Request, in control.Selection) (any, error) {
	return s.ctlInstallation(r, in.Options, func(i *installation, by *account) (any, error) {
		add, err := s.pick(i.account, in.Add)
		if err != nil {
			return nil, err
		}
		remove, err := s.pick(i.account, in.Remove)
		if err != nil {
			return nil, err
		}
		if i.selected == nil {
			i.selected = map[int64]bool{}
			for _, one := range s.reposOf(&installation{account: i.account}) {
				i.selected[one.id] = true
			}
		}
		for _, one := range add {
			i.selected[one.id] = true
		}
		for _, one := range remove {
			delete(i.selected, one.id)
		}
		var raised []*delivery
		for _, change := range []struct {
			action string
			list   []*repo
		}{{"added", add}, {"removed", remove}} {
			if len(change.list) == 0 {
				continue
			}
			payload := obj{"repository_selection": "selected", "requester": nil, "repositories_added": []obj{}, "repositories_removed": []obj{}}
			payload["repositories_"+change.action] = shortRepos(slices.Clone(change.list))
			raised = append(raised, s.raiseInstallation("installation_repositories", change.action, i, by, payload, in.Webhook))
		}
		return s.toldInstallation(i, raised...), nil
	})
}
