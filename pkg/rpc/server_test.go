package rpc_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

func TestDeadlines(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asked     time.Duration
		house     bool // the house's client, which brings its own default
		low, high time.Duration
	}{
		"none at all":       {0, false, 9 * time.Second, 10 * time.Second},
		"the client's":      {0, true, 9 * time.Second, 10 * time.Second},
		"short":             {3 * time.Second, false, 2 * time.Second, 3 * time.Second},
		"longer than usual": {30 * time.Second, true, 29 * time.Second, 30 * time.Second},
		"beyond the limit":  {time.Hour, false, 39 * time.Second, 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, rpc.ServerConfig{})
			got := make(chan time.Duration, 1)
			h.svc.stats = func(ctx context.Context) error {
				until, _ := ctx.Deadline()
				got <- time.Until(until)
				return nil
			}
			conn := h.raw(t)
			if tc.house {
				conn = h.dial(t)
			}
			ctx := t.Context()
			if tc.asked > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tc.asked)
				defer cancel()
			}
			if _, err := outboxv1.NewOutboxServiceClient(conn).GetStats(ctx, &outboxv1.GetStatsRequest{}); err != nil {
				t.Fatal(err)
			}
			if left := within(t, "the call", got); left < tc.low || left > tc.high {
				t.Errorf("the handler has %s", left)
			}
		})
	}
}

func TestMessageSize(t *testing.T) {
	t.Parallel()
	h := start(t, rpc.ServerConfig{})
	conn := h.raw(t)
	for size, want := range map[int]codes.Code{4<<20 - 100: codes.InvalidArgument, 4<<20 + 1: codes.ResourceExhausted} {
		_, err := outboxv1.NewOutboxServiceClient(conn).ListMessages(t.Context(),
			&outboxv1.ListMessagesRequest{Destination: strings.Repeat("x", size)})
		if status.Code(err) != want {
			t.Errorf("%d bytes: %v, want %v", size, status.Code(err), want)
		}
	}
}

func TestHealthFollowsServing(t *testing.T) {
	t.Parallel()
	h := start(t, rpc.ServerConfig{})
	client := healthv1.NewHealthClient(h.raw(t))
	for _, name := range []string{"", "fenceline.outbox.v1.OutboxService"} {
		watch, err := client.Watch(t.Context(), &healthv1.HealthCheckRequest{Service: name})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, watch, healthv1.HealthCheckResponse_SERVING)
		h.srv.SetServing(false)
		expect(t, watch, healthv1.HealthCheckResponse_NOT_SERVING)
		h.srv.SetServing(true)
		expect(t, watch, healthv1.HealthCheckResponse_SERVING)
	}
	if _, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{Service: "nobody"}); status.Code(err) != codes.NotFound {
		t.Errorf("unknown service: %v", err)
	}
	if spans := h.spans.Started(); len(spans) != 0 {
		t.Errorf("health checks made spans: %v", spans)
	}
}

// expect skips NOT_SERVING from before Run where SERVING is due.
func expect(t *testing.T, watch grpc.ServerStreamingClient[healthv1.HealthCheckResponse], want healthv1.HealthCheckResponse_ServingStatus) {
	t.Helper()
	for range 2 {
		resp, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if resp.GetStatus() == want {
			return
		}
	}
	t.Errorf("health is not %v", want)
}

func TestReflectionIsASetting(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		h := start(t, rpc.ServerConfig{Reflection: on})
		stream, err := reflectionv1.NewServerReflectionClient(h.raw(t)).ServerReflectionInfo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
		resp, err := stream.Recv()
		if on && !strings.Contains(resp.String(), "fenceline.outbox.v1.OutboxService") {
			t.Errorf("reflection: %v %v", resp, err)
		}
		if !on && rpc.Reason(err) != rpc.ReasonMethodNotAllowed {
			t.Errorf("reflection answered: %v", err)
		}
		if len(h.spans.Started()) != 0 {
			t.Error("reflection made spans")
		}
	}
}

func TestStopEndsHealthWatches(t *testing.T) {
	t.Parallel()
	h := start(t, rpc.ServerConfig{StopTimeout: time.Hour})
	watch, err := healthv1.NewHealthClient(h.raw(t)).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, watch, healthv1.HealthCheckResponse_SERVING)
	done := make(chan error, 1)
	go func() { done <- h.stop() }()
	if err := within(t, "the stop", done); err != nil {
		t.Error(err)
	}
}

