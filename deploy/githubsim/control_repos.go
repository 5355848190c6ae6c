package githubsim

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

func (s *Server) toldRepo(ctx context.Context, r *repo) (control.Repository, error) {
	tips, err := r.dir.branches(ctx)
	if err != nil {
		return control.Repository{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return control.Repository{
		ID: r.id, Owner: r.owner.login, Name: r.name, FullName: r.fullName(), DefaultBranch: r.defaultBranch,
		GitDir: r.dir.path, Branches: tips,
	}, nil
}

func (s *Server) ctlGetRepo(r *http.Request) (any, error) {
	found, err := s.ctlRepo(r)
	if err != nil {
		return nil, err
	}
	return s.toldRepo(r.Context(), found)
}

func (s *Server) ctlCreateRepo(req *http.Request, in control.NewRepository) (any, error) {
	r, parent, err := s.reserveRepo(in)
	if err != nil {
		return nil, err
	}
	if err := s.fillRepo(req.Context(), r, parent, in); err != nil {
		return nil, cannot(http.StatusUnprocessableEntity, "create %s/%s: %v", in.Owner, in.Name, err)
	}
	s.mu.Lock()
	s.repos[r.id], s.names[strings.ToLower(r.fullName())] = r, r
	s.mu.Unlock()
	return s.toldRepo(req.Context(), r)
}

// reserveRepo checks the request and makes the repository, which nobody sees before it is filled.
func (s *Server) reserveRepo(in control.NewRepository) (made, parent *repo, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Owner == "" || in.Name == "" || strings.Contains(in.Name, "/") {
		return nil, nil, cannot(http.StatusBadRequest, "a repository needs an owner and a name")
	}
	known := s.names[strings.ToLower(in.Owner+"/"+in.Name)]
	if known != nil && strings.EqualFold(known.fullName(), in.Owner+"/"+in.Name) || in.ID != 0 && s.repos[in.ID] != nil {
		return nil, nil, cannot(http.StatusConflict, "%s/%s exists", in.Owner, in.Name)
	}
	if in.ForkOf != "" {
		if parent = s.names[strings.ToLower(in.ForkOf)]; parent == nil {
			return nil, nil, cannot(http.StatusNotFound, "no repository %s", in.ForkOf)
		}
	}
	id := in.ID
	if id == 0 {
		id = s.id()
	}
	pushing := &sync.Mutex{}
	if parent != nil {
		pushing = parent.pushing // a push to a fork moves pull requests of its parent
	}
	now := s.now()
	return &repo{
		id: id, pushing: pushing, owner: s.account(in.Owner, "User"), name: in.Name, private: in.Private, parent: parent,
		defaultBranch: cmp.Or(in.DefaultBranch, "main"), created: now, pushed: now,
		collaborators: map[*account]string{}, dir: s.git.at(strconv.FormatInt(id, 10) + ".git"),
	}, parent, nil
}

// fillRepo makes the bare repository on disk.
func (s *Server) fillRepo(ctx context.Context, r, parent *repo, in control.NewRepository) error {
	if _, err := r.dir.run(ctx, nil, "init", "--quiet", "--bare", "--initial-branch="+r.defaultBranch); err != nil {
		return err
	}
	source := in.FromPath
	if parent != nil {
		source, r.defaultBranch = parent.dir.path, parent.defaultBranch
	}
	if source != "" {
		if err := r.dir.copyFrom(ctx, source, in.Refs); err != nil {
			return err
		}
	}
	if len(in.Commits) > 0 {
		return r.dir.importCommits(ctx, r.defaultBranch, in.Commits, s.now())
	}
	return nil
}

func (s *Server) ctlRename(req *http.Request, in struct {
	Name string `json:"name"`
	control.Options
},
) (any, error) {
	r, err := s.ctlRepo(req)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	from := r.name
	r.name = in.Name
	s.names[strings.ToLower(r.fullName())] = r // the old name stays, and redirects
	s.raise("repository", "renamed", r, s.sender(in.Options, r), obj{"changes": obj{"repository": obj{"name": obj{"from": from}}}}, in.Webhook)
	s.mu.Unlock()
	return s.toldRepo(req.Context(), r)
}

func (s *Server) ctlDeleteRepo(req *http.Request, in control.Options) (any, error) {
	r, err := s.ctlRepo(req)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raise("repository", "deleted", r, s.sender(in, r), obj{}, in.Webhook)
	delete(s.repos, r.id)
	maps.DeleteFunc(s.names, func(_ string, one *repo) bool { return one == r })
	for _, other := range s.repos {
		for _, p := range other.pulls {
			for i := range p.versions {
				if p.versions[i].headRepo == r {
					p.versions[i].headRepo = nil
				}
			}
		}
	}
	return done, os.RemoveAll(r.dir.path)
}

func (s *Server) ctlPermission(req *http.Request, in struct {
	Permission string `json:"permission"`
},
) (any, error) {
	r, err := s.ctlRepo(req)
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"admin", "maintain", "write", "triage", "read", "none"}, in.Permission) {
		return nil, cannot(http.StatusBadRequest, "no permission %q", in.Permission)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.collaborators[s.account(req.PathValue("login"), "User")] = in.Permission
	return done, nil
}
