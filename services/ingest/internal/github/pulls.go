package github

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// pull is the part of a pull request that a comparison with what was read needs.
type pull struct {
	Number    int64     `json:"number"`
	State     string    `json:"state"`
	Draft     bool      `json:"draft"`
	UpdatedAt time.Time `json:"updated_at"`
	Head      struct {
		SHA string `json:"sha"`
	} `json:"head"`
	Base struct {
		Ref string `json:"ref"`
	} `json:"base"`
}

func (p pull) whole() bool {
	return p.Number > 0 && p.State != "" && isSHA(p.Head.SHA) && p.Base.Ref != ""
}

func (p pull) read() ingest.PullRequest {
	return ingest.PullRequest{
		Number: p.Number, HeadSHA: p.Head.SHA, BaseRef: p.Base.Ref, State: p.State, Draft: p.Draft, UpdatedAt: p.UpdatedAt.UTC(),
	}
}

// OpenPulls lists a page of a repository's open pull requests, the oldest first, so that what is opened
// meanwhile comes at the end. next is the following page, 0 after the last.
func (g *GitHub) OpenPulls(ctx context.Context, installation, repository int64, page int) (list []ingest.PullRequest, next int, err error) {
	path := fmt.Sprintf("repositories/%d/pulls?state=open&sort=created&direction=asc&per_page=%d&page=%d", repository, pageSize, page)
	var got []pull
	resp, err := g.app.Client(installation).Get(ctx, path, &got)
	if err != nil {
		return nil, 0, fmt.Errorf("list pull requests: %w", err)
	}
	for _, p := range got {
		if !p.whole() {
			return nil, 0, fmt.Errorf("list pull requests: %w", unexpected())
		}
		list = append(list, p.read())
	}
	return list, following(page, resp.NextPage, len(list)), nil
}

// mostPages bounds a listing that GitHub says goes on and on.
const mostPages = 1000

// following is the page that GitHub says is next, 0 after the last: one that leads back, or follows an empty one, is none.
func following(page, next, found int) int {
	if next != page+1 || next > mostPages || found == 0 {
		return 0
	}
	return next
}

// Pull reads one pull request.
func (g *GitHub) Pull(ctx context.Context, installation, repository, number int64) (ingest.PullRequest, error) {
	var got pull
	if _, err := g.app.Client(installation).Get(ctx, fmt.Sprintf("repositories/%d/pulls/%d", repository, number), &got); err != nil {
		return ingest.PullRequest{}, fmt.Errorf("read pull request: %w", err)
	}
	if !got.whole() || got.Number != number {
		return ingest.PullRequest{}, fmt.Errorf("read pull request: %w", unexpected())
	}
	return got.read(), nil
}

// isSHA accepts the name of a commit, of SHA-1 or SHA-256.
func isSHA(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	for _, c := range []byte(s) {
		if _, err := strconv.ParseUint(string(c), 16, 8); err != nil {
			return false
		}
	}
	return true
}