func TestStopWaitsForCalls(t *testing.T) {
	t.Parallel()
	h := start(t, rpc.ServerConfig{StopTimeout: time.Hour})
	entered, leave, answered := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	h.svc.stats = func(context.Context) error { close(entered); <-leave; return nil }
	conn := h.raw(t)
	go func() {
		_, err := outboxv1.NewOutboxServiceClient(conn).GetStats(context.Background(), &outboxv1.GetStatsRequest{})
		answered <- err
	}()
	within(t, "the call", entered)
	done := make(chan error, 1)
	go func() { done <- h.stop() }()
	// The server refuses new calls once it stops; the one under way is still answered.
	for {
		if _, err := healthv1.NewHealthClient(h.raw(t)).Check(t.Context(), &healthv1.HealthCheckRequest{}); status.Code(err) == codes.Unavailable {
			break
		}
	}
	close(leave)
	if err := within(t, "the answer", answered); err != nil {
		t.Error(err)
	}
	if err := within(t, "the stop", done); err != nil {
		t.Error(err)
	}
}

func TestStopCutsOffWhatOutlivesIt(t *testing.T) {
	t.Parallel()
	h := start(t, rpc.ServerConfig{StopTimeout: 50 * time.Millisecond})
	entered := make(chan struct{})
	h.svc.stats = func(ctx context.Context) error { close(entered); <-ctx.Done(); return ctx.Err() }
	conn, answered := h.raw(t), make(chan error, 1)
	go func() {
		_, err := outboxv1.NewOutboxServiceClient(conn).GetStats(context.Background(), &outboxv1.GetStatsRequest{})
		answered <- err
	}()
	within(t, "the call", entered)
	done := make(chan error, 1)
	go func() { done <- h.stop() }()
	if err := within(t, "the stop", done); err != nil {
		t.Error(err)
	}
	if err := within(t, "the answer", answered); status.Code(err) == codes.OK {
		t.Error("a call that was cut off succeeded")
	}
	if !strings.Contains(h.log.String(), "cut off") {
		t.Errorf("not logged: %s", h.log)
	}
}

func TestListenErrors(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, tc := range map[string]struct {
		cfg  rpc.ServerConfig
		want string
	}{
		"plain text not set":  {rpc.ServerConfig{Listen: "127.0.0.1:0"}, "LEDGER_TLS_CERT_FILE: is not set, nor are"},
		"not on loopback":     {rpc.ServerConfig{Listen: "0.0.0.0:0", Plaintext: true}, "LEDGER_PLAINTEXT: is true, and 0.0.0.0:0 is not a loopback address"},
		"every interface":     {rpc.ServerConfig{Listen: ":0", Plaintext: true}, "is not a loopback address"},
		"both":                {rpc.ServerConfig{Listen: "127.0.0.1:0", Plaintext: true, TLS: rpc.TLSConfig{CAFile: "x"}}, "LEDGER_PLAINTEXT: is true, and a certificate is set besides"},
		"half of TLS":         {rpc.ServerConfig{Listen: "127.0.0.1:0", TLS: rpc.TLSConfig{CertFile: "x", KeyFile: "y"}}, "LEDGER_TLS_CA_FILE: is not set"},
		"no such files":       {rpc.ServerConfig{Listen: "127.0.0.1:0", TLS: rpc.TLSConfig{CertFile: "x", KeyFile: "y", CAFile: "z"}}, "open z: no such file"},
		"no port":             {rpc.ServerConfig{Listen: "127.0.0.1", Plaintext: true}, "LEDGER_LISTEN: "},
		"port taken":          {rpc.ServerConfig{Listen: taken.Addr().String(), Plaintext: true}, "address already in use"},
		"deadlines crossed":   {rpc.ServerConfig{Listen: "127.0.0.1:0", Plaintext: true, Deadline: time.Minute, MaxDeadline: time.Second}, "LEDGER_RPC_MAX_DEADLINE: 1s is below RPC_DEADLINE"},
		"negative":            {rpc.ServerConfig{Listen: "127.0.0.1:0", Plaintext: true, StopTimeout: -1}, "RPC_STOP_TIMEOUT: -1ns is negative"},
		"several at the same": {rpc.ServerConfig{Listen: "x", MaxConnAge: -1}, "RPC_MAX_CONN_AGE"},
	} {
		srv, err := rpc.NewServer(tc.cfg, rpc.ServerDeps{Service: "ledger", Access: table})
		if err == nil {
			_ = srv.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

func TestCloseWithoutRun(t *testing.T) {
	t.Parallel()
	srv, err := rpc.NewServer(rpc.ServerConfig{Listen: "127.0.0.1:0", Plaintext: true}, rpc.ServerDeps{})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", srv.Addr())
	if err != nil {
		t.Fatalf("the port is still held: %v", err)
	}
	_ = lis.Close()
}
