package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

const (
	// maxTargets bounds the targets that one claim works on.
	maxTargets = 20
	// maxChecks bounds the epochs whose surfaces one claim looks at again.
	maxChecks = 20
)

// Claim leases the sender of one installation that has due intents, is not paused and nobody's, and
// loads the open epochs of its targets with due intents, oldest due first, each target's epochs in their
// order, with what is open on their pages, and what is to be looked at again. It runs as the system role, since it looks for work of every tenant. False: nothing is due.
func (s *Store) Claim(ctx context.Context, ttl time.Duration) (publisher.Claim, bool, error) {
	lease, err := newID()
	if err != nil {
		return publisher.Claim{}, false, err
	}
	var claim publisher.Claim
	var found bool
	var rows, checks []workRow
	var open []surfaceRow
	b := &pg.Batch{}
	b.Queue(claimSender, pgx.NamedArgs{"lease": lease, "ttl": ttl}).QueryRow(func(row pgx.Row) error {
		var next pgtype.Timestamptz
		claim = publisher.Claim{Lease: publisher.LeaseID(lease)}
		err := row.Scan(&claim.Tenant, &claim.Host, &claim.Installation, &claim.Throttles, &next, &claim.Now)
		claim.NextWrite = next.Time
		found = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	args := pgx.NamedArgs{"lease": lease, "targets": maxTargets}
	b.Queue(loadWork, args).Query(into(&rows))
	b.Queue(loadOpen, args).Query(into(&open))
	b.Queue(loadChecks, pgx.NamedArgs{"lease": lease, "targets": maxChecks}).Query(into(&checks))
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return publisher.Claim{}, false, fmt.Errorf("claim sender: %w", err)
	}
	for _, row := range rows {
		claim.Works = row.into(claim.Works)
	}
	for _, row := range checks {
		claim.Checks = row.into(claim.Checks)
	}
	claim.Open = map[publisher.TargetID][]publisher.Surface{}
	for _, row := range open {
		s := row.surface()
		s.Open = true
		claim.Open[row.TargetID] = append(claim.Open[row.TargetID], s)
	}
	return claim, found, nil
}

// into collects the rows of a query.
func into[T any](rows *[]T) func(pgx.Rows) error {
	return func(r pgx.Rows) (err error) {
		*rows, err = pgx.CollectRows(r, pgx.RowToStructByName[T])
		return err
	}
}

// surfaceRow is a surface that is open.
type surfaceRow struct {
	TargetID       publisher.TargetID
	Surface        string
	SurfaceKey     string
	GithubID       int64
	URL            string
	ShownLifecycle int64
	ShownEpoch     int64
	ShownStep      int64
	RunID          pgtype.UUID
	Recreated      bool
	Checks         int
	CheckAt        pgtype.Timestamptz
}

func (r surfaceRow) surface() publisher.Surface {
	return publisher.Surface{
		Ref:      publisher.Ref{Kind: publisher.SurfaceKind(r.Surface), Key: r.SurfaceKey},
		GitHubID: r.GithubID, URL: r.URL, Run: publisher.RunID(r.RunID.Bytes), Recreated: r.Recreated,
		Shown:  publisher.Position{Lifecycle: r.ShownLifecycle, Epoch: r.ShownEpoch, Step: r.ShownStep},
		Checks: r.Checks, CheckAt: r.CheckAt.Time,
	}
}

// runRow is the run of an epoch, NULL and empty where it is about none.
type runRow struct {
	RunID        pgtype.UUID
	BaseRef      string
	BaseSha      string
	HeadSha      string
	MergeBaseSha string
	Ordinal      int32
	AttemptID    pgtype.UUID
	Clean        bool
	Errors       int32
	Warnings     int32
	Infos        int32
	Engine       string
	CostMicros   int64
}

func (r runRow) run() publisher.Run {
	return publisher.Run{
		ID: publisher.RunID(r.RunID.Bytes), BaseRef: r.BaseRef, BaseSHA: r.BaseSha, HeadSHA: r.HeadSha,
		MergeBaseSHA: r.MergeBaseSha, Ordinal: r.Ordinal, Attempt: publisher.AttemptID(r.AttemptID.Bytes),
		Clean: r.Clean, Errors: r.Errors, Warnings: r.Warnings, Infos: r.Infos, Engine: r.Engine, CostMicros: r.CostMicros,
	}
}

// workRow is one intent with its epoch and its surface.
type workRow struct {
	Tenant         publisher.Tenant
	TargetID       publisher.TargetID
	Lifecycle      int64
	Epoch          int64
	Step           int64
	Kind           string
	ProjectID      publisher.ProjectID
	Host           string
	InstallationID int64
	RepositoryID   int64
	Repository     string
	Number         int64
	runRow
	EpochReason    string
	Detail         string
	NewerHeadSha   string
	ReplyID        string
	CommentID      int64
	Reaction       string
	Traceparent    string
	EpochCreatedAt time.Time

	ID          publisher.IntentID
	Key         string
	Rank        int
	Surface     string
	SurfaceKey  string
	State       string
	Op          string
	Reason      string
	Attempts    int
	Holds       int
	GithubID    int64
	URL         string
	Remarks     string
	LastError   string
	Version     int64
	CreatedAt   time.Time
	AvailableAt time.Time
	SentAt      pgtype.Timestamptz
	EndedAt     pgtype.Timestamptz

	SurfaceID      int64
	SurfaceURL     string
	ShownLifecycle int64
	ShownEpoch     int64
	ShownStep      int64
	SurfaceRunID   pgtype.UUID
	Recreated      bool
	Open           bool
	Checks         int
	CheckAt        pgtype.Timestamptz

	LastLifecycle int64
	LastEpoch     int64
	LastStep      int64
}

// into appends the row's intent to the work of its epoch, which is the last one or a new one: rows come
// in the order of epochs.
func (r workRow) into(works []publisher.Work) []publisher.Work {
	at := publisher.Position{Lifecycle: r.Lifecycle, Epoch: r.Epoch, Step: r.Step}
	n := len(works)
	if n == 0 || works[n-1].Epoch.Target != r.TargetID || works[n-1].Epoch.At != at {
		works = append(works, publisher.Work{
			Epoch: r.epoch(at), Last: publisher.Position{Lifecycle: r.LastLifecycle, Epoch: r.LastEpoch, Step: r.LastStep},
		})
		n++
	}
	works[n-1].Cells = append(works[n-1].Cells, r.cell(at))
	return works
}

func (r workRow) epoch(at publisher.Position) publisher.Epoch {
	e := publisher.Epoch{
		Tenant: r.Tenant, Target: r.TargetID, At: at, Kind: publisher.Kind(r.Kind),
		PR: publisher.PullRequest{
			Project: r.ProjectID, Host: r.Host, Installation: r.InstallationID,
			Repository: r.RepositoryID, Name: r.Repository, Number: r.Number,
		},
		Reason: r.EpochReason, Detail: r.Detail, NewerHead: r.NewerHeadSha,
		Traceparent: r.Traceparent, CreatedAt: r.EpochCreatedAt,
	}
	if e.Kind == publisher.KindReply {
		e.Reply = &publisher.Reply{ID: r.ReplyID, Comment: r.CommentID, Reaction: publisher.Reaction(r.Reaction), Sentence: r.Detail}
		e.Detail = ""
	}
	if r.RunID.Valid {
		run := r.run()
		e.Run = &run
	}
	return e
}

func (r workRow) cell(at publisher.Position) publisher.Cell {
	ref := publisher.Ref{Kind: publisher.SurfaceKind(r.Surface), Key: r.SurfaceKey}
	return publisher.Cell{
		Intent: publisher.Intent{
			ID: r.ID, Key: r.Key, Target: r.TargetID, Ref: ref, Rank: publisher.Rank(r.Rank), At: at, Kind: publisher.Kind(r.Kind),
			Run: publisher.RunID(r.RunID.Bytes), State: publisher.State(r.State), Op: publisher.Op(r.Op),
			Reason: r.Reason, Attempts: r.Attempts, Holds: r.Holds, Available: r.AvailableAt,
			CreatedAt: r.CreatedAt, SentAt: r.SentAt.Time, EndedAt: r.EndedAt.Time,
			GitHubID: r.GithubID, URL: r.URL, Remarks: publisher.Fingerprints(r.Remarks), LastError: r.LastError, Version: r.Version,
		},
		Surface: publisher.Surface{
			Ref: ref, GitHubID: r.SurfaceID, URL: r.SurfaceURL,
			Shown: publisher.Position{Lifecycle: r.ShownLifecycle, Epoch: r.ShownEpoch, Step: r.ShownStep},
			Run:   publisher.RunID(r.SurfaceRunID.Bytes), Recreated: r.Recreated,
			Open: r.Open, Checks: r.Checks, CheckAt: r.CheckAt.Time,
		},
	}
}
