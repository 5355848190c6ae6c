package e2e

import (
	"strings"
	"testing"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
)

// TestLostReplyToEveryCommit loses the database's reply to each commit of each service in turn, one walk
// for each: what was committed has one effect, and what is shown at the end is right.
func TestLostReplyToEveryCommit(t *testing.T) {
	for _, s := range services {
		t.Run(s, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t, migrations.FS)
			w := newWorldOn(t, db, db.Name)
			w.brisk()
			_, dropper := pgtest.DropReplies(t, db, s)
			w.env[s][strings.ToUpper(s)+"_DSN"] = dropper.DSN
			w.up()
			w.repository()
			opened := w.open(control.Send)
			w.oneReview(w.atRest(), opened.Pull.Number, opened.Pull.HeadSHA)
			heads, commits := 1, dropper.Commits()
			for k := 0; heads == 1 || k <= commits; k++ { // polls count too, so one more for good measure
				if k == 0 {
					commits = dropper.Commits()
				} else {
					dropper.Arm(k - 1)
				}
				heads++
				pushed := w.change(heads, control.Send)
				w.redeliver(pushed.Deliveries)
				eventually(t, "the new head is shown", func() error { return w.shown(pushed.After) })
				if k == 0 {
					commits = dropper.Commits() - commits
				}
				w.oneReview(w.atRest(), opened.Pull.Number, pushed.After)
			}
			calls := w.started(w.atRest())
			if calls > heads+heads/4 {
				t.Errorf("%d engine calls for %d heads", calls, heads)
			}
			t.Logf("%d commits of %s, %d replies lost, %d heads, %d engine calls", commits, s, dropper.Lost(), heads, calls)
		})
	}
}
