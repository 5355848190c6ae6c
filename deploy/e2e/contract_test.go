package e2e

import (
	"context"
	"time"

	"github.com/fenceline-dev/fenceline/deploy/githubsim/contract"
	"github.com/fenceline-dev/fenceline/deploy/githubsim/control"
)

// keepsContract holds everything that the services wrote to GitHub against GitHub's own schemas, at the end of every
// test: what a service sends is what this sees, not what somebody remembered to list.
func (w *world) keepsContract() {
	schemas, err := contract.Load()
	if err != nil {
		w.Log("what was written is not held against GitHub's schemas:", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	writes, err := w.ctl.Requests(ctx, control.RequestFilter{Writes: true})
	if err != nil {
		w.Errorf("read what was written: %v", err)
		return
	}
	if err := schemas.Log(writes); err != nil {
		w.Error(err)
	}
}
