package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// Remarks are single inline comments. They are made by reviews alone, and edited one by one.
type Remarks struct{ *GitHub }

// Remarks lists our bot's inline comments with a genuine marker, on whatever head they were made, the oldest first.
// An incomplete list is an error.
func (g Remarks) Remarks(ctx context.Context, e publisher.Epoch) ([]publisher.Remark, error) {
	var all []publisher.Remark
	err := g.each(ctx, e, func(r publisher.Remark, _ publisher.Mark) { all = append(all, r) })
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b publisher.Remark) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// each visits every remark once.
func (g Remarks) each(ctx context.Context, e publisher.Epoch, visit func(publisher.Remark, publisher.Mark)) error {
	self, err := g.whoami(ctx, e.PR.Installation)
	if err != nil {
		return err
	}
	seen := map[int64]bool{}
	path := fmt.Sprintf("repositories/%d/pulls/%d/comments", e.PR.Repository, e.PR.Number)
	return walk(ctx, g.GitHub, e.PR.Installation, path, nil, func(c *github.PullRequestComment) {
		fingerprint, mark, genuine := g.keys.ReadRemark(e.PlaceOf(publisher.Ref{}), c.GetBody())
		if id := c.GetID(); genuine && self.wrote(c.GetUser()) && id != 0 && !seen[id] {
			seen[id] = true
			visit(publisher.Remark{ID: id, URL: c.GetHTMLURL(), Path: c.GetPath(), Fingerprint: fingerprint, Resolved: mark.Resolved}, mark)
		}
	})
}

// Find looks for the remark of the fingerprint: the oldest that is not resolved, else the newest that is. Nil is
// surely none.
func (g Remarks) Find(ctx context.Context, e publisher.Epoch, ref publisher.Ref, _ time.Time) (*publisher.Found, error) {
	var open, fixed []publisher.Found
	err := g.each(ctx, e, func(r publisher.Remark, m publisher.Mark) {
		f := publisher.Found{ID: r.ID, URL: r.URL, At: m.At, Run: m.Run}
		switch {
		case r.Fingerprint != ref.Key:
		case r.Resolved:
			fixed = append(fixed, f)
		default:
			open = append(open, f)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case len(open) > 0:
		return oldest(open), nil
	case len(fixed) > 0:
		last := slices.MaxFunc(fixed, byID)
		return &last, nil
	}
	return nil, nil
}

// Read reads the remark back by its id; nil where it is gone.
func (g Remarks) Read(ctx context.Context, e publisher.Epoch, ref publisher.Ref, id int64) (*publisher.Found, error) {
	var c github.PullRequestComment
	if _, err := g.app.Client(e.PR.Installation).Get(ctx, remarkPath(e, id), &c); err != nil {
		return nil, absent(err)
	}
	mark, _ := g.keys.Read(e.PlaceOf(ref), c.GetBody())
	return &publisher.Found{ID: id, URL: c.GetHTMLURL(), At: mark.At, Run: mark.Run}, nil
}

// Create refuses: a remark comes with its review.
func (g Remarks) Create(context.Context, publisher.Epoch, publisher.Output) (publisher.Placed, error) {
	return publisher.Placed{}, &publisher.Failure{
		Class: publisher.Refused, Reason: ghapp.ReasonBadRequest, Err: fmt.Errorf("github: a remark is made by a review alone"),
	}
}

// Edit says above the remark that it is fixed, and keeps what it said. It reads the remark first.
func (g Remarks) Edit(ctx context.Context, e publisher.Epoch, id int64, out publisher.Output) (publisher.Placed, error) {
	var c github.PullRequestComment
	if _, err := g.app.Client(e.PR.Installation).Get(ctx, remarkPath(e, id), &c); err != nil {
		return publisher.Placed{}, failure(err)
	}
	place := e.PlaceOf(publisher.Ref{Kind: publisher.SurfaceRemark})
	place.Ref.Key, _, _ = g.keys.ReadRemark(place, out.Body)
	body, room := g.keys.Resolve(place, c.GetBody(), out.Body)
	if !room {
		return publisher.Placed{}, noRoom()
	}
	var edited github.PullRequestComment
	err := g.send(ctx, e.PR.Installation, http.MethodPatch, remarkPath(e, id), map[string]string{"body": body}, http.StatusOK, &edited, edited.GetID)
	if err != nil {
		return publisher.Placed{}, err
	}
	return publisher.Placed{ID: edited.GetID(), URL: edited.GetHTMLURL()}, nil
}

func remarkPath(e publisher.Epoch, id int64) string {
	return fmt.Sprintf("repositories/%d/pulls/comments/%d", e.PR.Repository, id)
}

func byID(a, b publisher.Found) int { return cmp.Compare(a.ID, b.ID) }
