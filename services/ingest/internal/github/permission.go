package github

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// MayWrite asks whether an account may write to a repository now: "maintain" counts as write and "triage" as
// read (docs.github.com, "Get repository permissions for a user"). Who has given up a login is nobody: the
// number must be the one of who asked. Its error is an *ingest.Failure.
func (g *GitHub) MayWrite(ctx context.Context, installation, repository int64, who ingest.Account) (bool, error) {
	var got struct {
		Permission string  `json:"permission"`
		User       account `json:"user"`
	}
	path := fmt.Sprintf("repositories/%d/collaborators/%s/permission", repository, url.PathEscape(who.Login))
	if _, err := g.app.Client(installation).Get(ctx, path, &got); err != nil {
		return false, permissionFailure(err)
	}
	return got.User.ID == who.ID && (got.Permission == "admin" || got.Permission == "write"), nil
}

func permissionFailure(err error) *ingest.Failure {
	f := ghapp.Classify(err)
	out := &ingest.Failure{RetryAfter: f.RetryAfter, Err: fmt.Errorf("read permission: %w", err)}
	switch f.Class {
	case ghapp.Throttled, ghapp.Auth: // of the whole installation, suspended ones too
		out.Throttled = true
	case ghapp.Gone, ghapp.Refused:
		out.Final = true
	case ghapp.None, ghapp.NotExecuted, ghapp.Unknown:
	}
	if errors.Is(err, context.Canceled) {
		out.Throttled, out.Final = false, false
	}
	return out
}
