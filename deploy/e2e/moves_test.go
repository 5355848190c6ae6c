package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// crossings are the calls of GitHub that a walk makes, in their order: a pull request is moved while one is on its way.
var crossings = []string{"read by the reviewer", "check run in progress", "read by the publisher", "review", "summary", "conclusion"}

// moves are what may happen to a pull request meanwhile.
var moves = []string{"pushed", "retargeted", "closed", "merged", "converted"}

// mover moves each pull request once, at its step.
type mover struct {
	*world
	mu     sync.Mutex
	plan   map[int]moved
	done   map[int]bool
	failed []error
}

// moved is what is done to one pull request, and when.
type moved struct {
	step, move string
	head       string // before
	after      string // where it was pushed
}

var (
	onPull  = regexp.MustCompile(`/pulls/(\d+)$`)
	reviews = regexp.MustCompile(`/pulls/(\d+)/reviews$`)
	issue   = regexp.MustCompile(`/issues/(\d+)/comments$`)
	check   = regexp.MustCompile(`/check-runs/(\d+)$`)
)

// TestMovedBetweenAnyTwoSteps pushes to, retargets, closes, merges and converts pull requests between any two steps of
// their walk: whatever was in flight then, nothing stale is unlabelled within a minute, and nothing is held.
func TestMovedBetweenAnyTwoSteps(t *testing.T) {
	w := newWorld(t)
	m := &mover{world: w, plan: map[int]moved{}, done: map[int]bool{}}
	newBetween(w, m.of("reviewer"), "reviewer")
	newBetween(w, m.of("publisher"), "publisher")
	w.up()
	w.repository()
	w.push("release", map[string]string{"VERSION": "1\n"}, control.None)
	var held []control.Delivery
	for _, step := range crossings {
		for _, move := range moves {
			name := fmt.Sprintf("b%d", len(m.plan))
			w.push(name, map[string]string{name + ".txt": conflicted}, control.None)
			opened, err := w.ctl.OpenPull(t.Context(), w.repo.ID, control.OpenPull{Title: name, Head: name, Base: "main", Options: control.Options{Webhook: control.Hold}})
			if err != nil {
				t.Fatal(err)
			}
			m.plan[opened.Pull.Number] = moved{step: step, move: move, head: opened.Pull.HeadSHA}
			held = append(held, opened.Deliveries[0])
		}
	}
	for _, d := range held {
		if _, err := w.ctl.SendDelivery(t.Context(), d.GUID, control.Resend{}); err != nil {
			t.Fatal(err)
		}
	}
	within(t, "every pull request is moved", 3, func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.done) < len(m.plan) {
			return fmt.Errorf("%d of %d are", len(m.done), len(m.plan))
		}
		return nil
	})
	last := time.Now()
	eventually(t, "nothing stale is unlabelled", func() error {
		for n := range m.plan {
			if err := m.labelled(n); err != nil {
				return fmt.Errorf("pull request %d, %s at the %s: %w", n, m.plan[n].move, m.plan[n].step, err)
			}
		}
		return w.look(t.Context(), true)
	})
	t.Logf("%d pull requests are right %s after the last of them was moved", len(m.plan), time.Since(last).Round(100*time.Millisecond))
	for _, err := range m.failed {
		t.Error(err)
	}
	eventually(t, "nothing is held", func() error {
		if n := w.count(`SELECT coalesce(sum(reserved), 0)::bigint FROM ledger.accounts`); n != 0 {
			return fmt.Errorf("%d micros are", n)
		}
		return nil
	})
}

// of watches a service's calls.
func (m *mover) of(service string) func(r *http.Request, body []byte) []byte {
	return func(r *http.Request, body []byte) []byte {
		if number, step := m.at(service, r, body); step != "" {
			m.move(number, step)
		}
		return body
	}
}

