package control

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Request is one request the simulator's API saw. Credentials are never recorded.
type Request struct {
	Seq            int64     `json:"seq"`
	At             time.Time `json:"at"`
	Method         string    `json:"method"`
	Path           string    `json:"path"` // escaped, with query
	Class          string    `json:"class"`
	RepositoryID   int64     `json:"repository_id"`
	InstallationID int64     `json:"installation_id"`
	UserAgent      string    `json:"user_agent"`
	Traceparent    string    `json:"traceparent"`
	Body           string    `json:"body"`
	Handled        bool      `json:"handled"` // the route ran: a write took effect if Status says so
	Status         int       `json:"status"`  // what the route answered; 0 while in flight
	Answered       bool      `json:"answered"`
	Faults         []string  `json:"faults"` // ids of the faults that hit it
	Duration       Duration  `json:"duration"`
}

// RequestFilter narrows Requests; zero fields do not.
type RequestFilter struct {
	After  int64 // only requests with a higher Seq
	Class  string
	Method string
}

// Comment is one issue comment, also when it is deleted or hidden from the API.
type Comment struct {
	ID           int64            `json:"id"`
	RepositoryID int64            `json:"repository_id"`
	Number       int              `json:"number"`
	Author       Account          `json:"author"`
	Body         string           `json:"body"`
	HTMLURL      string           `json:"html_url"`
	CreatedAt    time.Time        `json:"created_at"`
	UpdatedAt    time.Time        `json:"updated_at"`
	DeletedAt    *time.Time       `json:"deleted_at,omitempty"`
	History      []CommentVersion `json:"history"` // oldest first
	Reactions    []Reaction       `json:"reactions"`
	// Deliveries are what the control call that answers with this raised; the truth log has none.
	Deliveries []Delivery `json:"deliveries,omitempty"`
}

// CommentVersion is a body a comment had.
type CommentVersion struct {
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Body    string    `json:"body"`
	Deleted bool      `json:"deleted,omitempty"`
}

// Reaction is one reaction to a comment.
type Reaction struct {
	ID      int64  `json:"id"`
	User    string `json:"user"`
	Content string `json:"content"`
}

// CheckRun is one check run.
type CheckRun struct {
	ID           int64      `json:"id"`
	RepositoryID int64      `json:"repository_id"`
	HeadSHA      string     `json:"head_sha"`
	Name         string     `json:"name"`
	ExternalID   string     `json:"external_id"`
	DetailsURL   string     `json:"details_url"`
	Status       string     `json:"status"`
	Conclusion   string     `json:"conclusion"`
	Title        string     `json:"title"`
	Summary      string     `json:"summary"`
	Text         string     `json:"text"`
	Annotations  int        `json:"annotations"`
	AppID        int64      `json:"app_id"`
	HTMLURL      string     `json:"html_url"`
	CreatedAt    time.Time  `json:"created_at"`
	StartedAt    *time.Time `json:"started_at,omitempty"`
	CompletedAt  *time.Time `json:"completed_at,omitempty"`
	Updates      int        `json:"updates"` // how often it was updated after it was created
}

// Requests returns the requests the API saw, oldest first.
func (c *Client) Requests(ctx context.Context, f RequestFilter) ([]Request, error) {
	q := url.Values{}
	if f.After > 0 {
		q.Set("after", strconv.FormatInt(f.After, 10))
	}
	if f.Class != "" {
		q.Set("class", f.Class)
	}
	if f.Method != "" {
		q.Set("method", f.Method)
	}
	var out []Request
	return out, c.call(ctx, http.MethodGet, "/truth/requests?"+q.Encode(), nil, &out)
}

// Comments returns every comment of a pull request, deleted and hidden ones too, oldest first.
func (c *Client) Comments(ctx context.Context, repo int64, number int) ([]Comment, error) {
	var out []Comment
	return out, c.call(ctx, http.MethodGet, fmt.Sprintf("/truth/comments?repository=%d&number=%d", repo, number), nil, &out)
}

// CheckRuns returns every check run of a repository, oldest first; a sha narrows to one head.
func (c *Client) CheckRuns(ctx context.Context, repo int64, sha string) ([]CheckRun, error) {
	var out []CheckRun
	path := fmt.Sprintf("/truth/checks?repository=%d&sha=%s", repo, url.QueryEscape(sha))
	return out, c.call(ctx, http.MethodGet, path, nil, &out)
}
