package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

// ReasonNotFound is the ErrorInfo reason of RetryMessage for an unknown id.
const ReasonNotFound = "MESSAGE_NOT_FOUND"

// maxRetried bounds one RetryMessage, so that it stays a short transaction.
const maxRetried = 1000

// service is the operator's view of one outbox. It works under the system role: callers are operators,
// never tenants.
type service struct {
	outboxv1.UnimplementedOutboxServiceServer
	outbox     *Outbox
	db         *pg.DB
	staleAfter time.Duration
}

// NewService serves the outbox. Its stale count uses the default alert of 60 s.
func NewService(o *Outbox, db *pg.DB) outboxv1.OutboxServiceServer {
	return &service{outbox: o, db: db, staleAfter: Settings{}.withDefaults().StaleAfter}
}

// GetStats counts what is open or parked, by destination.
func (s *service) GetStats(ctx context.Context, _ *outboxv1.GetStatsRequest) (*outboxv1.GetStatsResponse, error) {
	counts, err := readStats(ctx, s.db, s.outbox, s.staleAfter)
	if err != nil {
		return nil, err
	}
	resp := &outboxv1.GetStatsResponse{}
	for _, g := range fold(counts, nil) {
		stats := &outboxv1.DestinationStats{
			Destination: g.destination, Pending: g.messages, Due: g.due, Stale: g.stale,
			OldestAge: durationpb.New(g.oldest), Parked: g.parked,
		}
		for _, c := range counts {
			if c.destination == g.destination && c.reason != "" {
				stats.ParkedReasons = append(stats.ParkedReasons, &outboxv1.ParkedReason{Reason: c.reason, Messages: c.messages})
			}
		}
		resp.Destinations = append(resp.Destinations, stats)
	}
	return resp, nil
}

// RetryMessage makes parked messages due, and wakes the dispatcher of this process.
func (s *service) RetryMessage(ctx context.Context, req *outboxv1.RetryMessageRequest) (*outboxv1.RetryMessageResponse, error) {
	if set := req.GetParked(); set != nil {
		return s.retrySet(ctx, set)
	}
	id, err := uuid.Parse(req.GetMessageId())
	if err != nil {
		return nil, rpc.Error(codes.InvalidArgument, rpc.ReasonInvalidRequest, "message_id is not a UUID")
	}
	return s.retryOne(ctx, id)
}

func (s *service) retryOne(ctx context.Context, id uuid.UUID) (*outboxv1.RetryMessageResponse, error) {
	var (
		b     pg.Batch
		freed []entry
		known bool
		key   = pgtype.UUID{Bytes: id, Valid: true}
	)
	b.Queue(s.outbox.sql.retryOne, key).Query(readFreed(&freed))
	b.Queue(s.outbox.sql.exists, key).QueryRow(func(row pgx.Row) error { return row.Scan(&known) })
	if err := s.db.SystemBatch(ctx, &b); err != nil {
		return nil, fmt.Errorf("retry message: %w", err)
	}
	if !known {
		return nil, rpc.Error(codes.NotFound, ReasonNotFound, "no such message")
	}
	s.outbox.tell(freed)
	return &outboxv1.RetryMessageResponse{Retried: int64(len(freed))}, nil
}

func (s *service) retrySet(ctx context.Context, set *outboxv1.ParkedSet) (*outboxv1.RetryMessageResponse, error) {
	var (
		b         pg.Batch
		freed     []entry
		remaining int64
	)
	b.Queue(s.outbox.sql.retrySet, set.GetDestination(), set.GetReason(), maxRetried).Query(readFreed(&freed))
	b.Queue(s.outbox.sql.countSet, set.GetDestination(), set.GetReason()).
		QueryRow(func(row pgx.Row) error { return row.Scan(&remaining) })
	if err := s.db.SystemBatch(ctx, &b); err != nil {
		return nil, fmt.Errorf("retry messages: %w", err)
	}
	s.outbox.tell(freed)
	return &outboxv1.RetryMessageResponse{Retried: int64(len(freed)), Remaining: remaining}, nil
}

func readFreed(into *[]entry) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		freed, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (entry, error) {
			var e entry
			err := r.Scan(&e.destination, &e.at)
			return e, err
		})
		*into = freed
		return err
	}
}
