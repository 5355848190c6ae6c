package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// TestThrottledInstallationIsLeftAlone has GitHub tell one replica to wait, the reviewer's or the publisher's. Two of
// each run, and somebody pushes meanwhile: nobody calls GitHub for that installation until the time is over, and then
// it goes on by itself.
func TestThrottledInstallationIsLeftAlone(t *testing.T) {
	const pause, settles = 8 * time.Second, 1500 * time.Millisecond
	for who, class := range map[string]string{"reviewer": "repos.compare", "publisher": "checks.create"} {
		t.Run(who, func(t *testing.T) {
			w := newWorld(t)
			w.up()
			for _, s := range []string{"reviewer", "publisher"} {
				start(t, s, w.settings(s), w.canaries()).await(t, map[string]string{"service started": "debug_addr"})
			}
			w.repository()
			w.fault(control.Fault{Class: class, Times: 1, Limit: &control.LimitFault{Secondary: true, Status: 429, RetryAfter: int(pause / time.Second)}})
			w.open(control.Send)
			var told time.Time
			eventually(t, "the limit is met", func() error {
				seen, err := w.ctl.Requests(t.Context(), control.RequestFilter{Class: class})
				for _, r := range seen {
					if r.Status == 429 {
						told = r.At
						return nil
					}
				}
				return errors.Join(err, errors.New("nobody has met it"))
			})
			pushed := w.push("change", map[string]string{"notes.txt": conflicted + "more\n"}, control.Send)
			eventually(t, "the new head is shown", func() error { return w.shows(pushed.After) })
			seen, err := w.ctl.Requests(t.Context(), control.RequestFilter{Installation: w.installation.ID})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range seen {
				if after := r.At.Sub(told); after > settles && after < pause {
					t.Errorf("%s %s came %s after the limit, which was for %s", r.Method, r.Class, after.Round(time.Millisecond), pause)
				}
			}
		})
	}
}
