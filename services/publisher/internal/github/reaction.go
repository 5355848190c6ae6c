package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// Reactions are on the comment that a reply answers. They are the one write that GitHub itself makes
// idempotent: an account has each reaction once (docs.github.com, "Create reaction for an issue comment").
type Reactions struct{ *GitHub }

var contents = map[publisher.Reaction]string{publisher.Eyes: "eyes", publisher.ThumbsUp: "+1", publisher.Confused: "confused"}

// Find looks for our own reaction, through all pages.
func (g Reactions) Find(ctx context.Context, e publisher.Epoch, _ publisher.Ref, _ time.Time) (*publisher.Found, error) {
	self, err := g.whoami(ctx, e.PR.Installation)
	if err != nil {
		return nil, err
	}
	content := contents[e.Reply.Reaction]
	for n := 1; n > 0; {
		q := url.Values{"content": {content}, "per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(n)}}
		var list []*github.Reaction
		resp, err := g.app.Client(e.PR.Installation).Get(ctx, reactionsPath(e)+"?"+q.Encode(), &list)
		if err != nil {
			return nil, failure(err)
		}
		for _, r := range list {
			if r.GetID() != 0 && r.GetUser().GetID() == self.bot && r.GetContent() == content {
				return &publisher.Found{ID: r.GetID(), At: e.At}, nil
			}
		}
		if n = resp.NextPage; n > maxPages {
			return nil, nil // nobody would see ours; it is harmless to be made again
		}
	}
	return nil, nil
}

// Read finds the reaction again: there is no reading one by its id.
func (g Reactions) Read(ctx context.Context, e publisher.Epoch, ref publisher.Ref, _ int64) (*publisher.Found, error) {
	return g.Find(ctx, e, ref, time.Time{})
}

// Create reacts. One that is there already is answered with 200.
func (g Reactions) Create(ctx context.Context, e publisher.Epoch, _ publisher.Output) (publisher.Placed, error) {
	c := g.app.Client(e.PR.Installation)
	req, err := c.GitHub.NewRequest(http.MethodPost, reactionsPath(e), map[string]string{"content": contents[e.Reply.Reaction]})
	if err != nil {
		return publisher.Placed{}, &publisher.Failure{Class: publisher.Refused, Reason: ghapp.ReasonBadRequest, Err: err}
	}
	var made github.Reaction
	resp, err := c.Do(ctx, req, &made)
	if err != nil {
		return publisher.Placed{}, failure(err)
	}
	if made.GetID() == 0 || resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		return publisher.Placed{}, &publisher.Failure{
			Class: publisher.Unknown, Reason: ghapp.ReasonUnexpected,
			Err: fmt.Errorf("github: POST answered %s without an id of what was written", http.StatusText(resp.StatusCode)),
		}
	}
	return publisher.Placed{ID: made.GetID()}, nil
}

// Edit makes it again, which changes nothing.
func (g Reactions) Edit(ctx context.Context, e publisher.Epoch, _ int64, out publisher.Output) (publisher.Placed, error) {
	return g.Create(ctx, e, out)
}

func reactionsPath(e publisher.Epoch) string {
	return fmt.Sprintf("repositories/%d/issues/comments/%d/reactions", e.PR.Repository, e.Reply.Comment)
}
