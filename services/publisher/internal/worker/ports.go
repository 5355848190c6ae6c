// Package worker sends intents to GitHub: one sender per installation at a time, each write recorded
// before it is made.
package worker

import (
	"context"
	"time"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// Store keeps intents and leases senders.
type Store interface {
	Claim(ctx context.Context, ttl time.Duration) (publisher.Claim, bool, error)
	Save(ctx context.Context, c publisher.Claim, ch publisher.Changes) (next time.Duration, err error)
	Recall(ctx context.Context, e publisher.Epoch) (publisher.Memory, error)
}

// Scheduler knows which epoch is current.
type Scheduler interface {
	CheckCurrent(ctx context.Context, e publisher.Epoch) (publisher.Currency, error)
}

// Reviewer keeps what a run's attempt found.
type Reviewer interface {
	Review(ctx context.Context, e publisher.Epoch) (publisher.Review, error)
}

// Reader reads pull requests.
type Reader interface {
	ReadPullRequest(ctx context.Context, pr publisher.PullRequest) (publisher.Reading, error)
}

// Finder finds a surface's output on GitHub; nil is surely none.
type Finder interface {
	Find(ctx context.Context, e publisher.Epoch, ref publisher.Ref, since time.Time) (*publisher.Found, error)
	Read(ctx context.Context, e publisher.Epoch, ref publisher.Ref, id int64) (*publisher.Found, error)
}

// Writer writes a surface's output, never twice by itself.
type Writer interface {
	Create(ctx context.Context, e publisher.Epoch, out publisher.Output) (publisher.Placed, error)
	Edit(ctx context.Context, e publisher.Epoch, id int64, out publisher.Output) (publisher.Placed, error)
}

// Surface is one kind of output.
type Surface interface {
	Finder
	Writer
}

// Remarker lists the inline comments of ours on the epoch's page, resolved ones included. An incomplete list is
// an error.
type Remarker interface {
	Remarks(ctx context.Context, e publisher.Epoch) ([]publisher.Remark, error)
}

// Healer lists every output of a surface, the oldest first, and removes one that is too many. Where GitHub removes
// nothing, it says that it is a duplicate, and loses its marker.
type Healer interface {
	All(ctx context.Context, e publisher.Epoch, ref publisher.Ref, since time.Time) ([]publisher.Found, error)
	Remove(ctx context.Context, e publisher.Epoch, ref publisher.Ref, extra publisher.Found) error
}
