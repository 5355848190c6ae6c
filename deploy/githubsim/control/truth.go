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
	Faults         []string  `json:"faults"`  // ids of the faults that hit it
	Actor          string    `json:"actor"`   // the bot's login, "app" with its JWT, "" without a credential that is known
	Creates        bool      `json:"creates"` // counts as content creation
	Limited        bool      `json:"limited"` // refused by a rate limit
	Duration       Duration  `json:"duration"`
}

// RequestFilter narrows Requests; zero fields do not.
type RequestFilter struct {
	After  int64 // only requests with a higher Seq
	Class  string
	Method string
	Writes bool // only what is no read and mints no token
	// Of one repository, or of one installation.
	Repository, Installation int64
}

// Usage is what one installation asked for, judged by the rules of GitHub's limits whether or not they are enforced.
// Tokens that were minted and reads of the limits are not in it.
type Usage struct {
	InstallationID int64 `json:"installation_id"`
	Requests       int   `json:"requests"`
	Writes         int   `json:"writes"`
	Creates        int   `json:"creates"`
	Refused        int   `json:"refused"` // answered with a 4xx
	RefusedWrites  int   `json:"refused_writes"`
	Limited        int   `json:"limited"` // of those refused, by a rate limit
	// The most in any minute or hour.
	PeakPointsPerMinute  int      `json:"peak_points_per_minute"`
	PeakCreatesPerMinute int      `json:"peak_creates_per_minute"`
	PeakCreatesPerHour   int      `json:"peak_creates_per_hour"`
	ShortestGap          Duration `json:"shortest_gap"` // between two writes; 0: there were no two
}

// Within reports whether the usage passed none of the secondary limits.
func (u Usage) Within(l Limits) bool {
	return u.PeakPointsPerMinute <= l.PointsPerMinute && u.PeakCreatesPerMinute <= l.CreatesPerMin && u.PeakCreatesPerHour <= l.CreatesPerHour
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

	AnnotationList []Annotation   `json:"annotation_list"`
	Actions        []CheckAction  `json:"actions"`
	History        []CheckVersion `json:"history"` // oldest first
}

// Annotation is one line in the diff that a check run points at.
type Annotation struct {
	Path        string `json:"path"`
	StartLine   int    `json:"start_line"`
	EndLine     int    `json:"end_line"`
	StartColumn int    `json:"start_column,omitempty"`
	EndColumn   int    `json:"end_column,omitempty"`
	Level       string `json:"annotation_level"`
	Title       string `json:"title,omitempty"`
	Message     string `json:"message"`
	RawDetails  string `json:"raw_details,omitempty"`
}

// CheckAction is a button on a check run's page.
type CheckAction struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Identifier  string `json:"identifier"`
}

// CheckVersion is a state a check run had.
type CheckVersion struct {
	At          time.Time `json:"at"`
	Status      string    `json:"status"`
	Conclusion  string    `json:"conclusion"`
	Title       string    `json:"title"`
	Annotations int       `json:"annotations"`
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
	if f.Writes {
		q.Set("writes", "true")
	}
	if f.Repository != 0 {
		q.Set("repository", strconv.FormatInt(f.Repository, 10))
	}
	if f.Installation != 0 {
		q.Set("installation", strconv.FormatInt(f.Installation, 10))
	}
	var out []Request
	return out, c.call(ctx, http.MethodGet, "/truth/requests?"+q.Encode(), nil, &out)
}

// Usage returns what an installation has asked for since the start.
func (c *Client) Usage(ctx context.Context, installation int64) (Usage, error) {
	var all []Usage
	if err := c.call(ctx, http.MethodGet, "/truth/usage", nil, &all); err != nil {
		return Usage{}, err
	}
	for _, u := range all {
		if u.InstallationID == installation {
			return u, nil
		}
	}
	return Usage{InstallationID: installation}, nil
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
