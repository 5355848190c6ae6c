package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// ListIntents reads a tenant's intents, newest first: those before the given one, of the target and in
// the state, where these are not zero.
func (s *Store) ListIntents(ctx context.Context, tenant publisher.Tenant, f publisher.Filter, before publisher.IntentID, size int) ([]publisher.Record, error) {
	var rows []recordRow
	b := &pg.Batch{}
	b.Queue(listIntents, pgx.NamedArgs{
		"tenant": tenant, "before": some(before), "target": some(f.Target), "state": string(f.State), "size": size,
	}).Query(func(r pgx.Rows) (err error) {
		rows, err = pgx.CollectRows(r, pgx.RowToStructByName[recordRow])
		return err
	})
	if err := s.db.TenantBatch(ctx, uuid.UUID(tenant), b); err != nil {
		return nil, fmt.Errorf("list intents: %w", err)
	}
	out := make([]publisher.Record, len(rows))
	for n, r := range rows {
		out[n] = r.record()
	}
	return out, nil
}

// GetIntent reads one intent; ErrIntentNotFound where the tenant has none such.
func (s *Store) GetIntent(ctx context.Context, tenant publisher.Tenant, id publisher.IntentID) (publisher.Record, error) {
	var row recordRow
	b := &pg.Batch{}
	b.Queue(getIntent, pgx.NamedArgs{"tenant": tenant, "id": id}).Query(func(r pgx.Rows) (err error) {
		row, err = collectRecord(r)
		return err
	})
	if err := s.db.TenantBatch(ctx, uuid.UUID(tenant), b); err != nil {
		return publisher.Record{}, fmt.Errorf("get intent: %w", err)
	}
	return row.record(), nil
}

// RetryIntent makes an open intent due at once, or as soon as its grace is over; ErrIntentEnded where it
// has ended.
func (s *Store) RetryIntent(ctx context.Context, tenant publisher.Tenant, id publisher.IntentID) (publisher.Record, error) {
	var done publisher.Record
	err := s.db.Tenant(ctx, uuid.UUID(tenant), func(tx *pg.Tx) error {
		args := pgx.NamedArgs{"tenant": tenant, "id": id}
		seen, err := queryRecord(ctx, tx, getIntent, args)
		if err != nil {
			return err
		}
		// The sender before the intent: the order in which a save takes their locks.
		if _, err := tx.Exec(ctx, callSender, pgx.NamedArgs{"tenant": tenant, "host": seen.Host, "installation": seen.InstallationID}); err != nil {
			return err
		}
		locked, err := queryRecord(ctx, tx, lockIntent, args)
		if err != nil {
			return err
		}
		done = locked.record()
		next, _, err := s.rules.Apply(publisher.Cell{Intent: done.Intent}, publisher.Retried{}, locked.Now)
		if err != nil {
			return err
		}
		done.Intent = next.Intent
		args["available"] = done.Intent.Available
		_, err = tx.Exec(ctx, hurryIntent, args)
		tx.OnCommit(s.wake)
		return err
	})
	if err != nil {
		return publisher.Record{}, fmt.Errorf("retry intent: %w", err)
	}
	return done, nil
}

// Depth counts the open intents and says how old the oldest is. It runs as the system role: it is a
// figure of the whole queue.
func (s *Store) Depth(ctx context.Context) (open int64, oldest time.Duration, err error) {
	var secs float64
	b := &pg.Batch{}
	b.Queue(queueDepth).QueryRow(func(row pgx.Row) error { return row.Scan(&open, &secs) })
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return 0, 0, fmt.Errorf("count intents: %w", err)
	}
	return open, time.Duration(secs * float64(time.Second)), nil
}

func queryRecord(ctx context.Context, tx *pg.Tx, sql string, args pgx.NamedArgs) (recordRow, error) {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return recordRow{}, err
	}
	return collectRecord(rows)
}

func collectRecord(rows pgx.Rows) (recordRow, error) {
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[recordRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return row, publisher.ErrIntentNotFound
	}
	return row, err
}

type recordRow struct {
	ID             publisher.IntentID
	Tenant         publisher.Tenant
	Key            string
	TargetID       publisher.TargetID
	Lifecycle      int64
	Epoch          int64
	Step           int64
	Kind           string
	Host           string
	InstallationID int64
	Rank           int
	Surface        string
	SurfaceKey     string
	State          string
	Op             string
	Reason         string
	Attempts       int
	Holds          int
	GithubID       int64
	URL            string
	Body           string
	LastError      string
	Version        int64
	CreatedAt      time.Time
	AvailableAt    time.Time
	SentAt         pgtype.Timestamptz
	EndedAt        pgtype.Timestamptz
	RunID          pgtype.UUID
	HeadSha        string
	Traceparent    string
	Now            time.Time
}

func (r recordRow) record() publisher.Record {
	return publisher.Record{
		Tenant: r.Tenant, HeadSHA: r.HeadSha, TraceID: publisher.Epoch{Traceparent: r.Traceparent}.TraceID(),
		Intent: publisher.Intent{
			ID: r.ID, Key: r.Key, Target: r.TargetID, Ref: publisher.Ref{Kind: publisher.SurfaceKind(r.Surface), Key: r.SurfaceKey},
			Rank: publisher.Rank(r.Rank), At: publisher.Position{Lifecycle: r.Lifecycle, Epoch: r.Epoch, Step: r.Step}, Kind: publisher.Kind(r.Kind),
			Run: publisher.RunID(r.RunID.Bytes), State: publisher.State(r.State), Op: publisher.Op(r.Op),
			Reason: r.Reason, Attempts: r.Attempts, Holds: r.Holds, Available: r.AvailableAt, CreatedAt: r.CreatedAt,
			SentAt: r.SentAt.Time, EndedAt: r.EndedAt.Time, GitHubID: r.GithubID, URL: r.URL,
			Body: r.Body, LastError: r.LastError, Version: r.Version,
		},
	}
}
