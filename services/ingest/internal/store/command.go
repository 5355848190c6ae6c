package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	publisherv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/publisher/v1"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// ClaimCommands leases commands that wait, at most limit. It runs as the system role, since it looks for
// those of every tenant.
func (s *Store) ClaimCommands(ctx context.Context, lease time.Duration, limit int) ([]ingest.Command, error) {
	var found []ingest.Command
	b := &pg.Batch{}
	b.Queue(claimCommands, pgx.NamedArgs{
		"claim": newID(), "lease": lease, "limit": limit, "within": ingest.RefusalsWithin,
	}).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, scanCommand)
		return err
	})
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return nil, fmt.Errorf("claim commands: %w", err)
	}
	return found, nil
}

// FinishCommand ends a command with all that follows from it, in one transaction. ErrClaimLost: it is another
// worker's, or has ended; nothing was written.
func (s *Store) FinishCommand(ctx context.Context, c ingest.Command, o ingest.Outcome) error {
	err := s.db.Tenant(ctx, uuid.UUID(c.Tenant), func(tx *pg.Tx) error {
		tag, err := tx.Exec(ctx, finishCommand, pgx.NamedArgs{
			"tenant": c.Tenant, "id": c.ID, "claim": c.Claim, "outcome": o.Result, "reason": o.Reason,
		})
		switch {
		case err != nil:
			return err
		case tag.RowsAffected() == 0:
			return ingest.ErrClaimLost
		}
		for _, a := range o.Requests {
			if _, err := s.ask(ctx, tx, a); err != nil {
				return err
			}
		}
		if o.Reply == nil {
			return nil
		}
		return s.outbox.Enqueue(ctx, tx, replyMessage(c, *o.Reply))
	})
	if err != nil {
		return fmt.Errorf("finish command: %w", err)
	}
	return nil
}

// PostponeCommand gives a command back, to be tried again after the wait; hold has its whole installation wait,
// for sweeps too, and gives the try back.
func (s *Store) PostponeCommand(ctx context.Context, c ingest.Command, wait time.Duration, hold bool, why string) error {
	b := &pg.Batch{}
	b.Queue(postponeCommand, pgx.NamedArgs{
		"tenant": c.Tenant, "id": c.ID, "claim": c.Claim, "wait": wait, "hold": hold, "error": why,
	})
	if hold {
		b.Queue(pauseInstallation, pauseArgs(c.Tenant, c.Host, c.InstallationID, wait))
	}
	if err := s.db.TenantBatch(ctx, uuid.UUID(c.Tenant), b); err != nil {
		return fmt.Errorf("postpone command: %w", err)
	}
	return nil
}

// PendingCommands counts the commands that wait, and says how old the oldest is.
func (s *Store) PendingCommands(ctx context.Context) (n int64, oldest time.Duration, err error) {
	var secs float64
	b := &pg.Batch{}
	b.Queue(countCommands).QueryRow(func(row pgx.Row) error { return row.Scan(&n, &secs) })
	if err := s.db.SystemBatch(ctx, b); err != nil {
		return 0, 0, fmt.Errorf("count commands: %w", err)
	}
	return n, time.Duration(secs * float64(time.Second)), nil
}

func commandArgs(c ingest.Command) pgx.NamedArgs {
	return pgx.NamedArgs{
		"id": c.ID, "tenant": c.Tenant, "project": c.Project, "source": c.Source, "cause": c.Cause, "verb": c.Verb, "host": c.Host,
		"installation": c.InstallationID, "repository_id": c.Repository.ID, "repository": c.Repository.Name, "number": c.Number,
		"comment": c.CommentID, "account": c.By.ID, "login": c.By.Login, "external_id": c.ExternalID, "head": c.HeadSHA, "trace": c.TraceParent,
	}
}

func scanCommand(row pgx.CollectableRow) (c ingest.Command, err error) {
	var age float64
	var now int64 // the installation to ask
	err = row.Scan(&c.ID, &c.Tenant, &c.Project, &c.Source, &c.Cause, &c.Verb, &c.Host, &c.InstallationID, &c.Repository.ID,
		&c.Repository.Name, &c.Number, &c.CommentID, &c.By.ID, &c.By.Login, &c.ExternalID, &c.HeadSHA, &c.TraceParent, &c.CreatedAt,
		&c.Claim, &c.Tries, &age, &c.Refusals, &now)
	if c.Left = now == 0; !c.Left {
		c.InstallationID = now
	}
	c.Age = time.Duration(age * float64(time.Second))
	return c, err
}

var reactions = map[ingest.Reaction]publisherv1.Reaction{
	ingest.Eyes: publisherv1.Reaction_REACTION_EYES, ingest.ThumbsUp: publisherv1.Reaction_REACTION_THUMBS_UP,
	ingest.Confused: publisherv1.Reaction_REACTION_CONFUSED,
}

// replyMessage has the publisher answer a command's comment.
func replyMessage(c ingest.Command, r ingest.Reply) outbox.Message {
	req := &publisherv1.PublishReplyRequest{
		Tenant: c.Tenant.String(), ReplyId: "comment:" + c.Host + ":" + c.Cause,
		PullRequest: &publisherv1.PullRequest{
			ProjectId: c.Project.String(), Host: c.Host, InstallationId: c.InstallationID,
			RepositoryId: c.Repository.ID, Repository: c.Repository.Name, Number: c.Number,
		},
		CommentId: c.CommentID, Reaction: reactions[r.Reaction], Sentence: r.Sentence,
	}
	return outbox.Message{
		Destination: publisherv1.PublisherService_PublishReply_FullMethodName,
		Request:     req, Key: "reply:" + req.GetReplyId(), Tenant: uuid.UUID(c.Tenant),
	}
}
