// Package worker reviews: it claims due targets, walks each from the read of GitHub to the fenced result,
// and closes what dead workers left open.
package worker

import (
	"context"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/doorbell"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/reviewer"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/source"
)

// Claims gives out targets. Errors are reviewer's ErrAway and FencedError.
type Claims interface {
	Claim(ctx context.Context, limit int) ([]reviewer.Claim, error)
	// Renew extends a live claim; starting says that the engine is called next.
	Renew(ctx context.Context, tenant reviewer.TenantID, f reviewer.Fence, starting bool) (reviewer.Renewal, error)
	Release(ctx context.Context, tenant reviewer.TenantID, f reviewer.Fence, r reviewer.Release) error
}

// Runs judges what is read and found under a claim. Both calls are safe to repeat.
type Runs interface {
	Resolve(ctx context.Context, tenant reviewer.TenantID, f reviewer.Fence, in reviewer.Reading) (reviewer.Resolution, error)
	Commit(ctx context.Context, tenant reviewer.TenantID, f reviewer.Fence, o reviewer.Outcome) error
}

// Ledger holds money. Safe to repeat.
type Ledger interface {
	Reserve(ctx context.Context, a reviewer.Attempt) error
}

// Source reads GitHub. Errors are *reviewer.SourceError.
type Source interface {
	Read(ctx context.Context, pr reviewer.PullRequest) (source.Snapshot, error)
	Input(ctx context.Context, pr reviewer.PullRequest, snap source.Snapshot) (engine.Input, error)
}

// Attempts opens and keeps attempts.
type Attempts interface {
	Open(ctx context.Context, ask reviewer.Ask) (reviewer.Opening, error)
	Start(ctx context.Context, a reviewer.Attempt, limit int, lease time.Duration) (reviewer.Attempt, error)
	Keep(ctx context.Context, a reviewer.Attempt, lease time.Duration) error
}

// Ends closes attempts. Both calls are safe to repeat.
type Ends interface {
	Finish(ctx context.Context, a reviewer.Attempt, r reviewer.Report) (reviewer.Attempt, error)
	Close(ctx context.Context, a reviewer.Attempt, end reviewer.End) (reviewer.Attempt, error)
}

// Orphans finds and closes what dead workers left open.
type Orphans interface {
	Orphans(ctx context.Context, margin time.Duration, limit int) ([]reviewer.Orphan, error)
	Reap(ctx context.Context, o reviewer.Orphan, margin time.Duration) (reviewer.Attempt, error)
}

// Bell wakes a pool; *doorbell.Listener is one.
type Bell interface {
	Next(ctx context.Context) (doorbell.Ring, error)
}
