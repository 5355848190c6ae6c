package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

// systemTenant is the filter for messages without a tenant.
const systemTenant = "system"

// ListMessages pages by id, newest first: ids are made in the order of time.
func (s *service) ListMessages(ctx context.Context, req *outboxv1.ListMessagesRequest) (*outboxv1.ListMessagesResponse, error) {
	size := rpc.PageSize(req.GetPageSize())
	query, args, err := s.page(req, size)
	if err != nil {
		return nil, err
	}
	var b pg.Batch
	var msgs []*outboxv1.Message
	b.Queue(query, args...).Query(func(rows pgx.Rows) error {
		var err error
		msgs, err = pgx.CollectRows(rows, scanMessage)
		return err
	})
	if err := s.db.SystemBatch(ctx, &b); err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	resp := &outboxv1.ListMessagesResponse{Messages: msgs}
	if len(msgs) > size {
		resp.Messages = msgs[:size]
		resp.NextPageToken, err = rpc.PageToken(req, msgs[size-1].GetMessageId())
	}
	return resp, err
}

// page builds the statement of a request; it asks for one row more than the page holds.
func (s *service) page(req *outboxv1.ListMessagesRequest, size int) (query string, args []any, err error) {
	var before, tenant pgtype.UUID
	cursor, ok, err := rpc.PageCursor[string](req, req.GetPageToken())
	if err != nil {
		return "", nil, err
	}
	if ok {
		if before, err = parseUUID(cursor, "page_token"); err != nil {
			return "", nil, err
		}
	}
	system := req.GetTenant() == systemTenant
	if req.GetTenant() != "" && !system {
		if tenant, err = parseUUID(req.GetTenant(), "tenant"); err != nil {
			return "", nil, err
		}
	}
	switch req.GetState() {
	case outboxv1.MessageState_MESSAGE_STATE_UNSPECIFIED, outboxv1.MessageState_MESSAGE_STATE_DISPATCHED:
		query = s.outbox.sql.list
	case outboxv1.MessageState_MESSAGE_STATE_PENDING:
		query = s.outbox.sql.listPending
	case outboxv1.MessageState_MESSAGE_STATE_PARKED:
		query = s.outbox.sql.listParked
	}
	dispatched := req.GetState() == outboxv1.MessageState_MESSAGE_STATE_DISPATCHED
	return query, []any{before, req.GetDestination(), system, tenant, dispatched, size + 1}, nil
}

func parseUUID(s, name string) (pgtype.UUID, error) {
	id, err := uuid.Parse(s)
	if err != nil {
		return pgtype.UUID{}, rpc.Error(codes.InvalidArgument, rpc.ReasonInvalidRequest, name+" is not a UUID")
	}
	return pgtype.UUID{Bytes: id, Valid: true}, nil
}

func scanMessage(r pgx.CollectableRow) (*outboxv1.Message, error) {
	var (
		m                                  outboxv1.Message
		id, tenant                         pgtype.UUID
		traceparent                        string
		created, notBefore, available      time.Time
		claimedUntil, dispatchedAt, parked pgtype.Timestamptz
	)
	err := r.Scan(&id, &tenant, &m.Key, &m.Destination, &m.PayloadSize, &m.Attempts, &m.LastError, &m.ParkReason,
		&traceparent, &created, &notBefore, &available, &claimedUntil, &dispatchedAt, &parked)
	if err != nil {
		return nil, err
	}
	m.MessageId = uuid.UUID(id.Bytes).String()
	if tenant.Valid {
		m.Tenant = uuid.UUID(tenant.Bytes).String()
	}
	if sc := trace.SpanContextFromContext(obs.Extract(context.Background(), traceparent)); sc.HasTraceID() {
		m.TraceId = sc.TraceID().String()
	}
	m.State = outboxv1.MessageState_MESSAGE_STATE_PENDING
	switch {
	case dispatchedAt.Valid:
		m.State = outboxv1.MessageState_MESSAGE_STATE_DISPATCHED
	case parked.Valid:
		m.State = outboxv1.MessageState_MESSAGE_STATE_PARKED
	}
	m.CreatedAt, m.NotBefore, m.AvailableAt = timestamppb.New(created), timestamppb.New(notBefore), timestamppb.New(available)
	m.ClaimedUntil, m.DispatchedAt, m.ParkedAt = stamp(claimedUntil), stamp(dispatchedAt), stamp(parked)
	return &m, nil
}

func stamp(t pgtype.Timestamptz) *timestamppb.Timestamp {
	if !t.Valid {
		return nil
	}
	return timestamppb.New(t.Time)
}
