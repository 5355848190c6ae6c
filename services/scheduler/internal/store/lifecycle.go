package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/purge"
	ledgerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/ledger/v1"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	reviewerv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/reviewer/v1"
	"github.com/fenceline-dev/fenceline/services/scheduler/internal/scheduler"
)

const (
	// mostLifecycles bounds the targets of one transaction: each is several statements, and stays locked.
	mostLifecycles = 20
	// mostRuns is what one message to the ledger may name.
	mostRuns = 10_000
)

// Lifecycles is the end of lifecycles of targets that were at rest for the whole retention.
func (s *Store) Lifecycles(retention time.Duration) purge.Kind {
	return purge.Kind{Name: "lifecycles", Retention: retention, Most: mostLifecycles, Remove: s.EndLifecycles}
}

// EndLifecycles ends the lifecycle of up to limit targets that were last touched longer ago than age, the
// oldest first: their runs go, and ledger, reviewer and publisher are told to remove what they keep of it.
// It returns how many ended.
func (s *Store) EndLifecycles(ctx context.Context, age time.Duration, limit int) (int, error) {
	rules, ended := s.rules, 0
	rules.Retention = age
	err := s.db.System(ctx, func(tx *pg.Tx) error {
		ended = 0
		found, err := lockResting(ctx, tx, age, limit)
		if err != nil {
			return err
		}
		for _, r := range found {
			t, e, err := rules.EndLifecycle(r.Target, r.longPaused, r.now)
			if errors.Is(err, scheduler.ErrNotAtRest) {
				continue // the statement and the rule differ by what the database's clock did between them
			}
			if err != nil {
				return err
			}
			if err := s.endLifecycle(ctx, tx, t, e); err != nil {
				return err
			}
			ended++
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("end lifecycles: %w", err)
	}
	return ended, nil
}

type resting struct {
	loaded
	longPaused bool
}

func lockResting(ctx context.Context, tx *pg.Tx, age time.Duration, limit int) ([]resting, error) {
	rows, err := tx.Query(ctx, lockAtRest, pgx.NamedArgs{"age": age, "limit": limit})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (resting, error) {
		var r resting
		err := row.Scan(append(places(targetColumns, &r.Target), &r.now, &r.longPaused)...)
		r.now = r.now.UTC()
		return r, err
	})
}

func (s *Store) endLifecycle(ctx context.Context, tx *pg.Tx, t scheduler.Target, e scheduler.Effects) error {
	rows, err := tx.Query(ctx, deleteRuns, pgx.NamedArgs{"tenant": t.Tenant, "target": t.ID, "lifecycle": e.Purge.Lifecycle})
	if err != nil {
		return err
	}
	runs, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return err
	}
	if err := s.save(ctx, tx, t, e, write{sql: saveTarget}); err != nil {
		return err
	}
	return s.outbox.Enqueue(ctx, tx, purgeMessages(t, *e.Purge, runs)...)
}

// purgeMessages tell the other three that a lifecycle has ended. The ledger knows no targets, so it is told
// the runs, and nothing where there were none.
func purgeMessages(t scheduler.Target, p scheduler.Purge, runs []uuid.UUID) []outbox.Message {
	tenant, target, lifecycle := t.Tenant.String(), p.Target.String(), int64(p.Lifecycle)
	var msgs []outbox.Message
	add := func(destination, part string, req proto.Message) {
		msgs = append(msgs, outbox.Message{Destination: destination, Key: p.Key() + ":" + part, Tenant: uuid.UUID(t.Tenant), Request: req})
	}
	add(reviewerv1.ReviewerService_PurgeLifecycle_FullMethodName, "reviewer",
		&reviewerv1.PurgeLifecycleRequest{Tenant: tenant, TargetId: target, Lifecycle: lifecycle})
	add(publisherv1.PublisherService_PurgeLifecycle_FullMethodName, "publisher",
		&publisherv1.PurgeLifecycleRequest{Tenant: tenant, TargetId: target, Lifecycle: lifecycle})
	for part := range slices.Chunk(runs, mostRuns) {
		req := &ledgerv1.PurgeLifecycleRequest{Tenant: tenant, TargetId: target, Lifecycle: lifecycle}
		for _, run := range part {
			req.RunIds = append(req.RunIds, run.String())
		}
		add(ledgerv1.LedgerService_PurgeLifecycle_FullMethodName, fmt.Sprintf("ledger:%d", len(msgs)), req)
	}
	return msgs
}
