// Package github reads pull requests for review: what one is now, what it changes, and the text
// of the files that a check needs whole. It writes nothing.
package github

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

// ErrNoComparison means that base and head cannot be compared (now): the base branch is gone, the
// histories share nothing, or GitHub has not seen the head yet.
var ErrNoComparison = errors.New("nothing to compare")

// ErrMoved means that the pull request or its base changed while it was read. What was read belongs to no
// one moment, and reading again may do better.
var ErrMoved = errors.New("moved while it was read")

// State is what a pull request is now.
type State string

// The states. A pull request that GitHub does not show us is Gone.
const (
	Open   State = "open"
	Draft  State = "draft" // and open
	Closed State = "closed"
	Merged State = "merged" // and closed
	Gone   State = "gone"
)

// Pull is a pull request as just read. Only State is set when it is Gone.
type Pull struct {
	State        State
	HeadSHA      string
	BaseRef      string // the branch's name; its commit is the comparison's to tell
	Fork         bool   // the head is of another repository, or of one that is gone
	ChangedFiles int
	UpdatedAt    time.Time // GitHub's, in whole seconds
}

// Comparison is what a head changes against the merge base with its base branch.
type Comparison struct {
	BaseSHA   string // the base branch's commit at the time of the comparison
	MergeBase string
	Files     []engine.File // without contents
	LeftOut   []engine.Skip
}

// Reading is a pull request with its comparison, which is there for an open one only.
type Reading struct {
	Pull
	Comparison
}

// Limits bound what is kept of a comparison, and fetched beside it.
type Limits struct {
	Contents     int // files of one comparison
	ContentBytes int // of one file
	TotalBytes   int // of one comparison
	PatchBytes   int // of the diffs that are kept of one comparison
}

// DefaultLimits keep a review within some ten seconds of reading, but for pull requests of thousands of files:
// those take a request per hundred.
func DefaultLimits() Limits {
	return Limits{Contents: 40, ContentBytes: 512 << 10, TotalBytes: 8 << 20, PatchBytes: 12 << 20}
}

// Source reads on behalf of installations. Its errors are ghapp's: see ghapp.Classify.
type Source struct {
	app    *ghapp.App
	limits Limits
}

// New makes a Source.
func New(app *ghapp.App, limits Limits) (*Source, error) {
	if min(limits.Contents, limits.ContentBytes, limits.TotalBytes, limits.PatchBytes) < 0 {
		return nil, errors.New("limits of contents and diffs may not be negative")
	}
	return &Source{app: app, limits: limits}, nil
}

// Read reads the pull request and, if it is open, its comparison. Where that fails, what was read of the
// pull request is returned beside the error.
func (s *Source) Read(ctx context.Context, installation, repositoryID, number int64) (Reading, error) {
	p, err := s.ReadPull(ctx, installation, repositoryID, number)
	if err != nil || p.State != Open {
		return Reading{Pull: p}, err
	}
	c, err := s.Compare(ctx, installation, repositoryID, number, p)
	if err != nil {
		return Reading{Pull: p}, err
	}
	return Reading{Pull: p, Comparison: c}, nil
}

// ReadPull reads the pull request alone: one small request. A 404 is the state Gone and no error;
// whether to believe it, soon after a webhook, is the scheduler's to say. An installation that is
// gone is an error, for that says nothing about the pull request.
func (s *Source) ReadPull(ctx context.Context, installation, repositoryID, number int64) (Pull, error) {
	var answer pullAnswer
	_, err := s.app.Client(installation).Get(ctx, fmt.Sprintf("repositories/%d/pulls/%d", repositoryID, number), &answer)
	if f := ghapp.Classify(err); f.Class == ghapp.Gone && !f.Mint {
		return Pull{State: Gone}, nil
	}
	if err != nil {
		return Pull{}, fmt.Errorf("read pull request: %w", err)
	}
	p := answer.pull()
	if answer.Number != number || !isSHA(p.HeadSHA) || p.BaseRef == "" || p.UpdatedAt.IsZero() || p.State == "" {
		return Pull{}, fmt.Errorf("read pull request: %w", unexpected())
	}
	return p, nil
}

// unexpected is an answer that is not what GitHub documents, as of a proxy that says 200: worth
// asking again, and nothing was changed.
func unexpected() error {
	return &ghapp.Failure{Class: ghapp.NotExecuted, Reason: ghapp.ReasonUnexpected, Status: http.StatusOK, Method: http.MethodGet}
}

// pullAnswer is the part of GitHub's answer that is used. Title and body are not.
type pullAnswer struct {
	Number       int64     `json:"number"`
	State        string    `json:"state"`
	Draft        bool      `json:"draft"`
	Merged       bool      `json:"merged"`
	UpdatedAt    time.Time `json:"updated_at"`
	ChangedFiles int       `json:"changed_files"`
	Head         end       `json:"head"`
	Base         end       `json:"base"`
}

type end struct {
	Ref  string `json:"ref"`
	SHA  string `json:"sha"`
	Repo *struct {
		ID int64 `json:"id"`
	} `json:"repo"` // null when the fork is gone
}

func (a pullAnswer) pull() Pull {
	p := Pull{HeadSHA: a.Head.SHA, BaseRef: a.Base.Ref, ChangedFiles: a.ChangedFiles, UpdatedAt: a.UpdatedAt.UTC()}
	p.Fork = a.Head.Repo == nil || a.Base.Repo == nil || a.Head.Repo.ID != a.Base.Repo.ID
	switch {
	case a.Merged:
		p.State = Merged
	case a.State == "closed":
		p.State = Closed
	case a.State == "open" && a.Draft:
		p.State = Draft
	case a.State == "open":
		p.State = Open
	}
	return p
}

// isSHA accepts SHA-1 and SHA-256 in lower-case hexadecimal.
func isSHA(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}

// span names both ends for the path. A branch may hold slashes and most other characters.
func span(base, head string) string { return url.PathEscape(base) + "..." + url.PathEscape(head) }
