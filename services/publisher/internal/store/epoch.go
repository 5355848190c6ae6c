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

// PublishEpoch records an epoch with all of its intents, and makes its sender due. The same epoch again
// changes nothing; with another content it is ErrEpochConflict. It returns how many intents the epoch has.
func (s *Store) PublishEpoch(ctx context.Context, e publisher.Epoch) (int, error) {
	refs := e.Refs()
	b := &pg.Batch{}
	b.Queue(recordEpoch, epochArgs(e))
	intents, err := intentArgs(e, refs)
	if err != nil {
		return 0, err
	}
	b.Queue(recordIntents, intents)
	b.Queue(callSender, pgx.NamedArgs{"tenant": e.Tenant, "host": e.PR.Host, "installation": e.PR.Installation})
	b.OnCommit(s.wake)
	err = s.db.TenantBatch(ctx, uuid.UUID(e.Tenant), b)
	if refused(err, "epochs", "digest") {
		return 0, fmt.Errorf("%w: target %s, lifecycle %d, epoch %d", publisher.ErrEpochConflict, e.Target, e.At.Lifecycle, e.At.Epoch)
	}
	if err != nil {
		return 0, fmt.Errorf("record epoch: %w", err)
	}
	return len(refs), nil
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
		"kind": string(e.Kind), "digest": e.Digest(), "project": e.PR.Project, "host": e.PR.Host,
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
	)
	for n, ref := range refs {
		id, err := newID()
		if err != nil {
			return nil, err
		}
		ids[n], keys[n], surfaces[n], surface[n] = some(id), e.IntentKey(ref), string(ref.Kind), ref.Key
	}
	return pgx.NamedArgs{
		"tenant": e.Tenant, "target": e.Target, "lifecycle": e.At.Lifecycle, "epoch": e.At.Epoch,
		"host": e.PR.Host, "installation": e.PR.Installation,
		"ids": ids, "keys": keys, "surfaces": surfaces, "surface_keys": surface,
	}, nil
}
