package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// Checks are where check runs live: on a commit, found again by our App, their name and the run's id.
type Checks struct{ *GitHub }

// Find looks through all check runs of the surface's head for its run's own: the oldest where there are
// several. Nil is surely none.
func (g Checks) Find(ctx context.Context, e publisher.Epoch, ref publisher.Ref, since time.Time) (*publisher.Found, error) {
	all, err := g.All(ctx, e, ref, since)
	if err != nil {
		return nil, err
	}
	return oldest(all), nil
}

// All lists every check run of the surface, the oldest first. GitHub offers no since here, and lists the newest
// first, so that the pages are walked forwards.
func (g Checks) All(ctx context.Context, e publisher.Epoch, ref publisher.Ref, _ time.Time) ([]publisher.Found, error) {
	self, err := g.whoami(ctx, e.PR.Installation)
	if err != nil {
		return nil, err
	}
	head, run, _ := strings.Cut(ref.Key, ":")
	var all []publisher.Found
	for n := 1; n > 0; {
		var list github.ListCheckRunsResults
		resp, err := g.app.Client(e.PR.Installation).Get(ctx, g.listPath(e, head, self, n), &list)
		if err != nil {
			return nil, failure(err)
		}
		for _, c := range list.CheckRuns {
			known := func(f publisher.Found) bool { return f.ID == c.GetID() }
			if c.GetExternalID() == run && c.GetApp().GetID() == self.app && c.GetName() == g.name && !slices.ContainsFunc(all, known) {
				all = append(all, g.found(e, ref, c))
			}
		}
		if n = resp.NextPage; n > maxPages {
			return nil, tooLong("check runs", n)
		}
	}
	slices.SortFunc(all, byID)
	return all, nil
}

// listPath asks for all check runs; without filter=all GitHub lists the newest of a name only.
func (g Checks) listPath(e publisher.Epoch, head string, self identity, page int) string {
	q := url.Values{
		"check_name": {g.name}, "app_id": {strconv.FormatInt(self.app, 10)}, "filter": {"all"},
		"per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(page)},
	}
	return fmt.Sprintf("repositories/%d/commits/%s/check-runs?%s", e.PR.Repository, url.PathEscape(head), q.Encode())
}

func (g Checks) found(e publisher.Epoch, ref publisher.Ref, c *github.CheckRun) publisher.Found {
	mark, _ := g.keys.Read(e.PlaceOf(ref), c.GetOutput().GetSummary())
	return publisher.Found{ID: c.GetID(), URL: c.GetHTMLURL(), At: mark.At, Run: mark.Run}
}

// Read reads the check run back by its id; nil where it is gone.
func (g Checks) Read(ctx context.Context, e publisher.Epoch, ref publisher.Ref, id int64) (*publisher.Found, error) {
	c, err := g.get(ctx, e, id)
	if err != nil {
		return nil, absent(err)
	}
	f := g.found(e, ref, c)
	f.ID = id
	return &f, nil
}

func (g Checks) get(ctx context.Context, e publisher.Epoch, id int64) (*github.CheckRun, error) {
	var c github.CheckRun
	_, err := g.app.Client(e.PR.Installation).Get(ctx, checkPath(e, id), &c)
	return &c, err
}

// Create makes the check run, with the first of its annotations. It is never repeated here.
func (g Checks) Create(ctx context.Context, e publisher.Epoch, out publisher.Output) (publisher.Placed, error) {
	s := stepOf(out.Check, 0)
	body := github.CreateCheckRunOptions{
		Name: g.name, HeadSHA: out.Check.HeadSHA, ExternalID: &out.Check.ExternalID, DetailsURL: details(out.Check),
		Status: s.status(), Conclusion: s.conclusion(), Output: s.output(), Actions: s.actions(),
	}
	return g.put(ctx, e, s, http.MethodPost, fmt.Sprintf("repositories/%d/check-runs", e.PR.Repository), http.StatusCreated, body)
}

// Edit replaces what the check run says. GitHub appends annotations, and never replaces one: how many there are is
// read first, so that none is there twice.
func (g Checks) Edit(ctx context.Context, e publisher.Epoch, id int64, out publisher.Output) (publisher.Placed, error) {
	there := 0
	if len(out.Check.Annotations) > 0 {
		c, err := g.get(ctx, e, id)
		if err != nil {
			return publisher.Placed{}, failure(err)
		}
		there = c.GetOutput().GetAnnotationsCount()
	}
	s := stepOf(out.Check, there)
	body := github.UpdateCheckRunOptions{
		Name: g.name, ExternalID: &out.Check.ExternalID, DetailsURL: details(out.Check),
		Status: s.status(), Conclusion: s.conclusion(), Output: s.output(), Actions: s.actions(),
	}
	return g.put(ctx, e, s, http.MethodPatch, checkPath(e, id), http.StatusOK, body)
}

// Remove says of a check run that is too many that it is a duplicate: GitHub deletes none.
func (g Checks) Remove(ctx context.Context, e publisher.Epoch, _ publisher.Ref, extra publisher.Found) error {
	body := github.UpdateCheckRunOptions{
		Name: g.name, ExternalID: github.String("duplicate"), // no longer found as the run's
		Status: github.String(string(publisher.StatusCompleted)), Conclusion: github.String(string(publisher.ConclusionNeutral)),
		Output: &github.CheckRunOutput{Title: github.String("duplicate"), Summary: github.String(publisher.Duplicate)},
	}
	_, err := g.put(ctx, e, step{}, http.MethodPatch, checkPath(e, extra.ID), http.StatusOK, body)
	return err
}

func (g Checks) put(ctx context.Context, e publisher.Epoch, s step, method, path string, want int, body any) (publisher.Placed, error) {
	var c github.CheckRun
	if err := g.send(ctx, e.PR.Installation, method, path, body, want, &c, c.GetID); err != nil {
		return publisher.Placed{}, err
	}
	return publisher.Placed{ID: c.GetID(), URL: c.GetHTMLURL(), More: s.more}, nil
}

func checkPath(e publisher.Epoch, id int64) string {
	return fmt.Sprintf("repositories/%d/check-runs/%d", e.PR.Repository, id)
}

// details links the comment; GitHub refuses what is no web address.
func details(c *publisher.Check) *string {
	if !strings.HasPrefix(c.DetailsURL, "https://") && !strings.HasPrefix(c.DetailsURL, "http://") {
		return nil
	}
	return &c.DetailsURL
}
