package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// PublishEpoch records an epoch with all of its intents on the surfaces that its project has, and makes its sender
// due. The same epoch again changes nothing; with another content it is ErrEpochConflict. It returns how many
// intents the epoch has of itself; progress may have none.
func (s *Store) PublishEpoch(ctx context.Context, e publisher.Epoch) (int, error) {
	b := &pg.Batch{}
	b.Queue(recordEpoch, epochArgs(e))
	intents, err := intentArgs(e, e.Refs())
	if err != nil {
		return 0, err
	}
	var n int
	b.Queue(recordIntents, intents).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	b.Queue(callSender, pgx.NamedArgs{"tenant": e.Tenant, "host": e.PR.Host, "installation": e.PR.Installation})
	b.OnCommit(s.wake)
	err = s.db.TenantBatch(ctx, uuid.UUID(e.Tenant), b)
	if refused(err, "epochs", "digest") {
		return 0, fmt.Errorf("%w: target %s, lifecycle %d, epoch %d, step %d",
			publisher.ErrEpochConflict, e.Target, e.At.Lifecycle, e.At.Epoch, e.At.Step)
	}
	if err != nil {
		return 0, fmt.Errorf("record epoch: %w", err)
	}
	return n, nil
}

// ConfigureProject keeps which surfaces a project has; an older version changes nothing.
func (s *Store) ConfigureProject(ctx context.Context, c publisher.Configuration) error {
	surfaces := make([]string, len(c.Surfaces))
	for n, s := range c.Surfaces {
		surfaces[n] = string(s)
	}
	b := &pg.Batch{}
	b.Queue(configureProject, pgx.NamedArgs{"tenant": c.Tenant, "project": c.Project, "version": c.Version, "surfaces": surfaces})
	if err := s.db.TenantBatch(ctx, uuid.UUID(c.Tenant), b); err != nil {
		return fmt.Errorf("configure project: %w", err)
	}
	return nil
}

func epochArgs(e publisher.Epoch) pgx.NamedArgs {
	r := publisher.Run{}
	if e.Run != nil {
		r = *e.Run
	}
	reply, detail := publisher.Reply{}, e.Detail
	if e.Reply != nil {
		reply, detail = *e.Reply, e.Reply.Sentence
	}
	return pgx.NamedArgs{
		"tenant": e.Tenant, "target": e.Target, "lifecycle": e.At.Lifecycle, "epoch": e.At.Epoch,
		"step": e.At.Step, "kind": string(e.Kind), "digest": e.Digest(), "project": e.PR.Project, "host": e.PR.Host,
		"installation": e.PR.Installation, "repository_id": e.PR.Repository, "repository": e.PR.Name,
		"number": e.PR.Number, "run": some(r.ID), "base_ref": r.BaseRef, "base_sha": r.BaseSHA,
		"head_sha": r.HeadSHA, "merge_base_sha": r.MergeBaseSHA, "ordinal": r.Ordinal, "attempt": some(r.Attempt),
		"clean": r.Clean, "errors": r.Errors, "warnings": r.Warnings, "infos": r.Infos, "engine": r.Engine,
		"cost": r.CostMicros, "reason": e.Reason, "detail": detail, "newer_head": e.NewerHead,
		"reply": reply.ID, "comment": reply.Comment, "reaction": string(reply.Reaction), "traceparent": e.Traceparent,
	}
}

func intentArgs(e publisher.Epoch, refs []publisher.Ref) (pgx.NamedArgs, error) {
	var (
		ids                     = make([]pgtype.UUID, len(refs))
		keys, surfaces, surface = make([]string, len(refs)), make([]string, len(refs)), make([]string, len(refs))
		ranks                   = make([]int32, len(refs))
	)
	for n, ref := range refs {
		id, err := newID()
		if err != nil {
			return nil, err
		}
		ids[n], keys[n], surfaces[n], surface[n] = some(id), e.IntentKey(ref), string(ref.Kind), ref.Key
		ranks[n] = int32(publisher.RankOf(ref))
	}
	return pgx.NamedArgs{
		"tenant": e.Tenant, "target": e.Target, "lifecycle": e.At.Lifecycle, "epoch": e.At.Epoch, "step": e.At.Step,
		"project": e.PR.Project, "kind": string(e.Kind), "host": e.PR.Host, "installation": e.PR.Installation,
		"ids": ids, "keys": keys, "surfaces": surfaces, "surface_keys": surface, "ranks": ranks,
	}, nil
}
