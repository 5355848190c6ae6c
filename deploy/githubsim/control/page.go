package control

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Status is one commit status. Of one sha and context the newest counts.
type Status struct {
	ID           int64     `json:"id"`
	RepositoryID int64     `json:"repository_id"`
	SHA          string    `json:"sha"`
	Context      string    `json:"context"`
	State        string    `json:"state"`
	Description  string    `json:"description"`
	TargetURL    string    `json:"target_url"`
	Creator      string    `json:"creator"`
	CreatedAt    time.Time `json:"created_at"`
}

// Page is a pull request's page as a person sees it who looks now: nothing pending, nothing deleted, no lag.
type Page struct {
	Pull     Pull       `json:"pull"`
	Comments []Comment  `json:"comments"` // of the conversation, oldest first
	Reviews  []Review   `json:"reviews"`  // submitted ones, oldest first, each with its comments
	Checks   []CheckRun `json:"checks"`   // of the head, oldest first
	Statuses []Status   `json:"statuses"` // of the head, the newest of each context, oldest first
}

// Page returns the page of a pull request.
func (c *Client) Page(ctx context.Context, repo int64, number int) (Page, error) {
	var out Page
	return out, c.call(ctx, http.MethodGet, fmt.Sprintf("/repositories/%d/pulls/%d/page", repo, number), nil, &out)
}

// Statuses returns every commit status of a repository, hidden ones too, oldest first; a sha narrows to one commit.
func (c *Client) Statuses(ctx context.Context, repo int64, sha string) ([]Status, error) {
	var out []Status
	path := fmt.Sprintf("/truth/statuses?repository=%d&sha=%s", repo, url.QueryEscape(sha))
	return out, c.call(ctx, http.MethodGet, path, nil, &out)
}
