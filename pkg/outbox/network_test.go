package outbox

import (
	"context"
	"net"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

// getStats is a method that this package can serve, so that it may stand for any.
const getStats = "/fenceline.outbox.v1.OutboxService/GetStats"

type statsServer struct {
	outboxv1.UnimplementedOutboxServiceServer
}

func (statsServer) GetStats(context.Context, *outboxv1.GetStatsRequest) (*outboxv1.GetStatsResponse, error) {
	return &outboxv1.GetStatsResponse{Destinations: []*outboxv1.DestinationStats{{Destination: "x"}}}, nil
}

// serve starts a gRPC server on loopback and dials it.
func serve(t *testing.T, tp trace.TracerProvider) *grpc.ClientConn {
	t.Helper()
	srv := grpc.NewServer(grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(tp), otelgrpc.WithPropagators(obs.Propagator()))))
	outboxv1.RegisterOutboxServiceServer(srv, statsServer{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = srv.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(tp), otelgrpc.WithPropagators(obs.Propagator()))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		srv.Stop()
	})
	return conn
}

// One trace leads from the transaction through the row to the receiver, and polls that find nothing make
// no span.
func TestTraceGoesThroughTheRow(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	spans := tracetest.NewSpanRecorder()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	conn := serve(t, tp)
	reader := metric.NewManualReader()
	s := rare()
	s.Poll = 5 * time.Millisecond
	stop := e.run(t, NewDispatcher(DispatcherConfig{
		Outbox: e.box, DB: e.db, Peers: map[string]grpc.ClientConnInterface{"outbox": conn}, Destinations: []string{getStats},
		Settings: s, Tracer: tp, Meter: metric.NewMeterProvider(metric.WithReader(reader)),
	}))
	ctx, root := tp.Tracer("test").Start(t.Context(), "business")
	err := e.db.System(ctx, func(tx *pg.Tx) error {
		return e.box.Enqueue(ctx, tx, Message{Destination: getStats, Request: &outboxv1.GetStatsRequest{}, Key: "k"})
	})
	if err != nil {
		t.Fatal(err)
	}
	root.End()
	e.settles(t, "dispatched_at IS NULL")
	polls := e.db.Stats().Commits
	eventually(t, "some polls", func() bool { return e.db.Stats().Commits > polls+3 })
	stop()
	want := []struct {
		name string
		kind trace.SpanKind
	}{
		{"business", trace.SpanKindInternal},
		{obs.SpanOutboxDispatch, trace.SpanKindConsumer},
		{"fenceline.outbox.v1.OutboxService/GetStats", trace.SpanKindClient},
		{"fenceline.outbox.v1.OutboxService/GetStats", trace.SpanKindServer},
	}
	eventually(t, "all spans", func() bool { return len(spans.Ended()) >= len(want) })
	parent := trace.SpanID{}
	for _, w := range want {
		var found bool
		for _, got := range spans.Ended() {
			if got.Name() == w.name && got.SpanKind() == w.kind {
				found = true
				if got.Parent().SpanID() != parent || got.SpanContext().TraceID() != root.SpanContext().TraceID() {
					t.Errorf("%s %s hangs elsewhere", w.name, w.kind)
				}
				parent = got.SpanContext().SpanID()
			}
		}
		if !found {
			t.Fatalf("no span %s %s among %d", w.name, w.kind, len(spans.Ended()))
		}
	}
	if n := len(spans.Ended()); n != len(want) {
		t.Errorf("%d spans, want %d: polls make none", n, len(want))
	}
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	if n := counted(rm, "fenceline.outbox.dispatched", attribute.NewSet(obs.Destination(getStats), obs.Outcome(string(Sent)))); n != 1 {
		t.Errorf("%d dispatched", n)
	}
}

// A real server's own words for what it cannot decode, does not know, or is not there to answer.
func TestAnswersOfARealServer(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	tp := sdktrace.NewTracerProvider()
	conn := serve(t, tp)
	const unknown = "/fenceline.outbox.v1.OutboxService/NoSuchMethod"
	const gone = "/fenceline.ledger.v1.LedgerService/Settle"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	away, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	t.Cleanup(func() { _ = away.Close() })
	e.enqueue(t,
		Message{Destination: getStats, Request: &outboxv1.GetStatsRequest{}, Key: "good"},
		Message{Destination: getStats, Request: &outboxv1.GetStatsRequest{}, Key: "garbage"},
		Message{Destination: unknown, Request: wrapperspb.String("x"), Key: "unknown"},
		Message{Destination: gone, Request: wrapperspb.String("x"), Key: "gone"})
	e.admin(t, `UPDATE scheduler.outbox SET payload = '\xffffffff' WHERE key = 'system:garbage'`)
	e.run(t, NewDispatcher(DispatcherConfig{
		Outbox: e.box, DB: e.db, Peers: map[string]grpc.ClientConnInterface{"outbox": conn, "ledger": away},
		Destinations: []string{getStats, unknown, gone}, Settings: rare(), Tracer: tp,
	}))
	e.settles(t, "key = 'system:good' AND dispatched_at IS NULL")
	e.settles(t, "key = 'system:garbage' AND park_reason IS DISTINCT FROM 'UNDECODABLE'")
	e.settles(t, "key = 'system:unknown' AND (last_error IS NULL OR last_error NOT LIKE 'Unimplemented%' OR attempts > 0)")
	e.settles(t, "key = 'system:gone' AND (last_error IS NULL OR last_error NOT LIKE 'Unavailable%' OR attempts > 0)")
}
