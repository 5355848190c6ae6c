package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

const (
	onHead = "RIGHT" // the side of the diff that shows the head
	// pending is the state of a review that nobody else sees; GitHub allows one per account and pull request.
	pending = "PENDING"
	// maxCleared bounds the inline comments of a duplicate that are removed at once.
	maxCleared = 100
)

// Reviews are where inline comments are made. A review that is posted can be edited, and never deleted.
type Reviews struct{ *GitHub }

// Find looks through all reviews for the surface's own: the oldest where there are several. Nil is surely none.
func (g Reviews) Find(ctx context.Context, e publisher.Epoch, ref publisher.Ref, since time.Time) (*publisher.Found, error) {
	all, err := g.All(ctx, e, ref, since)
	if err != nil {
		return nil, err
	}
	return oldest(all), nil
}

// All lists every review of the surface, the oldest first. GitHub offers no since here.
func (g Reviews) All(ctx context.Context, e publisher.Epoch, ref publisher.Ref, _ time.Time) ([]publisher.Found, error) {
	var all []publisher.Found
	err := g.each(ctx, e, func(r *github.PullRequestReview) {
		if r.GetState() != pending {
			all = g.collect(all, e.PlaceOf(ref), r.GetID(), r.GetHTMLURL(), r.GetBody())
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, byID)
	return all, nil
}

// each visits every review of our bot's.
func (g Reviews) each(ctx context.Context, e publisher.Epoch, visit func(*github.PullRequestReview)) error {
	self, err := g.whoami(ctx, e.PR.Installation)
	if err != nil {
		return err
	}
	return walk(ctx, g.GitHub, e.PR.Installation, reviewsPath(e), nil, func(r *github.PullRequestReview) {
		if self.wrote(r.GetUser()) {
			visit(r)
		}
	})
}

// Read reads the review back by its id; nil where it is gone.
func (g Reviews) Read(ctx context.Context, e publisher.Epoch, ref publisher.Ref, id int64) (*publisher.Found, error) {
	var r github.PullRequestReview
	if _, err := g.app.Client(e.PR.Installation).Get(ctx, reviewPath(e, id), &r); err != nil {
		return nil, absent(err)
	}
	mark, _ := g.keys.Read(e.PlaceOf(ref), r.GetBody())
	return &publisher.Found{ID: id, URL: r.GetHTMLURL(), At: mark.At, Run: mark.Run}, nil
}

// Create posts the review with all its inline comments, of the reviewed head, in one call that submits it. It never
// approves and never requests changes. One bad comment refuses the whole, and GitHub does not say which. It is never
// repeated here.
func (g Reviews) Create(ctx context.Context, e publisher.Epoch, out publisher.Output) (publisher.Placed, error) {
	req := github.PullRequestReviewRequest{CommitID: &out.Post.HeadSHA, Body: &out.Body, Event: github.String("COMMENT")}
	for _, c := range out.Post.Comments {
		draft := &github.DraftReviewComment{
			Path: github.String(c.Path), Body: github.String(c.Body), Line: github.Int(int(c.Line)), Side: github.String(onHead),
		}
		if c.StartLine > 0 && c.StartLine < c.Line {
			draft.StartLine, draft.StartSide = github.Int(int(c.StartLine)), github.String(onHead)
		}
		req.Comments = append(req.Comments, draft)
	}
	placed, err := g.put(ctx, e, http.MethodPost, reviewsPath(e), req)
	if f, ok := errors.AsType[*publisher.Failure](err); ok && f.Reason == publisher.ReasonPendingReview {
		return publisher.Placed{}, g.clearPending(ctx, e, f)
	}
	return placed, err
}

// clearPending removes our own review that was never submitted, as a process that died may have left it: it is
// invisible, and in the way of every other. The call that met it had no effect.
func (g Reviews) clearPending(ctx context.Context, e publisher.Epoch, met *publisher.Failure) error {
	var found []int64
	err := g.each(ctx, e, func(r *github.PullRequestReview) {
		if r.GetState() == pending && r.GetID() != 0 {
			found = append(found, r.GetID())
		}
	})
	for _, id := range found {
		if err == nil {
			err = g.remove(ctx, e, reviewPath(e, id))
		}
	}
	if f, ok := errors.AsType[*publisher.Failure](err); ok && f.Class == publisher.Throttled {
		return f
	}
	return &publisher.Failure{
		Class: publisher.NotExecuted, Reason: publisher.ReasonPendingReview, Err: errors.Join(met.Err, err),
	}
}

// Edit replaces the review's text; its inline comments stay.
func (g Reviews) Edit(ctx context.Context, e publisher.Epoch, id int64, out publisher.Output) (publisher.Placed, error) {
	return g.put(ctx, e, http.MethodPut, reviewPath(e, id), map[string]string{"body": out.Body})
}

// Remove says of a review that is too many that it is a duplicate, once its inline comments are deleted.
func (g Reviews) Remove(ctx context.Context, e publisher.Epoch, _ publisher.Ref, extra publisher.Found) error {
	var comments []int64
	err := walk(ctx, g.GitHub, e.PR.Installation, reviewPath(e, extra.ID)+"/comments", nil, func(c *github.PullRequestComment) {
		if id := c.GetID(); id != 0 && !slices.Contains(comments, id) {
			comments = append(comments, id)
		}
	})
	if err != nil {
		return absent(err)
	}
	for _, id := range comments[:min(len(comments), maxCleared)] {
		if err := g.remove(ctx, e, remarkPath(e, id)); err != nil {
			return err
		}
	}
	if rest := len(comments) - maxCleared; rest > 0 {
		return &publisher.Failure{
			Class: publisher.NotExecuted, Reason: "MORE_TO_REMOVE", Err: fmt.Errorf("github: %d more comments of a duplicate review", rest),
		}
	}
	_, err = g.put(ctx, e, http.MethodPut, reviewPath(e, extra.ID), map[string]string{"body": publisher.Duplicate})
	return err
}

func (g Reviews) put(ctx context.Context, e publisher.Epoch, method, path string, body any) (publisher.Placed, error) {
	var r github.PullRequestReview
	if err := g.send(ctx, e.PR.Installation, method, path, body, http.StatusOK, &r, r.GetID); err != nil {
		return publisher.Placed{}, err
	}
	return publisher.Placed{ID: r.GetID(), URL: r.GetHTMLURL()}, nil
}

func reviewsPath(e publisher.Epoch) string {
	return fmt.Sprintf("repositories/%d/pulls/%d/reviews", e.PR.Repository, e.PR.Number)
}

func reviewPath(e publisher.Epoch, id int64) string {
	return fmt.Sprintf("%s/%d", reviewsPath(e), id)
}
