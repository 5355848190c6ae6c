package publisher

import (
	"fmt"
	"time"
)

// PRState is a pull request's state as it was read.
type PRState string

// The states of a pull request.
const (
	PROpen   PRState = "open"
	PRDraft  PRState = "draft"
	PRClosed PRState = "closed"
	PRGone   PRState = "gone"
)

// Reading is the pull request as it was just read from GitHub.
type Reading struct {
	State     PRState
	HeadSHA   string
	BaseRef   string
	UpdatedAt time.Time
}

// Shows tells whether the page is still that of the run: its head, its base and open.
func (r Reading) Shows(run Run) bool {
	return r.State == PROpen && r.HeadSHA == run.HeadSHA && r.BaseRef == run.BaseRef
}

// ActivityID names what was read, so that the same reading is told once per epoch.
func (r Reading) ActivityID(e Epoch) string {
	return fmt.Sprintf("publisher:%s:%d:%d:%s:%s:%s:%d",
		e.Target, e.At.Lifecycle, e.At.Epoch, r.State, r.HeadSHA, r.BaseRef, r.UpdatedAt.Unix())
}
