package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

// maxError bounds what is kept of an error, in bytes.
const maxError = 1024

// raw sends and receives encoded messages as they are: the dispatcher knows no message types. Its name
// is the content type, so receivers see plain protobuf.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("outbox: %T is not bytes", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("outbox: %T is not bytes", v)
	}
	*b = nil // the answer of a message is that it came
	return nil
}

// deliver makes one attempt under a span that continues the trace of whoever enqueued the message.
func (l *loop) deliver(ctx context.Context, c claimed) mark {
	started := time.Now()
	ctx, span := l.d.tracer.Start(obs.Extract(ctx, c.traceparent), obs.SpanOutboxDispatch,
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attributesOf(l.destination, c)...))
	var m mark
	var err error
	if stream, ok := strings.CutPrefix(l.destination, doorbell); ok {
		m, err = l.ring(ctx, stream, c)
	} else {
		m, err = l.call(ctx, c, started)
	}
	span.SetAttributes(obs.Outcome(string(m.verdict.Outcome)))
	obs.End(span, err)
	return m
}

// ring is tried once. The id that it carries holds no colon: it is the row's.
func (l *loop) ring(ctx context.Context, stream string, c claimed) (mark, error) {
	if err := l.d.bell.Ring(ctx, stream, c.id.String()); err != nil {
		return mark{row: c, verdict: Verdict{Outcome: RingFailed, Counted: true}, err: errorText(err)}, err
	}
	return mark{row: c, verdict: Verdict{Outcome: Rung, Counted: true}}, nil
}

func (l *loop) call(ctx context.Context, c claimed, started time.Time) (mark, error) {
	bounded, cancel := context.WithTimeout(ctx, l.d.settings.SendTimeout)
	defer cancel()
	var reply []byte
	bounded = metadata.AppendToOutgoingContext(bounded, recordedKey, c.recordedAt.UTC().Format(time.RFC3339Nano))
	err := l.peer.Invoke(bounded, methodOf(l.destination), c.payload, &reply, grpc.ForceCodecV2(raw{}))
	if err != nil && ctx.Err() != nil { // this dispatcher stops: nothing is known, nothing counts
		return mark{row: c, verdict: Verdict{Outcome: Released}}, err
	}
	h := History{Attempts: c.attempts, Age: c.age + time.Since(started), Outages: l.outages}
	v := l.d.settings.Policy.Judge(answerOf(err), h, l.d.jitter())
	m := mark{row: c, verdict: v}
	if err != nil {
		m.err = errorText(err)
	}
	return m, err
}

// recordedKey is the metadata of a call that says when its message was written.
const recordedKey = "fenceline-recorded-at"

// RecordedAt returns when the message that a call delivers was written, by the clock of its sender's database. Messages
// have no order: a receiver that keeps the time knows the later word. False for a call that no outbox made.
func RecordedAt(ctx context.Context) (time.Time, bool) {
	values := metadata.ValueFromIncomingContext(ctx, recordedKey)
	if len(values) != 1 {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, values[0])
	return at, err == nil
}

// undecodable are the texts by which a gRPC server says that it could not decode a request; the code
// alone, INTERNAL, does not tell.
var undecodable = []string{
	"grpc: failed to unmarshal the received message",
	"grpc: error unmarshalling request",
}

func answerOf(err error) Answer {
	if err == nil {
		return Answer{Code: codes.OK}
	}
	s := status.Convert(err)
	a := Answer{Code: s.Code()}
	for _, text := range undecodable {
		if s.Code() == codes.Internal && strings.HasPrefix(s.Message(), text) {
			a.Undecodable = true
		}
	}
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			a.HasRetry, a.RetryAfter = true, info.GetRetryDelay().AsDuration()
		}
	}
	return a
}

// errorText is what the row keeps for an operator: code, reason, text.
func errorText(err error) string {
	text := err.Error()
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		st := s.GRPCStatus()
		text = st.Code().String() + ": " + st.Message()
		for _, d := range st.Details() {
			if info, ok := d.(*errdetails.ErrorInfo); ok {
				text = st.Code().String() + " " + info.GetReason() + ": " + st.Message()
			}
		}
	}
	if len(text) > maxError {
		text = text[:maxError]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}

func attributesOf(destination string, c claimed) []attribute.KeyValue {
	kvs := []attribute.KeyValue{
		obs.Destination(destination), obs.MessageID(c.id.String()), obs.OutboxKey(c.key), obs.OutboxTries(c.attempts),
	}
	if c.tenant.Valid {
		kvs = append(kvs, obs.Tenant(uuid.UUID(c.tenant.Bytes).String()))
	}
	return kvs
}
