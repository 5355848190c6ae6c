package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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
	all, err := g.All(ctx, e, ref, since)
	if err != nil {
		return nil, err
	}
	return oldest(all), nil
}

// All lists every comment of the epoch's surface, the oldest first.
func (g Comments) All(ctx context.Context, e publisher.Epoch, ref publisher.Ref, since time.Time) ([]publisher.Found, error) {
	self, err := g.whoami(ctx, e.PR.Installation)
	if err != nil {
		return nil, err
	}
	q := url.Values{}
	if !since.IsZero() {
		q.Set("since", since.UTC().Format(time.RFC3339))
	}
	var all []publisher.Found
	path := fmt.Sprintf("repositories/%d/issues/%d/comments", e.PR.Repository, e.PR.Number)
	err = walk(ctx, g.GitHub, e.PR.Installation, path, q, func(c *github.IssueComment) {
		if self.wrote(c.GetUser()) {
			all = g.collect(all, e.PlaceOf(ref), c.GetID(), c.GetHTMLURL(), c.GetBody())
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, byID)
	return all, nil
}

// wrote tells our bot's work from anybody else's.
func (i identity) wrote(u *github.User) bool {
	return u.GetID() == i.bot && u.GetType() == "Bot"
}

// collect adds an output whose body begins with a genuine marker of the place, once.
func (g *GitHub) collect(all []publisher.Found, p publisher.Place, id int64, page, body string) []publisher.Found {
	mark, genuine := g.keys.Read(p, body)
	known := func(f publisher.Found) bool { return f.ID == id }
	if id == 0 || !genuine || slices.ContainsFunc(all, known) {
		return all
	}
	return append(all, publisher.Found{ID: id, URL: page, At: mark.At, Run: mark.Run})
}

// Read reads the comment back by its id; nil where it is gone. One whose marker a person removed is
// still ours, and shows nothing.
func (g Comments) Read(ctx context.Context, e publisher.Epoch, ref publisher.Ref, id int64) (*publisher.Found, error) {
	var c github.IssueComment
	if _, err := g.app.Client(e.PR.Installation).Get(ctx, commentPath(e, id), &c); err != nil {
		return nil, absent(err)
	}
	mark, _ := g.keys.Read(e.PlaceOf(ref), c.GetBody())
	return &publisher.Found{ID: id, URL: c.GetHTMLURL(), At: mark.At, Run: mark.Run}, nil
}

// Create posts the comment. It is never repeated here.
func (g Comments) Create(ctx context.Context, e publisher.Epoch, out publisher.Output) (publisher.Placed, error) {
	path := fmt.Sprintf("repositories/%d/issues/%d/comments", e.PR.Repository, e.PR.Number)
	return g.put(ctx, e, http.MethodPost, path, http.StatusCreated, out.Body)
}

// Edit replaces what is ours of the comment, and keeps what people wrote around it. It reads the comment first: GitHub
// has no way to say that nobody wrote in between.
func (g Comments) Edit(ctx context.Context, e publisher.Epoch, id int64, out publisher.Output) (publisher.Placed, error) {
	if e.Reply != nil { // a sentence is a whole comment
		return g.put(ctx, e, http.MethodPatch, commentPath(e, id), http.StatusOK, out.Body)
	}
	var c github.IssueComment
	if _, err := g.app.Client(e.PR.Installation).Get(ctx, commentPath(e, id), &c); err != nil {
		return publisher.Placed{}, failure(err)
	}
	body, room := g.keys.Splice(e.PlaceOf(publisher.Ref{Kind: publisher.SurfaceSummary}), c.GetBody(), out.Body)
	if !room {
		return publisher.Placed{}, noRoom()
	}
	return g.put(ctx, e, http.MethodPatch, commentPath(e, id), http.StatusOK, body)
}

// Remove deletes a comment that is too many.
func (g Comments) Remove(ctx context.Context, e publisher.Epoch, _ publisher.Ref, extra publisher.Found) error {
	return g.remove(ctx, e, commentPath(e, extra.ID))
}

func (g Comments) put(ctx context.Context, e publisher.Epoch, method, path string, want int, body string) (publisher.Placed, error) {
	var c github.IssueComment
	err := g.send(ctx, e.PR.Installation, method, path, &github.IssueComment{Body: &body}, want, &c, c.GetID)
	if err != nil {
		return publisher.Placed{}, err
	}
	return publisher.Placed{ID: c.GetID(), URL: c.GetHTMLURL()}, nil
}

func commentPath(e publisher.Epoch, id int64) string {
	return fmt.Sprintf("repositories/%d/issues/comments/%d", e.PR.Repository, id)
}

// remove deletes what the path names; what is gone already is as good.
func (g *GitHub) remove(ctx context.Context, e publisher.Epoch, path string) error {
	c := g.app.Client(e.PR.Installation)
	req, err := c.GitHub.NewRequest(http.MethodDelete, path, nil)
	if err != nil {
		return failure(err)
	}
	if _, err := c.Do(ctx, req, nil); err != nil {
		return absent(err)
	}
	return nil
}

func noRoom() *publisher.Failure {
	return &publisher.Failure{
		Class: publisher.Refused, Reason: publisher.ReasonNoRoom,
		Err: fmt.Errorf("github: what people wrote into our comment leaves no room"),
	}
}

// absent turns a 404 of a call by id into nil: there is no such thing.
func absent(err error) error {
	f := failure(err)
	if f.Class == publisher.Gone && !f.Everything {
		return nil
	}
	return f
}
