package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/pkg/redistest"
)

// Bounds of what a system may do while something it needs is away. Something that spins does so by hundreds.
const (
	watched      = 4 * time.Second
	mostCommits  = 40 // of all five services together, a second, with what is left of the walk before
	mostWarnings = 12 // of one process in that time
	mostCalls    = 12 // of GitHub in that time: two services that try again, after one second, two and four
	// With nothing away a whole walk falls into that time, from the push to the page: each call of it once, and those
	// of the summary twice, which is taken back first.
	walkCalls = 16
)

// TestCalmWhileSomethingIsAway takes away one thing at a time with work waiting: nobody spins, in the
// database, the logs, or towards GitHub. Times are those of an installation that sets nothing.
func TestCalmWhileSomethingIsAway(t *testing.T) {
	for name, away := range map[string]func(w *world){
		"nothing":   func(*world) {},
		"ingest":    func(w *world) { w.crash("ingest") },
		"scheduler": func(w *world) { w.crash("scheduler") },
		"reviewer":  func(w *world) { w.crash("reviewer") },
		"ledger":    func(w *world) { w.crash("ledger") },
		"publisher": func(w *world) { w.crash("publisher") },
		"redis":     func(w *world) { _ = w.server.Stop() },
		"github": func(w *world) {
			w.fault(control.Fault{Class: control.Everything, Error: &control.ErrorFault{Status: 503}})
		},
		"tokens": func(w *world) {
			w.fault(control.Fault{Class: "tokens.create", Error: &control.ErrorFault{Status: 401, Message: "A JSON web token could not be decoded"}})
			_ = w.ctl.RevokeTokens(w.Context(), w.installation.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.server = redistest.Server(t)
			w.redis, w.unhurried = w.server.Addr(), true
			w.up()
			w.repository()
			opened := w.open(control.Send)
			w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
			away(w)
			pushed, err := w.ctl.Push(t.Context(), w.repo.ID, control.Push{
				Branch: "change", Commits: []control.Commit{{Message: "change", Files: map[string]string{"notes.txt": conflicted + "more\n"}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			_ = pushed
			if name == "nothing" {
				w.calm(walkCalls)
			} else {
				w.calm(mostCalls)
			}
		})
	}
}

// calm watches for a while.
func (w *world) calm(mostCalls int) {
	w.Helper()
	const commits = `SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()`
	seen, err := w.ctl.Requests(w.Context(), control.RequestFilter{})
	if err != nil {
		w.Fatal(err)
	}
	before, began := w.count(commits), time.Now()
	<-time.After(watched)
	rate := float64(w.count(commits)-before) / time.Since(began).Seconds()
	after, err := w.ctl.Requests(w.Context(), control.RequestFilter{After: int64(len(seen))})
	if err != nil {
		w.Fatal(err)
	}
	var report []string
	for s, p := range w.procs {
		n := p.audit.warnings()
		report = append(report, fmt.Sprintf("%s %d", s, n))
		if n > mostWarnings {
			w.Errorf("%s wrote %d lines from warning up:\n%s", s, n, p.log)
		}
	}
	classes := map[string]int{}
	for _, r := range after {
		classes[r.Class]++
	}
	w.Logf("%.1f transactions a second, %d calls of GitHub %v, warnings: %s", rate, len(after), classes, strings.Join(report, ", "))
	if rate > mostCommits {
		w.Errorf("%.1f transactions a second, at most %d", rate, mostCommits)
	}
	if len(after) > mostCalls {
		w.Errorf("%d calls of GitHub in %s, at most %d", len(after), watched, mostCalls)
	}
}
