package githubsim

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// checkRun is a check run. Two creates make two, also with one external id.
type checkRun struct {
	id      int64
	repo    *repo
	sha     string
	suite   int64
	created time.Time
	history history[checkState]
}

type checkState struct {
	name, externalID, detailsURL string
	status, conclusion           string
	started, completed           time.Time
	title, summary, text         *string
	annotations                  []obj
	actions                      []checkAction
}

func (s *Server) checkBody(r *checkRun, v *checkState) obj {
	api := fmt.Sprintf("%s/repos/%s/check-runs/%d", s.APIURL(), r.repo.fullName(), r.id)
	orNil := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	pulls := []obj{}
	for _, p := range r.repo.pulls {
		// Heads of forks are not listed.
		if v := p.now(); v.state == "open" && v.headSHA == r.sha && v.headRepo == r.repo {
			pulls = append(pulls, s.pullMinimal(p))
		}
	}
	details := v.detailsURL
	if details == "" {
		details = s.cfg.HTMLURL
	}
	return obj{
		"id": r.id, "node_id": nodeID("CheckRun", r.id), "head_sha": r.sha, "external_id": v.externalID, "url": api,
		"html_url": s.checkPage(r), "details_url": details, "status": v.status, "conclusion": orNil(v.conclusion),
		"started_at": stampOrNil(v.started), "completed_at": stampOrNil(v.completed), "name": v.name,
		"output": obj{
			"title": v.title, "summary": v.summary, "text": v.text, "annotations_count": len(v.annotations),
			"annotations_url": api + "/annotations",
		},
		"check_suite": obj{"id": r.suite}, "app": s.appBody(), "pull_requests": pulls,
	}
}

func (s *Server) checkPage(r *checkRun) string {
	return fmt.Sprintf("%s/%s/runs/%d", s.cfg.HTMLURL, r.repo.fullName(), r.id)
}

// suiteOf is the check suite of the App for one commit.
func (s *Server) suiteOf(r *repo, sha string) int64 {
	key := strconv.FormatInt(r.id, 10) + sha
	if s.suites[key] == 0 {
		s.suites[key] = s.id()
	}
	return s.suites[key]
}

func (s *Server) createCheck(c *call) reply {
	var in checkInput
	if wrong := c.decode(&in); wrong != nil {
		return *wrong
	}
	if wrong := in.validate(c, true); wrong != nil {
		return *wrong
	}
	if !s.hasCommit(c.r.Context(), c.repo, *in.HeadSHA) {
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+*in.HeadSHA, c.route.link)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := checkState{status: "queued"}
	in.apply(&v, c.now)
	r := &checkRun{id: s.id(), repo: c.repo, sha: *in.HeadSHA, suite: s.suiteOf(c.repo, *in.HeadSHA), created: c.now}
	r.history = history[checkState]{newVersion(c, v, false)}
	s.checks[r.id], c.repo.checks = r, append(c.repo.checks, r)
	s.dropOldRuns(c.repo, r.suite, v.name)
	s.raiseCheck("created", r, nil, s.bot, control.Send)
	if v.status == "completed" {
		s.raiseCheck("completed", r, nil, s.bot, control.Send)
	}
	return reply{status: http.StatusCreated, body: s.checkBody(r, &v)}
}

// dropOldRuns keeps the newest runs of one name in a suite; a run more has just been made.
func (s *Server) dropOldRuns(r *repo, suite int64, name string) {
	key := strconv.FormatInt(suite, 10) + name
	s.runs[key]++
	r.checks = slices.DeleteFunc(r.checks, func(one *checkRun) bool {
		if s.runs[key] <= maxRuns || one.suite != suite || one.history.now().value.name != name {
			return false
		}
		s.runs[key]--
		delete(s.checks, one.id)
		return true
	})
}

// theCheck is the check run the path names, as a single read sees it.
func (s *Server) theCheck(c *call) (*checkRun, *checkState) {
	r := s.checks[c.number("id")]
	if r == nil || r.repo != c.repo {
		return nil, nil
	}
	return r, r.history.seen(c.now, false)
}

func (s *Server) getCheck(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, v := s.theCheck(c)
	if v == nil {
		return c.notFound()
	}
	return ok(s.checkBody(r, v))
}

func (s *Server) updateCheck(c *call) reply {
	var in checkInput
	if wrong := c.decode(&in); wrong != nil {
		return *wrong
	}
	if wrong := in.validate(c, false); wrong != nil {
		return *wrong
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, v := s.theCheck(c)
	if v == nil {
		return c.notFound()
	}
	next := r.history.now().value
	before := next.status
	in.apply(&next, c.now)
	r.history = append(r.history, newVersion(c, next, false))
	if next.status == "completed" && before != "completed" {
		s.raiseCheck("completed", r, nil, s.bot, control.Send)
	}
	return ok(s.checkBody(r, &next))
}

func (s *Server) raiseCheck(action string, r *checkRun, extra obj, by *account, mode control.WebhookMode) *delivery {
	v := &r.history.now().value
	body := s.checkBody(r, v)
	// Payloads carry the whole suite where the API has its id alone.
	body["check_suite"] = s.suiteBody(r.repo, r.suite, r.sha, v.status, v.conclusion)
	payload := obj{"check_run": body}
	maps.Copy(payload, extra)
	return s.raise("check_run", action, r.repo, by, payload, mode)
}

func (s *Server) listAnnotations(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, v := s.theCheck(c)
	if v == nil {
		return c.notFound()
	}
	p := pageOf(c.r)
	return reply{status: http.StatusOK, header: s.links(c, p, len(v.annotations)), body: append([]obj{}, cut(v.annotations, p)...)}
}

// listChecks lists the runs of one commit. Without filter=all only the newest of each name is there, which hides
// a duplicate from whoever does not ask for it.
func (s *Server) listChecks(c *call) reply {
	sha, err := c.repo.dir.commit(c.r.Context(), c.r.PathValue("ref"))
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.r.PathValue("ref"), c.route.link)
	}
	q := c.r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	type seen struct {
		r *checkRun
		v *checkState
	}
	var all []seen
	for _, r := range c.repo.checks {
		v := r.history.seen(c.now, true)
		if r.sha != sha || v == nil ||
			q.Has("check_name") && q.Get("check_name") != v.name || q.Has("status") && q.Get("status") != v.status ||
			q.Has("app_id") && q.Get("app_id") != strconv.FormatInt(s.cfg.AppID, 10) {
			continue
		}
		all = append(all, seen{r, v})
	}
	slices.SortFunc(all, func(a, b seen) int { return cmp.Compare(b.r.id, a.r.id) })
	if q.Get("filter") != "all" {
		names := map[string]bool{}
		all = slices.DeleteFunc(all, func(one seen) bool {
			older := names[one.v.name]
			names[one.v.name] = true
			return older
		})
	}
	p := pageOf(c.r)
	list := []obj{}
	for _, one := range cut(all, p) {
		list = append(list, s.checkBody(one.r, one.v))
	}
	body := obj{"total_count": len(all), "check_runs": list}
	return reply{status: http.StatusOK, header: s.links(c, p, len(all)), body: body}
}
