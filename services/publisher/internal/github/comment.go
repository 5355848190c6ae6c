package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// Comments are where summaries live.
type Comments struct{ *GitHub }

// Find looks through the whole page for the comment of the epoch's surface: one of our bot's, with a
// genuine marker; the oldest where there are several. Nil is surely none: an error on any page is an
// error. A since bounds the walk to comments changed after it.
func (g Comments) Find(ctx context.Context, e publisher.Epoch, ref publisher.Ref, since time.Time) (*publisher.Found, error) {
	self, err := g.whoami(ctx, e.PR.Installation)
	if err != nil {
		return nil, err
	}
	var found *publisher.Found
	err = g.walk(ctx, e.PR, since, func(c *github.IssueComment) {
		f := g.ours(e, ref, self, c)
		switch {
		case f == nil || found != nil && found.ID == f.ID:
		case found == nil:
			found = f
		case f.ID < found.ID:
			f.Extra, found = found.Extra+1, f
		default:
			found.Extra++
		}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// walk visits every comment, some twice. Pages are numbered, so a comment that is deleted meanwhile moves
// later ones to earlier pages: after the first page has said how many there are, they are walked from the
// last to the first, whereby none can be missed.
func (g Comments) walk(ctx context.Context, pr publisher.PullRequest, since time.Time, visit func(*github.IssueComment)) error {
	last, err := g.page(ctx, pr, since, 1, visit)
	if err != nil {
		return err
	}
	if last > maxPages {
		return &publisher.Failure{
			Class: publisher.NotExecuted, Reason: "TOO_MANY_PAGES",
			Err: fmt.Errorf("github: %d pages of comments, at most %d are read", last, maxPages),
		}
	}
	for n := last; last > 1 && n >= 1; n-- {
		if _, err := g.page(ctx, pr, since, n, visit); err != nil {
			return err
		}
	}
	return nil
}

// page visits one page and returns the number of the last one.
func (g Comments) page(ctx context.Context, pr publisher.PullRequest, since time.Time, n int, visit func(*github.IssueComment)) (int, error) {
	q := url.Values{"per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(n)}}
	if !since.IsZero() {
		q.Set("since", since.UTC().Format(time.RFC3339))
	}
	var comments []*github.IssueComment
	resp, err := g.app.Client(pr.Installation).Get(ctx,
		fmt.Sprintf("repositories/%d/issues/%d/comments?%s", pr.Repository, pr.Number, q.Encode()), &comments)
	if err != nil {
		return 0, failure(err)
	}
	for _, c := range comments {
		visit(c)
	}
	if resp.NextPage > 0 && resp.LastPage == 0 {
		return 0, &publisher.Failure{
			Class: publisher.NotExecuted, Reason: "PAGES_UNKNOWN",
			Err: fmt.Errorf("github: a list of comments that does not name its last page"),
		}
	}
	return max(resp.LastPage, n), nil
}

// ours reads a comment of our bot that carries the surface's marker; nil for any other.
func (g *GitHub) ours(e publisher.Epoch, ref publisher.Ref, self identity, c *github.IssueComment) *publisher.Found {
	if c.GetID() == 0 || c.GetUser().GetID() != self.bot || c.GetUser().GetType() != "Bot" {
		return nil
	}
	mark, genuine := g.keys.Read(e.PlaceOf(ref), c.GetBody())
	if !genuine {
		return nil
	}
	return &publisher.Found{ID: c.GetID(), URL: c.GetHTMLURL(), At: mark.At, Run: mark.Run}
}

// Read reads the comment back by its id; nil where it is gone. One whose marker a person removed is
// still ours, and shows nothing.
func (g Comments) Read(ctx context.Context, e publisher.Epoch, ref publisher.Ref, id int64) (*publisher.Found, error) {
	var c github.IssueComment
	_, err := g.app.Client(e.PR.Installation).Get(ctx, fmt.Sprintf("repositories/%d/issues/comments/%d", e.PR.Repository, id), &c)
	if err != nil {
		return nil, absent(err)
	}
	mark, _ := g.keys.Read(e.PlaceOf(ref), c.GetBody())
	return &publisher.Found{ID: id, URL: c.GetHTMLURL(), At: mark.At, Run: mark.Run}, nil
}

// Create posts the comment. It is never repeated here.
func (g Comments) Create(ctx context.Context, e publisher.Epoch, out publisher.Output) (publisher.Placed, error) {
	path := fmt.Sprintf("repositories/%d/issues/%d/comments", e.PR.Repository, e.PR.Number)
	return g.put(ctx, e, http.MethodPost, path, http.StatusCreated, out)
}

// Edit replaces the comment's body.
func (g Comments) Edit(ctx context.Context, e publisher.Epoch, id int64, out publisher.Output) (publisher.Placed, error) {
	path := fmt.Sprintf("repositories/%d/issues/comments/%d", e.PR.Repository, id)
	return g.put(ctx, e, http.MethodPatch, path, http.StatusOK, out)
}

func (g Comments) put(ctx context.Context, e publisher.Epoch, method, path string, want int, out publisher.Output) (publisher.Placed, error) {
	var c github.IssueComment
	err := g.send(ctx, e.PR.Installation, method, path, &github.IssueComment{Body: &out.Body}, want, &c, c.GetID)
	if err != nil {
		return publisher.Placed{}, err
	}
	return publisher.Placed{ID: c.GetID(), URL: c.GetHTMLURL()}, nil
}

// absent turns a 404 of a read by id into nil: there is no such thing.
func absent(err error) error {
	f := failure(err)
	if f.Class == publisher.Gone && !f.Everything {
		return nil
	}
	return f
}
