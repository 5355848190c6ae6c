package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// outputs are the writes of a page that has everything: new remarks, a fixed one, an older review and a check run with
// more annotations than one write takes.
var outputs = map[string]func(method, path, body string) bool{
	"check run": func(method, path, _ string) bool {
		return method == http.MethodPost && strings.HasSuffix(path, "/check-runs")
	},
	"review": func(method, path, _ string) bool {
		return method == http.MethodPost && strings.HasSuffix(path, "/reviews")
	},
	"summary": func(method, path, _ string) bool {
		return method == http.MethodPatch && strings.Contains(path, "/issues/comments/")
	},
	"annotations": func(_, path, body string) bool {
		return strings.Contains(path, "/check-runs") && strings.Contains(body, `"status":"in_progress"`) && strings.Contains(body, `"annotations":[`)
	},
	"conclusion": func(_, path, body string) bool {
		return strings.Contains(path, "/check-runs/") && strings.Contains(body, `"conclusion":"failure"`)
	},
	"fixed remark": func(method, path, _ string) bool {
		return method == http.MethodPatch && strings.Contains(path, "/pulls/comments/")
	},
	"older review": func(method, path, _ string) bool {
		return method == http.MethodPut && strings.Contains(path, "/reviews/")
	},
}

// catch holds the first write of a kind on its way. It is made then even where its caller has left.
type catch struct {
	mu   sync.Mutex
	want func(method, path, body string) bool
	held *gate
}

func (c *catch) next(want func(method, path, body string) bool) *gate {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want, c.held = want, newGate()
	return c.held
}

func (c *catch) passes(r *http.Request, body []byte) []byte {
	c.mu.Lock()
	held := c.held
	if held == nil || !c.want(r.Method, r.URL.Path, string(body)) {
		c.mu.Unlock()
		return body
	}
	c.held = nil
	c.mu.Unlock()
	*r = *r.WithContext(context.WithoutCancel(r.Context()))
	close(held.reached)
	<-held.open
	return body
}

// TestPublisherTakenAwayAtEveryWrite kills the publisher, or stops it until another has taken over, as a write of a
// full page is on its way. The write lands after that: the page has everything once.
func TestPublisherTakenAwayAtEveryWrite(t *testing.T) {
	for _, how := range []string{"killed", "stopped"} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			w.brisk()
			w.env["publisher"]["PUBLISHER_LEASE"] = "5s" // so many remarks take a while to be listed
			var at catch
			newBetween(w, at.passes, "publisher")
			w.up()
			w.repository()
			const many = 60
			file := func(n int) string { return fmt.Sprintf("many%d.txt", n) }
			w.push("change", map[string]string{file(0): strings.Repeat(conflicted, many)}, control.None)
			opened := w.open(control.Send)
			n := opened.Pull.Number
			w.resting(n, opened.Pull.HeadSHA)
			for i, output := range slices.Sorted(maps.Keys(outputs)) {
				held := at.next(outputs[output])
				// What was remarked is fixed, and as much is new.
				pushed := w.push("change", map[string]string{file(i): "fixed\n", file(i + 1): strings.Repeat(conflicted, many)}, control.Send)
				wait(t, output, held.reached)
				victim := w.procs["publisher"]
				if how == "killed" {
					w.crash("publisher")
				} else {
					victim.signal(t, syscall.SIGSTOP)
				}
				held.release()
				w.up("publisher")
				eventually(t, "the head is shown in spite of "+output, func() error { return w.shown(pushed.After) })
				if how == "stopped" {
					victim.signal(t, syscall.SIGCONT)
				}
				v := w.resting(n, pushed.After)
				if how == "stopped" {
					victim.kill()
					v = w.resting(n, pushed.After)
				}
				said := map[int]int{}
				for _, r := range v.remarks {
					if r.Path == file(i+1) {
						said[r.Line]++
					}
				}
				if len(said) != many || slices.Max(slices.Collect(maps.Values(said))) != 1 {
					t.Errorf("%s at the %s: %d remarks: %v", how, output, len(said), said)
				}
				if len(v.checks) != 1 || v.checks[0].Annotations != many+1 || v.checks[0].Status != "completed" {
					t.Errorf("%s at the %s: %+v", how, output, v.checks)
				}
				for _, r := range v.reviews {
					if r.CommitID != pushed.After && !strings.Contains(r.Body, "an older head") {
						t.Errorf("%s at the %s: a review of %s says:\n%s", how, output, r.CommitID, r.Body)
					}
				}
				if t.Failed() {
					return
				}
			}
			w.atPeace()
		})
	}
}
