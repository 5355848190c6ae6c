// Package github makes ingest's few calls of GitHub. Repositories are named by their numeric id, and
// nothing of a payload is ever an address. Errors are what ghapp.Classify sorts.
package github

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// pageSize is GitHub's largest.
const pageSize = 100

// GitHub is one App on one host, as ingest uses it.
type GitHub struct {
	app *ghapp.App
}

// New returns the calls of the App.
func New(app *ghapp.App) *GitHub { return &GitHub{app: app} }

type account struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
}

// Repository reads a repository as it stands now, archived or renamed.
func (g *GitHub) Repository(ctx context.Context, installation, repository int64) (ingest.Standing, error) {
	var got struct {
		ID       int64   `json:"id"`
		Name     string  `json:"full_name"`
		Owner    account `json:"owner"`
		Archived bool    `json:"archived"`
	}
	if _, err := g.app.Client(installation).Get(ctx, fmt.Sprintf("repositories/%d", repository), &got); err != nil {
		return ingest.Standing{}, fmt.Errorf("read repository: %w", err)
	}
	if got.ID != repository || got.Owner.ID == 0 || got.Name == "" {
		return ingest.Standing{}, fmt.Errorf("read repository: %w", unexpected())
	}
	return ingest.Standing{
		Repository: ingest.Repository{ID: got.ID, Name: got.Name, Owner: ingest.Account(got.Owner)}, Archived: got.Archived,
	}, nil
}

// InstallationOf asks, as the App itself, through which installation it reaches a repository, and whose
// that is. A failure of class Gone: through none.
func (g *GitHub) InstallationOf(ctx context.Context, repository int64) (ingest.Installed, error) {
	var got struct {
		ID      int64   `json:"id"`
		Account account `json:"account"`
	}
	if _, err := g.app.JWT().Get(ctx, fmt.Sprintf("repositories/%d/installation", repository), &got); err != nil {
		return ingest.Installed{}, fmt.Errorf("find installation: %w", err)
	}
	if got.ID == 0 || got.Account.ID == 0 {
		return ingest.Installed{}, fmt.Errorf("find installation: %w", unexpected())
	}
	return ingest.Installed{ID: got.ID, Account: ingest.Account(got.Account)}, nil
}

// Installation asks, as the App itself and so without a token, how an installation stands. A failure of class
// Gone: there is none.
func (g *GitHub) Installation(ctx context.Context, installation int64) (ingest.InstallationNow, error) {
	var got struct {
		ID        int64      `json:"id"`
		Account   account    `json:"account"`
		Suspended *time.Time `json:"suspended_at"`
		UpdatedAt time.Time  `json:"updated_at"`
	}
	if _, err := g.app.JWT().Get(ctx, fmt.Sprintf("app/installations/%d", installation), &got); err != nil {
		return ingest.InstallationNow{}, fmt.Errorf("read installation: %w", err)
	}
	if got.ID != installation || got.Account.ID == 0 || got.UpdatedAt.IsZero() {
		return ingest.InstallationNow{}, fmt.Errorf("read installation: %w", unexpected())
	}
	return ingest.InstallationNow{Account: ingest.Account(got.Account), Suspended: got.Suspended != nil, UpdatedAt: got.UpdatedAt.UTC()}, nil
}

// unexpected is an answer that can't be GitHub's: nothing is decided by it, and it may be asked again.
func unexpected() error {
	return &ghapp.Failure{Class: ghapp.NotExecuted, Reason: ghapp.ReasonUnexpected, Method: http.MethodGet}
}

// Repositories lists a page of what an installation reaches. next is the following page, 0 after the last.
func (g *GitHub) Repositories(ctx context.Context, installation int64, page int) (list []ingest.Repository, next int, err error) {
	var got struct {
		Repositories []struct {
			ID    int64   `json:"id"`
			Name  string  `json:"full_name"`
			Owner account `json:"owner"`
		} `json:"repositories"`
	}
	resp, err := g.app.Client(installation).Get(ctx, fmt.Sprintf("installation/repositories?per_page=%d&page=%d", pageSize, page), &got)
	if err != nil {
		return nil, 0, fmt.Errorf("list repositories: %w", err)
	}
	for _, r := range got.Repositories {
		if r.ID == 0 || r.Owner.ID == 0 {
			return nil, 0, fmt.Errorf("list repositories: %w", unexpected())
		}
		list = append(list, ingest.Repository{ID: r.ID, Name: r.Name, Owner: ingest.Account(r.Owner)})
	}
	return list, following(page, resp.NextPage, len(got.Repositories)), nil
}
