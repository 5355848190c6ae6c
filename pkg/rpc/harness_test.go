package rpc_test

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service answers GetStats as the test says.
type service struct {
	outboxv1.UnimplementedOutboxServiceServer
	stats func(context.Context) error
}

func (s *service) GetStats(ctx context.Context, _ *outboxv1.GetStatsRequest) (*outboxv1.GetStatsResponse, error) {
	if s.stats == nil {
		return &outboxv1.GetStatsResponse{}, nil
	}
	return &outboxv1.GetStatsResponse{}, s.stats(ctx)
}

func (s *service) ListMessages(context.Context, *outboxv1.ListMessagesRequest) (*outboxv1.ListMessagesResponse, error) {
	return &outboxv1.ListMessagesResponse{}, nil
}

func (s *service) RetryMessage(context.Context, *outboxv1.RetryMessageRequest) (*outboxv1.RetryMessageResponse, error) {
	return &outboxv1.RetryMessageResponse{}, nil
}

// buffer is a log that a server writes and a test reads.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

type harness struct {
	srv   *rpc.Server
	svc   *service
	log   *buffer
	spans *tracetest.SpanRecorder
	tp    *sdktrace.TracerProvider
	stop  func() error // ends Run and returns what it returned
}

func start(t *testing.T, cfg rpc.ServerConfig, errs ...rpc.Map) *harness {
	t.Helper()
	h := &harness{svc: &service{}, log: &buffer{}, spans: tracetest.NewSpanRecorder()}
	h.tp = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(h.spans))
	cfg.Listen, cfg.Plaintext = cmp.Or(cfg.Listen, "127.0.0.1:0"), true
	srv, err := rpc.NewServer(cfg, rpc.ServerDeps{
		Service: "ledger", Log: slog.New(obs.NewHandler(h.log, slog.LevelDebug)), Tracer: h.tp, Errors: errs,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.srv = srv
	outboxv1.RegisterOutboxServiceServer(srv, h.svc)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	h.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = h.stop(); _ = h.tp.Shutdown(context.Background()) })
	return h
}

// raw is a client without the house's interceptors.
func (h *harness) raw(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(h.srv.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (h *harness) dial(t *testing.T, idempotent ...string) *grpc.ClientConn {
	t.Helper()
	conn, err := rpc.Dial(
		rpc.ClientConfig{Target: h.srv.Addr(), Plaintext: true, Idempotent: idempotent},
		rpc.ClientDeps{Service: "reviewer", Tracer: h.tp},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// patience bounds every wait; it is never waited out where all is well.
const patience = 30 * time.Second

// within fails the test where what has to happen soon does not.
func within[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not happen", what)
		panic("unreachable")
	}
}

// until looks again and again; it fails the test where what has to come about soon does not.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come about", what)
		}
	}
}
