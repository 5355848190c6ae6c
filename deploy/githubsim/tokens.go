package githubsim

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// token is an installation access token.
type token struct {
	inst    *installation
	expires time.Time
	grants  map[string]string
	repos   map[int64]bool // nil: whatever the installation reaches
	usable  time.Time      // a young token may be unknown to some machines
	misses  int            // uses that still fail
}

// credential returns what the Authorization header carries.
func credential(r *http.Request) string {
	kind, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch strings.ToLower(kind) {
	case "bearer", "token":
		return strings.TrimSpace(value)
	}
	return ""
}

// authenticate checks the credential against what the route wants; nil lets the call pass.
func (s *Server) authenticate(c *call) *reply {
	raw := credential(c.r)
	by := byAny
	if c.route != nil {
		by = c.route.by
	}
	if raw == "" {
		return unauthorized("Requires authentication")
	}
	if strings.Count(raw, ".") == 2 && by != byToken {
		return checkJWT(raw, s.key, s.cfg.AppID, c.now)
	}
	if by == byApp {
		return unauthorized(jwtUndecodable)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tokens[raw]
	if t == nil {
		return unauthorized("Bad credentials")
	}
	c.token = t // also of a token that does not work: faults and the log name its installation
	if t.misses > 0 {
		t.misses--
		return unauthorized("Bad credentials")
	}
	if !c.now.Before(t.expires) || c.now.Before(t.usable) {
		return unauthorized("Bad credentials")
	}
	return nil
}

// installation is the id of the installation that calls, 0 for the App itself.
func (c *call) installation() int64 {
	if c.token != nil {
		return c.token.inst.id
	}
	if c.route != nil && c.route.class == "tokens.create" {
		return max(c.number("id"), 0)
	}
	return 0
}

// resolve finds the repository that the path names.
func (s *Server) resolve(c *call) {
	if c.route == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.r.PathValue("repo_id") != "" {
		c.repo = s.repos[c.number("repo_id")]
	} else if owner := c.r.PathValue("owner"); owner != "" {
		c.repo = s.names[strings.ToLower(owner+"/"+c.r.PathValue("repo"))]
	}
}

// permit checks scope and permissions. What is out of scope is not there at all.
func (s *Server) permit(c *call) *reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	inRepo := c.r.PathValue("repo_id") != "" || c.r.PathValue("owner") != ""
	if inRepo {
		if c.repo == nil || c.token != nil && !c.token.reaches(c.repo) {
			r := c.notFound()
			return &r
		}
		if moved := s.redirect(c); moved != nil {
			return moved
		}
	}
	if c.token == nil || c.route.need == "" || c.token.allows(c.route.need) {
		return c.archived()
	}
	r := refuse(http.StatusForbidden, "Resource not accessible by integration", c.route.link)
	r.header = http.Header{"X-Accepted-Github-Permissions": {c.route.need}}
	return &r
}

// redirect answers a request that calls a repository by a name it no longer has.
func (s *Server) redirect(c *call) *reply {
	asked := c.r.PathValue("owner") + "/" + c.r.PathValue("repo")
	if c.r.PathValue("owner") == "" || strings.EqualFold(asked, c.repo.fullName()) {
		return nil
	}
	status := http.StatusMovedPermanently
	if c.r.Method != http.MethodGet {
		status = http.StatusTemporaryRedirect
	}
	to := s.here(c)
	if c.r.URL.RawQuery != "" {
		to += "?" + c.r.URL.RawQuery
	}
	return &reply{
		status: status, header: http.Header{"Location": {to}},
		body: obj{"message": "Moved Permanently", "url": to, "documentation_url": "https://docs.github.com/v3/#http-redirects"},
	}
}

func (t *token) reaches(r *repo) bool {
	return t.inst.reaches(r) && (t.repos == nil || t.repos[r.id])
}

// levels orders what a permission can be.
var levels = map[string]int{"": 0, "none": 0, "read": 1, "write": 2, "admin": 3}

// allows reports whether any of the alternatives is granted.
func (t *token) allows(need string) bool {
	for alt := range strings.SplitSeq(need, "; ") {
		name, level, _ := strings.Cut(alt, "=")
		if alt == "metadata=read" {
			return true // it comes with any other
		}
		if min(levels[t.grants[name]], levels[t.inst.grants[name]]) >= levels[level] {
			return true
		}
	}
	return false
}

// createToken mints a token. It can only narrow what the installation grants.
func (s *Server) createToken(c *call) reply {
	var in struct {
		Repositories  []string          `json:"repositories"`
		RepositoryIDs []int64           `json:"repository_ids"`
		Permissions   map[string]string `json:"permissions"`
	}
	if wrong := c.decode(&in); wrong != nil {
		return *wrong
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	inst := s.installs[c.number("id")]
	switch {
	case inst == nil:
		return c.notFound()
	case !inst.suspended.IsZero():
		return refuse(http.StatusForbidden, "This installation has been suspended", c.route.link)
	}
	t := &token{inst: inst, expires: c.now.Add(time.Hour), grants: maps.Clone(inst.grants)}
	if len(in.Permissions) > 0 {
		t.grants = in.Permissions
		for name, level := range in.Permissions {
			if levels[level] > levels[inst.grants[name]] {
				return refuse(http.StatusUnprocessableEntity,
					"The permissions requested are not granted to this installation.", c.route.link)
			}
		}
	}
	if wrong := s.narrow(c, t, in.Repositories, in.RepositoryIDs); wrong != nil {
		return *wrong
	}
	if f := c.hit.token; f != nil {
		t.usable, t.misses = c.now.Add(time.Duration(f.For)), f.Uses
	}
	raw := newToken()
	s.tokens[raw] = t
	return reply{status: http.StatusCreated, body: s.tokenBody(raw, t)}
}

// narrow limits a token to repositories that are named or numbered.
func (s *Server) narrow(c *call, t *token, names []string, ids []int64) *reply {
	if len(names)+len(ids) == 0 {
		return nil
	}
	t.repos = map[int64]bool{}
	for _, name := range names {
		found := s.names[strings.ToLower(t.inst.account.login+"/"+name)]
		if found == nil {
			ids = append(ids, 0)
			continue
		}
		ids = append(ids, found.id)
	}
	for _, id := range ids {
		r := s.repos[id]
		if r == nil || !t.inst.reaches(r) || len(ids) > 500 {
			wrong := refuse(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.", c.route.link)
			return &wrong
		}
		t.repos[id] = true
	}
	return nil
}

func (s *Server) tokenBody(raw string, t *token) obj {
	body := obj{
		"token": raw, "expires_at": stamp(t.expires), "permissions": t.grants,
		"repository_selection": t.inst.selection(),
	}
	if t.repos != nil {
		list := []obj{}
		for _, id := range slices.Sorted(maps.Keys(t.repos)) {
			list = append(list, s.repoBody(s.repos[id]))
		}
		body["repositories"], body["repository_selection"] = list, "selected"
	}
	return body
}

// newToken is longer than GitHub's tokens once were, as theirs are now.
func newToken() string {
	var b [48]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("ghs_%s", hex.EncodeToString(b[:]))
}

func (s *Server) revokeToken(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, credential(c.r))
	return reply{status: http.StatusNoContent}
}
