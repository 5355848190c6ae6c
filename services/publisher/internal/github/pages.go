package github

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// walk visits every entry of a list that is sorted by age, oldest first, some entries twice. Pages are numbered, so
// an entry that is deleted meanwhile moves later ones to earlier pages: after the first page has said how many there
// are, they are walked from the last to the first, whereby none can be missed. An error on any page is an error.
func walk[T any](ctx context.Context, g *GitHub, installation int64, path string, q url.Values, visit func(*T)) error {
	last, err := page(ctx, g, installation, path, q, 1, visit)
	if err != nil {
		return err
	}
	if last > maxPages {
		return tooLong(path, last)
	}
	for n := last; last > 1 && n >= 1; n-- {
		if _, err := page(ctx, g, installation, path, q, n, visit); err != nil {
			return err
		}
	}
	return nil
}

// page visits one page and returns the number of the last one.
func page[T any](ctx context.Context, g *GitHub, installation int64, path string, q url.Values, n int, visit func(*T)) (int, error) {
	asked := url.Values{"per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(n)}}
	for name, values := range q {
		asked[name] = values
	}
	var list []*T
	resp, err := g.app.Client(installation).Get(ctx, path+"?"+asked.Encode(), &list)
	if err != nil {
		return 0, failure(err)
	}
	for _, one := range list {
		if one != nil {
			visit(one)
		}
	}
	if resp.NextPage > 0 && resp.LastPage == 0 {
		return 0, &publisher.Failure{
			Class: publisher.NotExecuted, Reason: "PAGES_UNKNOWN",
			Err: fmt.Errorf("github: a list that does not name its last page"),
		}
	}
	return max(resp.LastPage, n), nil
}

// tooLong: what can't be read to its end is unknown, not absent.
func tooLong(what string, pages int) *publisher.Failure {
	return &publisher.Failure{
		Class: publisher.NotExecuted, Reason: "TOO_MANY_PAGES",
		Err: fmt.Errorf("github: %d pages of %s, at most %d are read", pages, what, maxPages),
	}
}

// oldest is the one that stays of several outputs of a surface, which knows of the others; nil is none.
func oldest(all []publisher.Found) *publisher.Found {
	if len(all) == 0 {
		return nil
	}
	found := all[0]
	for _, f := range all[1:] {
		if f.ID < found.ID {
			found = f
		}
	}
	found.Extra = len(all) - 1
	return &found
}
