package githubsim

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// Caps of commit statuses.
const (
	maxDescription = 140 // characters
	maxStatuses    = 1000
)

// commitStatus is one status. It never changes: of a context the newest counts.
type commitStatus struct {
	id      int64
	repo    *repo
	sha     string
	by      *account
	state   string
	context string
	url     string
	words   string
	history history[struct{}] // one version, which may be hidden for a while
}

func (s *Server) statusBody(one *commitStatus) obj {
	orNil := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	at := stamp(one.history.now().at)
	return obj{
		"url":        fmt.Sprintf("%s/repos/%s/statuses/%s", s.APIURL(), one.repo.fullName(), one.sha),
		"avatar_url": s.userBody(one.by)["avatar_url"], "id": one.id, "node_id": nodeID("StatusContext", one.id), "state": one.state,
		"description": orNil(one.words), "target_url": orNil(one.url), "context": one.context, "created_at": at, "updated_at": at,
		"creator": s.userBody(one.by),
	}
}

// createStatus adds a status. A repeated one is harmless to readers, but counts towards the cap.
func (s *Server) createStatus(c *call) reply {
	var in struct {
		State       string  `json:"state"`
		TargetURL   *string `json:"target_url"`
		Description *string `json:"description"`
		Context     *string `json:"context"`
	}
	if wrong := c.decode(&in); wrong != nil {
		return *wrong
	}
	sha := c.r.PathValue("sha")
	if !s.hasCommit(c.r.Context(), c.repo, sha) {
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+sha, c.route.link)
	}
	invalid := func(field, code, message string) reply {
		return refuse(http.StatusUnprocessableEntity, "Validation Failed", c.route.link, fieldError("Status", field, code, message))
	}
	target, err := url.Parse(orEmpty(in.TargetURL))
	switch {
	case !slices.Contains([]string{"error", "failure", "pending", "success"}, in.State):
		return invalid("state", "custom", "state is not included in the list")
	case utf8.RuneCountInString(orEmpty(in.Description)) > maxDescription:
		return invalid("description", "custom", "description is too long (maximum is 140 characters)")
	case err != nil || target.Scheme != "" && target.Scheme != "http" && target.Scheme != "https":
		return invalid("target_url", "custom", "target_url must use http(s) scheme")
	}
	one := &commitStatus{repo: c.repo, sha: sha, by: s.bot, state: in.State, context: "default", url: orEmpty(in.TargetURL), words: orEmpty(in.Description)}
	if orEmpty(in.Context) != "" {
		one.context = *in.Context
	}
	one.history = history[struct{}]{newVersion(c, struct{}{}, false)}
	s.mu.Lock()
	defer s.mu.Unlock()
	same := 0
	for _, other := range c.repo.statuses {
		if other.sha == sha && strings.EqualFold(other.context, one.context) {
			same++
		}
	}
	if same >= maxStatuses {
		return refuse(http.StatusUnprocessableEntity, "Validation Failed", c.route.link,
			obj{"resource": "Status", "code": "custom", "message": "This SHA and context has reached the maximum number of statuses."})
	}
	one.id = s.id()
	c.repo.statuses = append(c.repo.statuses, one)
	body := s.statusBody(one)
	return reply{status: http.StatusCreated, body: body, header: http.Header{"Location": {body["url"].(string)}}}
}

// statusesOf are the statuses of a commit that a list shows, newest first. The world's lock is held.
func (s *Server) statusesOf(c *call, sha string) []*commitStatus {
	var all []*commitStatus
	for _, one := range slices.Backward(c.repo.statuses) {
		if one.sha == sha && one.history.seen(c.now, true) != nil {
			all = append(all, one)
		}
	}
	return all
}

// latest keeps the newest status of each context, in whatever case it is spelled.
func latest(all []*commitStatus) []*commitStatus {
	known := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(all), func(one *commitStatus) bool {
		older := known[strings.ToLower(one.context)]
		known[strings.ToLower(one.context)] = true
		return older
	})
}

func (s *Server) listStatuses(c *call) reply {
	sha, err := c.repo.dir.commit(c.r.Context(), c.r.PathValue("ref"))
	if err != nil {
		return c.notFound()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all, at := s.statusesOf(c, sha), pageOf(c.r)
	list := []obj{}
	for _, one := range cut(all, at) {
		list = append(list, s.statusBody(one))
	}
	return reply{status: http.StatusOK, header: s.links(c, at, len(all)), body: list}
}

// combinedStatus is failure where any newest status failed, pending where one is or where there is none.
func (s *Server) combinedStatus(c *call) reply {
	sha, err := c.repo.dir.commit(c.r.Context(), c.r.PathValue("ref"))
	if err != nil {
		return c.notFound()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all, at := latest(s.statusesOf(c, sha)), pageOf(c.r)
	state := "success"
	for _, one := range all {
		switch {
		case one.state == "error" || one.state == "failure":
			state = "failure"
		case one.state == "pending" && state == "success":
			state = "pending"
		}
	}
	if len(all) == 0 {
		state = "pending"
	}
	list := []obj{}
	for _, one := range cut(all, at) {
		body := s.statusBody(one)
		delete(body, "creator")
		list = append(list, body)
	}
	api := s.APIURL() + "/repos/" + c.repo.fullName()
	return reply{status: http.StatusOK, header: s.links(c, at, len(all)), body: obj{
		"state": state, "statuses": list, "sha": sha, "total_count": len(all), "repository": s.repoBody(c.repo),
		"commit_url": api + "/commits/" + sha, "url": api + "/commits/" + sha + "/status",
	}}
}

func (s *Server) toldStatus(one *commitStatus) control.Status {
	return control.Status{
		ID: one.id, RepositoryID: one.repo.id, SHA: one.sha, Context: one.context, State: one.state, Description: one.words,
		TargetURL: one.url, Creator: one.by.login, CreatedAt: one.history.now().at,
	}
}

func (s *Server) ctlStatuses(r *http.Request) (any, error) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []control.Status{}
	for _, found := range s.repos {
		for _, one := range found.statuses {
			if matchesID(q.Get("repository"), found.id) && strings.HasPrefix(one.sha, q.Get("sha")) {
				list = append(list, s.toldStatus(one))
			}
		}
	}
	slices.SortFunc(list, func(a, b control.Status) int { return int(a.ID - b.ID) })
	return list, nil
}
