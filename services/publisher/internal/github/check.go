package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// Checks are where check runs live: on a commit, found again by our App, their name and the run's id.
type Checks struct{ *GitHub }

// Find looks through all check runs of the run's head for the run's own: the oldest where there are
// several. Nil is surely none. GitHub offers no since here.
func (g Checks) Find(ctx context.Context, e publisher.Epoch, ref publisher.Ref, _ time.Time) (*publisher.Found, error) {
	self, err := g.whoami(ctx, e.PR.Installation)
	if err != nil {
		return nil, err
	}
	var found *publisher.Found
	for n := 1; n > 0; {
		var list github.ListCheckRunsResults
		resp, err := g.app.Client(e.PR.Installation).Get(ctx, g.listPath(e, self, n), &list)
		if err != nil {
			return nil, failure(err)
		}
		for _, c := range list.CheckRuns {
			if c.GetExternalID() != e.Run.ID.String() || c.GetApp().GetID() != self.app || c.GetName() != g.name {
				continue
			}
			if f := g.found(e, ref, c); found == nil || f.ID < found.ID {
				found = &f
			}
		}
		if n = resp.NextPage; n > maxPages {
			return nil, &publisher.Failure{
				Class: publisher.NotExecuted, Reason: "TOO_MANY_PAGES",
				Err: fmt.Errorf("github: more than %d pages of check runs", maxPages),
			}
		}
	}
	return found, nil
}

// listPath asks for all check runs; without filter=all GitHub lists the newest of a name only.
func (g Checks) listPath(e publisher.Epoch, self identity, page int) string {
	q := url.Values{
		"check_name": {g.name}, "app_id": {strconv.FormatInt(self.app, 10)}, "filter": {"all"},
		"per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(page)},
	}
	return fmt.Sprintf("repositories/%d/commits/%s/check-runs?%s", e.PR.Repository, url.PathEscape(e.Run.HeadSHA), q.Encode())
}

func (g Checks) found(e publisher.Epoch, ref publisher.Ref, c *github.CheckRun) publisher.Found {
	mark, _ := g.keys.Read(e.PlaceOf(ref), c.GetOutput().GetSummary())
	return publisher.Found{ID: c.GetID(), URL: c.GetHTMLURL(), At: mark.At, Run: mark.Run}
}

// Read reads the check run back by its id; nil where it is gone.
func (g Checks) Read(ctx context.Context, e publisher.Epoch, ref publisher.Ref, id int64) (*publisher.Found, error) {
	var c github.CheckRun
	_, err := g.app.Client(e.PR.Installation).Get(ctx, fmt.Sprintf("repositories/%d/check-runs/%d", e.PR.Repository, id), &c)
	if err != nil {
		return nil, absent(err)
	}
	f := g.found(e, ref, &c)
	f.ID = id
	return &f, nil
}

// Create makes the check run, concluded. It is never repeated here.
func (g Checks) Create(ctx context.Context, e publisher.Epoch, out publisher.Output) (publisher.Placed, error) {
	body := github.CreateCheckRunOptions{
		Name: g.name, HeadSHA: out.Check.HeadSHA, ExternalID: &out.Check.ExternalID, DetailsURL: details(out.Check),
		Status: github.String("completed"), Conclusion: github.String(string(out.Check.Conclusion)), Output: output(out.Check),
	}
	return g.put(ctx, e, http.MethodPost, fmt.Sprintf("repositories/%d/check-runs", e.PR.Repository), http.StatusCreated, body)
}

// Edit replaces what the check run says.
func (g Checks) Edit(ctx context.Context, e publisher.Epoch, id int64, out publisher.Output) (publisher.Placed, error) {
	body := github.UpdateCheckRunOptions{
		Name: g.name, ExternalID: &out.Check.ExternalID, DetailsURL: details(out.Check),
		Status: github.String("completed"), Conclusion: github.String(string(out.Check.Conclusion)), Output: output(out.Check),
	}
	return g.put(ctx, e, http.MethodPatch, fmt.Sprintf("repositories/%d/check-runs/%d", e.PR.Repository, id), http.StatusOK, body)
}

func (g Checks) put(ctx context.Context, e publisher.Epoch, method, path string, want int, body any) (publisher.Placed, error) {
	var c github.CheckRun
	if err := g.send(ctx, e.PR.Installation, method, path, body, want, &c, c.GetID); err != nil {
		return publisher.Placed{}, err
	}
	return publisher.Placed{ID: c.GetID(), URL: c.GetHTMLURL()}, nil
}

func output(c *publisher.Check) *github.CheckRunOutput {
	return &github.CheckRunOutput{Title: &c.Title, Summary: &c.Summary}
}

// details links the comment; GitHub refuses what is no web address.
func details(c *publisher.Check) *string {
	if !strings.HasPrefix(c.DetailsURL, "https://") && !strings.HasPrefix(c.DetailsURL, "http://") {
		return nil
	}
	return &c.DetailsURL
}
