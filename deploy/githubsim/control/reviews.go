package control

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// NewReview is a person's review: the sender is its author. Without an event it stays pending, and only its author
// sees it.
type NewReview struct {
	Event    string      `json:"event,omitempty"` // "COMMENT", "APPROVE" or "REQUEST_CHANGES"
	Body     string      `json:"body,omitempty"`
	CommitID string      `json:"commit_id,omitempty"` // default: the head
	Comments []NewRemark `json:"comments,omitempty"`
	Options
}

// NewRemark is one inline comment of a person's review.
type NewRemark struct {
	Path      string `json:"path"`
	Body      string `json:"body"`
	Line      int    `json:"line"`
	Side      string `json:"side,omitempty"`       // "RIGHT" (default) or "LEFT"
	StartLine int    `json:"start_line,omitempty"` // of a range, on the same side
}

// Review is one review with its inline comments, in the order they were asked for.
type Review struct {
	ID           int64            `json:"id"`
	RepositoryID int64            `json:"repository_id"`
	Number       int              `json:"number"`
	Author       Account          `json:"author"`
	State        string           `json:"state"` // "PENDING", "COMMENTED", "APPROVED" or "CHANGES_REQUESTED"
	Body         string           `json:"body"`
	CommitID     string           `json:"commit_id"`
	HTMLURL      string           `json:"html_url"`
	CreatedAt    time.Time        `json:"created_at"`
	SubmittedAt  *time.Time       `json:"submitted_at,omitempty"`
	DeletedAt    *time.Time       `json:"deleted_at,omitempty"`
	History      []CommentVersion `json:"history"` // oldest first
	Comments     []ReviewComment  `json:"comments"`
	// Deliveries are what the control call that answers with this raised; the truth log has none.
	Deliveries []Delivery `json:"deliveries,omitempty"`
}

// ReviewComment is one inline comment, also when it is deleted or hidden from the API.
type ReviewComment struct {
	ID           int64   `json:"id"`
	ReviewID     int64   `json:"review_id"`
	RepositoryID int64   `json:"repository_id"`
	Number       int     `json:"number"`
	Author       Account `json:"author"`
	Body         string  `json:"body"`
	Path         string  `json:"path"`
	Side         string  `json:"side"`
	// Where it was written.
	OriginalCommitID  string `json:"original_commit_id"`
	OriginalLine      int    `json:"original_line"`
	OriginalStartLine int    `json:"original_start_line,omitempty"` // 0: a single line
	OriginalPosition  int    `json:"original_position"`
	StartSide         string `json:"start_side,omitempty"`
	DiffHunk          string `json:"diff_hunk"`
	// Where it stands in the newest diff.
	Outdated  bool   `json:"outdated"`
	CommitID  string `json:"commit_id"`
	Line      int    `json:"line,omitempty"`
	StartLine int    `json:"start_line,omitempty"`
	Position  int    `json:"position,omitempty"`

	InReplyTo int64            `json:"in_reply_to,omitempty"`
	HTMLURL   string           `json:"html_url"`
	CreatedAt time.Time        `json:"created_at"`
	UpdatedAt time.Time        `json:"updated_at"`
	DeletedAt *time.Time       `json:"deleted_at,omitempty"`
	History   []CommentVersion `json:"history"` // oldest first
	Reactions []Reaction       `json:"reactions"`
	// Deliveries are what the control call that answers with this raised; the truth log has none.
	Deliveries []Delivery `json:"deliveries,omitempty"`
}

// ApplySuggestion commits the suggestion of an inline comment.
type ApplySuggestion struct {
	Index int `json:"index,omitempty"` // which of the comment's suggestions, from 0
	Options
}

// Review writes a review as a person.
func (c *Client) Review(ctx context.Context, repo int64, number int, in NewReview) (Review, error) {
	var out Review
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/repositories/%d/pulls/%d/reviews", repo, number), in, &out)
}

// EditReview changes any review's body, the App's too, as a person.
func (c *Client) EditReview(ctx context.Context, id int64, in NewComment) (Review, error) {
	var out Review
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/reviews/%d/edit", id), in, &out)
}

// ReplyTo answers an inline comment as a person.
func (c *Client) ReplyTo(ctx context.Context, id int64, in NewComment) (ReviewComment, error) {
	var out ReviewComment
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/review-comments/%d/reply", id), in, &out)
}

// EditReviewComment changes any inline comment, the App's too, as a person.
func (c *Client) EditReviewComment(ctx context.Context, id int64, in NewComment) (ReviewComment, error) {
	var out ReviewComment
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/review-comments/%d/edit", id), in, &out)
}

// DeleteReviewComment removes any inline comment, the App's too, as a person.
func (c *Client) DeleteReviewComment(ctx context.Context, id int64, o Options) (ReviewComment, error) {
	var out ReviewComment
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/review-comments/%d/delete", id), o, &out)
}

// ApplySuggestion clicks "Commit suggestion" on an inline comment: the commit goes onto the head branch. What
// GitHub would not offer is refused: on an outdated comment, on deleted lines, of what changes nothing.
func (c *Client) ApplySuggestion(ctx context.Context, id int64, a ApplySuggestion) (Pushed, error) {
	var out Pushed
	return out, c.call(ctx, http.MethodPost, fmt.Sprintf("/review-comments/%d/apply", id), a, &out)
}

// Reviews returns every review of a pull request, pending, deleted and hidden ones too, oldest first.
func (c *Client) Reviews(ctx context.Context, repo int64, number int) ([]Review, error) {
	var out []Review
	return out, c.call(ctx, http.MethodGet, fmt.Sprintf("/truth/reviews?repository=%d&number=%d", repo, number), nil, &out)
}
