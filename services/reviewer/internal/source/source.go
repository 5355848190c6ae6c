// Package source says what GitHub has of a claimed pull request, in the words of the reviewer: it sorts
// GitHub's failures by what they mean for the claim.
package source

import (
	"context"
	"errors"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/github"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
)

// Pauses where GitHub gives none.
const (
	suspendedPause = 10 * time.Minute // a suspension's, renewed by the next refused token
	throttledPause = time.Minute      // GitHub's own advice for a secondary limit without Retry-After
	deniedRetry    = 10 * time.Minute // a person has to grant or repair something
	absentRetry    = time.Minute      // GitHub has not seen the head yet, or the base is going
	absentPatience = 10 * time.Minute // after which the two have no common history
)

// reader is GitHub, as *github.Source reads it.
type reader interface {
	Read(ctx context.Context, installation, repositoryID, number int64) (github.Reading, error)
	Input(ctx context.Context, installation, repositoryID int64, r github.Reading, want func(engine.File) bool) (engine.Input, error)
}

// Source reads pull requests for claims.
type Source struct {
	github reader
	wants  func(engine.File) bool
	since  func(time.Time) time.Duration
}

// New returns a source; wants says which files the engine needs whole.
func New(gh *github.Source, wants func(engine.File) bool) *Source {
	return &Source{github: gh, wants: wants, since: time.Since}
}

// Snapshot is a pull request as read once, and what a review of it would look at.
type Snapshot struct {
	Reading reviewer.Reading
	Diff    engine.Input // without contents
	read    github.Reading
}

var states = map[github.State]reviewer.PullState{
	github.Open: reviewer.PullOpen, github.Draft: reviewer.PullDraft, github.Closed: reviewer.PullClosed,
	github.Merged: reviewer.PullClosed, github.Gone: reviewer.PullGone,
}

// Read reads the pull request as it is now. One that can't be compared, and has not changed for a while, is
// read as filtered: histories that share nothing will share nothing until somebody pushes. Its error is a
// *reviewer.SourceError.
func (s *Source) Read(ctx context.Context, pr reviewer.PullRequest) (Snapshot, error) {
	r, err := s.github.Read(ctx, pr.Installation, pr.Repository, pr.Number)
	if errors.Is(err, github.ErrNoComparison) && s.since(r.UpdatedAt) > absentPatience {
		return Snapshot{Reading: reviewer.Reading{
			State: reviewer.PullOpen, HeadSHA: r.HeadSHA, BaseRef: r.BaseRef, UpdatedAt: r.UpdatedAt, Filtered: "no_comparison",
		}}, nil
	}
	if err != nil {
		return Snapshot{}, trouble(err)
	}
	return Snapshot{
		read: r,
		Diff: engine.Input{HeadSHA: r.HeadSHA, Fork: r.Fork, Files: r.Files, LeftOut: r.LeftOut},
		Reading: reviewer.Reading{
			State: states[r.State], HeadSHA: r.HeadSHA, BaseRef: r.BaseRef,
			BaseSHA: r.BaseSHA, MergeBase: r.MergeBase, UpdatedAt: r.UpdatedAt,
		},
	}, nil
}

// Input adds to a snapshot the files that the engine needs whole. Its error is a *reviewer.SourceError.
func (s *Source) Input(ctx context.Context, pr reviewer.PullRequest, snap Snapshot) (engine.Input, error) {
	in, err := s.github.Input(ctx, pr.Installation, pr.Repository, snap.read, s.wants)
	if err != nil {
		return engine.Input{}, trouble(err)
	}
	return in, nil
}

// trouble sorts a failure by what it means for the claim. The read of a pull request that is gone is
// no failure; a comparison that is not there now is one that will be.
func trouble(err error) *reviewer.SourceError {
	f := ghapp.Classify(err)
	out := &reviewer.SourceError{Kind: reviewer.SourceAway, Reason: f.Reason, RetryAfter: f.RetryAfter, Err: err}
	switch {
	case errors.Is(err, github.ErrNoComparison):
		out.Reason, out.RetryAfter = "NO_COMPARISON", absentRetry
	case errors.Is(err, github.ErrMoved): // whatever moved it has made the target due, or soon does
		out.Reason, out.RetryAfter = "READ_MOVED", 0
	case f.Mint && (f.Reason == ghapp.ReasonSuspended || f.Class == ghapp.Gone): // before the class: a suspension's is Throttled
		out.Kind, out.RetryAfter = reviewer.SourceSuspended, suspendedPause
	case f.Class == ghapp.Throttled:
		out.Kind = reviewer.SourceThrottled
		if out.RetryAfter <= 0 {
			out.RetryAfter = throttledPause
		}
	case f.Class == ghapp.Refused, f.Class == ghapp.Auth, f.Class == ghapp.Gone:
		out.Kind, out.RetryAfter = reviewer.SourceDenied, max(f.RetryAfter, deniedRetry)
	}
	return out
}
