package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// maxDescription is how many characters of a description GitHub is known to take.
const maxDescription = 140

// Statuses are commit statuses, for Apps that may not write check runs. The newest of a context wins, so that one
// may be posted again at any time, and there is nothing to be found or healed.
type Statuses struct{ *GitHub }

// Find finds nothing: posting it again is as good as finding it.
func (g Statuses) Find(context.Context, publisher.Epoch, publisher.Ref, time.Time) (*publisher.Found, error) {
	return nil, nil
}

// Read knows nothing of what the status shows, so that it is posted again.
func (g Statuses) Read(_ context.Context, _ publisher.Epoch, _ publisher.Ref, id int64) (*publisher.Found, error) {
	return &publisher.Found{ID: id}, nil
}

// Create posts the status.
func (g Statuses) Create(ctx context.Context, e publisher.Epoch, out publisher.Output) (publisher.Placed, error) {
	status := github.RepoStatus{
		State: github.String(stateOf(out.Check)), Context: &g.name, Description: github.String(clip(out.Check.Title, maxDescription)),
		TargetURL: details(out.Check),
	}
	path := fmt.Sprintf("repositories/%d/statuses/%s", e.PR.Repository, url.PathEscape(out.Check.HeadSHA))
	var made github.RepoStatus
	if err := g.send(ctx, e.PR.Installation, http.MethodPost, path, &status, http.StatusCreated, &made, made.GetID); err != nil {
		return publisher.Placed{}, err
	}
	return publisher.Placed{ID: made.GetID(), URL: made.GetTargetURL()}, nil
}

// Edit posts it anew.
func (g Statuses) Edit(ctx context.Context, e publisher.Epoch, _ int64, out publisher.Output) (publisher.Placed, error) {
	return g.Create(ctx, e, out)
}

// stateOf puts a check into one of the four states of a status. There is no neutral one: what was reviewed without
// an error succeeds, what was not reviewed does not.
func stateOf(c *publisher.Check) string {
	switch {
	case c.Status != publisher.StatusCompleted:
		return "pending"
	case c.NotRun:
		return "error"
	case c.Conclusion == publisher.ConclusionFailure:
		return "failure"
	}
	return "success"
}

// clip cuts a text to so many characters.
func clip(s string, limit int) string {
	text := []rune(strings.TrimSpace(s))
	if len(text) <= limit {
		return string(text)
	}
	return string(text[:limit-1]) + "…"
}
