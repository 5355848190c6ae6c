package rpc_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fenceline-dev/fenceline/pkg/certs"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

func TestRetriesOnlyWhatIsIdempotent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		idempotent []string
		code       codes.Code
		calls      int64
		want       codes.Code
	}{
		"named":       {[]string{"/fenceline.outbox.v1.OutboxService/GetStats"}, codes.Unavailable, 3, codes.OK},
		"not named":   {nil, codes.Unavailable, 1, codes.Unavailable},
		"other named": {[]string{"/fenceline.outbox.v1.OutboxService/ListMessages"}, codes.Unavailable, 1, codes.Unavailable},
		"other code":  {[]string{"/fenceline.outbox.v1.OutboxService/GetStats"}, codes.Internal, 1, codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, rpc.ServerConfig{})
			var calls atomic.Int64
			h.svc.stats = func(context.Context) error {
				if calls.Add(1) < 3 {
					return status.Error(tc.code, "not yet")
				}
				return nil
			}
			_, err := outboxv1.NewOutboxServiceClient(h.dial(t, tc.idempotent...)).GetStats(t.Context(), &outboxv1.GetStatsRequest{})
			if status.Code(err) != tc.want || calls.Load() != tc.calls {
				t.Errorf("%d calls, %v; want %d, %v", calls.Load(), err, tc.calls, tc.want)
			}
		})
	}
}

func TestFindsARestartedPeer(t *testing.T) {
	t.Parallel()
	first := start(t, rpc.ServerConfig{})
	client := outboxv1.NewOutboxServiceClient(first.dial(t))
	if _, err := client.GetStats(t.Context(), &outboxv1.GetStatsRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.GetStats(t.Context(), &outboxv1.GetStatsRequest{}); status.Code(err) != codes.Unavailable {
		t.Fatalf("the peer is away, got %v", err)
	}
	start(t, rpc.ServerConfig{Listen: first.srv.Addr()})
	if _, err := client.GetStats(t.Context(), &outboxv1.GetStatsRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Error(err)
	}
}

func TestDialErrors(t *testing.T) {
	t.Parallel()
	files := newInstallation(t).issue(t, certs.Service("reviewer"), time.Hour)
	for want, cfg := range map[string]rpc.ClientConfig{
		"neither is REVIEWER_PLAINTEXT":                      {Target: "127.0.0.1:1"},
		"REVIEWER_PLAINTEXT=true: ledger:1 is not":           {Target: "ledger:1", Plaintext: true},
		"REVIEWER_PLAINTEXT=true:  is not a loopback":        {Plaintext: true},
		`"Ledger" is no name of an identity`:                 {Target: "localhost:1", Peer: "Ledger", TLS: rpc.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, CAFile: files.CA}},
		`idempotent method "Reserve" is not /service/method`: {Target: "localhost:1", Plaintext: true, Idempotent: []string{"Reserve"}},
	} {
		_, err := rpc.Dial(cfg, rpc.ClientDeps{Service: "reviewer"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestOneTraceAcrossACall(t *testing.T) {
	t.Parallel()
	h := start(t, rpc.ServerConfig{})
	seen := make(chan trace.SpanContext, 1)
	h.svc.stats = func(ctx context.Context) error { seen <- trace.SpanContextFromContext(ctx); return nil }
	client := outboxv1.NewOutboxServiceClient(h.dial(t))

	ctx, span := h.tp.Tracer("t").Start(t.Context(), obs.SpanAttempt)
	if _, err := client.GetStats(ctx, &outboxv1.GetStatsRequest{}); err != nil {
		t.Fatal(err)
	}
	span.End()
	if got := within(t, "the call", seen); got.TraceID() != span.SpanContext().TraceID() {
		t.Errorf("the handler is in trace %s, the caller in %s", got.TraceID(), span.SpanContext().TraceID())
	}
	if n := len(h.spans.Started()); n != 3 {
		t.Errorf("%d spans, want attempt, client, server", n)
	}
}

func TestQuietAcrossACall(t *testing.T) {
	t.Parallel()
	h := start(t, rpc.ServerConfig{})
	quiet := make(chan bool, 1)
	h.svc.stats = func(ctx context.Context) error { quiet <- obs.IsQuiet(ctx); return nil }
	client := outboxv1.NewOutboxServiceClient(h.dial(t))
	if _, err := client.GetStats(obs.Quiet(t.Context()), &outboxv1.GetStatsRequest{}); err != nil {
		t.Fatal(err)
	}
	if !within(t, "the call", quiet) {
		t.Error("the handler does not know that the call is quiet")
	}
	if n := len(h.spans.Ended()); n != 0 {
		t.Errorf("%d spans of a quiet call", n)
	}
}