// at tells the pull request and the step of a call.
func (m *mover) at(service string, r *http.Request, body []byte) (number int, step string) {
	path, found := r.URL.Path, ""
	first := func(re *regexp.Regexp) bool {
		hit := re.FindStringSubmatch(path)
		if hit != nil {
			found = hit[1]
		}
		return hit != nil
	}
	switch {
	case r.Method == http.MethodGet && first(onPull):
		step = "read by the " + service
	case r.Method == http.MethodPost && first(reviews):
		step = "review"
	case r.Method == http.MethodPost && first(issue):
		step = "summary"
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/check-runs"):
		var in struct {
			Head   string `json:"head_sha"`
			Status string `json:"status"`
		}
		if json.Unmarshal(body, &in) == nil && in.Status == "completed" {
			return m.headed(in.Head), "conclusion" // which came before its progress was told
		}
		return m.headed(in.Head), "check run in progress"
	case r.Method == http.MethodPatch && first(check):
		return m.checked(found), "conclusion"
	}
	number, _ = strconv.Atoi(found)
	return number, step
}

func (m *mover) headed(sha string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n, p := range m.plan {
		if p.head == sha {
			return n
		}
	}
	return 0
}

func (m *mover) checked(id string) int {
	all, err := m.ctl.CheckRuns(m.Context(), m.repo.ID, "")
	if err != nil {
		return 0
	}
	for _, c := range all {
		if strconv.FormatInt(c.ID, 10) == id {
			return m.headed(c.HeadSHA)
		}
	}
	return 0
}

// move does what is planned, once: at its step, or at the next one where that is left out.
func (m *mover) move(number int, step string) {
	m.mu.Lock()
	p, ok := m.plan[number]
	if !ok || slices.Index(crossings, step) < slices.Index(crossings, p.step) || m.done[number] {
		m.mu.Unlock()
		return
	}
	m.done[number] = true
	m.mu.Unlock()
	ctx, act := m.Context(), control.Act{}
	switch p.move {
	case "pushed":
		name := fmt.Sprintf("b%d", number-1)
		pushed, err := m.ctl.Push(ctx, m.repo.ID, control.Push{Branch: name, Commits: []control.Commit{{Message: "more", Files: map[string]string{name + ".txt": conflicted + "more\n"}}}})
		m.mu.Lock()
		defer m.mu.Unlock()
		if p.after = pushed.After; err != nil {
			m.failed = append(m.failed, err)
		}
		m.plan[number] = p
		return
	case "retargeted":
		act = control.Act{Action: control.Retarget, Base: "release"}
	case "closed":
		act.Action = control.Close
	case "merged":
		act.Action = control.Merge
	case "converted":
		act.Action = control.ToDraft
	}
	if _, err := m.ctl.Act(ctx, m.repo.ID, number, act); err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.failed = append(m.failed, fmt.Errorf("%s %d: %w", p.move, number, err))
	}
}

// labelled checks what the page says of a pull request that was moved.
func (m *mover) labelled(number int) error {
	m.mu.Lock()
	p := m.plan[number]
	m.mu.Unlock()
	v := m.view(number)
	if len(v.comments) > 1 {
		return fmt.Errorf("%d comments", len(v.comments))
	}
	old, err := m.ctl.CheckRuns(m.Context(), m.repo.ID, p.head)
	if err != nil {
		return err
	}
	for _, c := range append(old, v.checks...) {
		if c.Status != "completed" {
			return fmt.Errorf("a check run is %s", c.Status)
		}
	}
	switch p.move {
	case "pushed":
		if len(v.comments) != 1 || !strings.Contains(v.comments[0].Body, p.after) || len(v.checks) != 1 {
			return fmt.Errorf("the new head is not shown: %d comments, %d check runs", len(v.comments), len(v.checks))
		}
		for _, r := range v.reviews {
			if r.CommitID == p.head && !strings.Contains(r.Body, "an older head") {
				return fmt.Errorf("the old head's review says %.200q", r.Body)
			}
		}
	case "retargeted":
		if len(v.comments) != 1 || !strings.Contains(v.comments[0].Body, "`release`") {
			return fmt.Errorf("the new base is not shown: %d comments", len(v.comments))
		}
	default: // what it says of the head that is there holds
		if len(v.comments) == 1 && !strings.Contains(v.comments[0].Body, p.head) {
			return fmt.Errorf("the summary says %.300q", v.comments[0].Body)
		}
	}
	if n := m.count(`SELECT count(*) FROM scheduler.targets WHERE number = $1 AND (due_at IS NOT NULL OR claim_id IS NOT NULL OR page_delivery = 'pending')`, number); n > 0 {
		return fmt.Errorf("not at rest: %s", m.state(number))
	}
	return nil
}
