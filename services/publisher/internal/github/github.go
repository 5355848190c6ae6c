// Package github makes the publisher's few calls of GitHub: it reads the pull request, finds what is ours
// on its page, and writes. Repositories are named by their numeric id. Every error is a
// *publisher.Failure.
package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

const (
	pageSize = 100
	// maxPages bounds the walk through a list; a longer one is unknown, not absent.
	maxPages = 100
	// credentialPause is how long an installation is left alone whose credentials GitHub refuses.
	credentialPause = time.Minute
)

// GitHub is one App on one host, as the publisher uses it.
type GitHub struct {
	app  *ghapp.App
	keys publisher.Keyring
	name string // of check runs

	mu   sync.Mutex
	self *identity
}

// identity is who we are to GitHub: what a comment's author and a check run's app are compared with.
type identity struct {
	app int64
	bot int64
}

// New returns the calls of the App; check runs carry the name.
func New(app *ghapp.App, keys publisher.Keyring, checkName string) *GitHub {
	return &GitHub{app: app, keys: keys, name: checkName}
}

// ReadPullRequest reads the pull request as it is now. One that is not there is read as gone.
func (g *GitHub) ReadPullRequest(ctx context.Context, pr publisher.PullRequest) (publisher.Reading, error) {
	var got github.PullRequest
	_, err := g.app.Client(pr.Installation).Get(ctx, fmt.Sprintf("repositories/%d/pulls/%d", pr.Repository, pr.Number), &got)
	if err != nil {
		f := failure(err)
		if f.Class == publisher.Gone && !f.Everything {
			return publisher.Reading{State: publisher.PRGone}, nil
		}
		return publisher.Reading{}, f
	}
	r := publisher.Reading{
		State: publisher.PROpen, HeadSHA: got.GetHead().GetSHA(), BaseRef: got.GetBase().GetRef(),
		UpdatedAt: got.GetUpdatedAt().Time,
	}
	switch {
	case got.GetState() != "open":
		r.State = publisher.PRClosed
	case got.GetDraft():
		r.State = publisher.PRDraft
	}
	return r, nil
}

// whoami asks once per process which App and which bot account we are. The bot's number stays when the
// App is renamed, its login does not.
func (g *GitHub) whoami(ctx context.Context, installation int64) (identity, error) {
	g.mu.Lock()
	known := g.self
	g.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	var app github.App
	if _, err := g.app.JWT().Get(ctx, "app", &app); err != nil {
		return identity{}, asked(err)
	}
	var bot github.User
	login := url.PathEscape(app.GetSlug() + "[bot]")
	if _, err := g.app.Client(installation).Get(ctx, "users/"+login, &bot); err != nil {
		return identity{}, asked(err)
	}
	if app.GetID() == 0 || bot.GetID() == 0 || bot.GetType() != "Bot" {
		return identity{}, &publisher.Failure{
			Class: publisher.NotExecuted, Reason: "BOT_UNKNOWN",
			Err: fmt.Errorf("github: the bot account of App %d is not to be found", app.GetID()),
		}
	}
	self := identity{app: app.GetID(), bot: bot.GetID()}
	g.mu.Lock()
	g.self = &self
	g.mu.Unlock()
	return self, nil
}

// asked sorts a failure to learn who we are: it says nothing of the page, so that it ends no intent.
func asked(err error) *publisher.Failure {
	f := failure(err)
	if f.Class == publisher.Gone && !f.Everything || f.Class == publisher.Refused {
		f.Class = publisher.NotExecuted
	}
	return f
}

// send makes a write and checks that it was one: GitHub's answer has the expected status and an id.
func (g *GitHub) send(ctx context.Context, installation int64, method, path string, body any, want int, out any, id func() int64) error {
	c := g.app.Client(installation)
	req, err := c.GitHub.NewRequest(method, path, body)
	if err != nil {
		return &publisher.Failure{Class: publisher.Refused, Reason: ghapp.ReasonBadRequest, Err: err}
	}
	resp, err := c.Do(ctx, req, out)
	if err != nil {
		return failure(err)
	}
	if resp.StatusCode != want || id() == 0 {
		return &publisher.Failure{
			Class: publisher.Unknown, Reason: ghapp.ReasonUnexpected,
			Err: fmt.Errorf("github: %s answered %s without an id of what was written", method, http.StatusText(resp.StatusCode)),
		}
	}
	return nil
}

// failure sorts an error of a call.
func failure(err error) *publisher.Failure {
	f := ghapp.Classify(err)
	out := &publisher.Failure{Class: publisher.Unknown, Reason: f.Reason, RetryAfter: f.RetryAfter, Everything: f.Mint, Err: &f}
	switch f.Class {
	case ghapp.NotExecuted:
		out.Class = publisher.NotExecuted
	case ghapp.Refused:
		out.Class = publisher.Refused
	case ghapp.Throttled:
		out.Class = publisher.Throttled
		if !f.Advised {
			out.RetryAfter = 0 // the row knows how often in a row, in whatever replica
		}
	case ghapp.Auth:
		out.Class, out.RetryAfter = publisher.Throttled, max(f.RetryAfter, credentialPause)
	case ghapp.Gone:
		out.Class = publisher.Gone
	case ghapp.Unknown, ghapp.None:
	}
	if reason, told := refusal(f); told && out.Class == publisher.Refused {
		out.Reason = reason
	}
	return out
}
