package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

// ClientConfig says where a peer is and what may be repeated there.
type ClientConfig struct {
	Target    string        // host:port
	Peer      string        // the service that has to be there, by its lower-case name
	TLS       TLSConfig     // the caller's own certificate, and whom it trusts
	Plaintext bool          // the service's PLAINTEXT setting; loopback only
	Deadline  time.Duration // of calls that bring none; zero means 10 s

	// Idempotent are full method names, /fenceline.ledger.v1.LedgerService/Reserve, that are
	// tried up to 4 times within their deadline when the peer is unavailable.
	Idempotent []string
}

// ClientDeps is what a client is built with; everything may be left out.
type ClientDeps struct {
	Service string // the caller's lower-case name, used in messages about settings
	Tracer  trace.TracerProvider
	Meter   metric.MeterProvider
	Log     *slog.Logger
}

// Dial makes a client connection; it connects on its first call and again by itself.
func Dial(cfg ClientConfig, deps ClientDeps) (*grpc.ClientConn, error) {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Tracer == nil {
		deps.Tracer = tracenoop.NewTracerProvider() // or otelgrpc takes the global one
	}
	if deps.Meter == nil {
		deps.Meter = metricnoop.NewMeterProvider()
	}
	secured := security{service: deps.Service, plaintext: cfg.Plaintext, tls: cfg.TLS, log: deps.Log, meter: deps.Meter}
	creds, err := secured.client(cfg.Target, cfg.Peer)
	if err != nil {
		return nil, err
	}
	config, err := serviceConfig(cfg.Idempotent)
	if err != nil {
		return nil, err
	}
	usual := cfg.Deadline
	if usual <= 0 {
		usual = defaultDeadline
	}
	conn, err := grpc.NewClient(cfg.Target,
		grpc.WithTransportCredentials(creds),
		grpc.WithDisableServiceConfig(), // ours, not one that DNS brings
		grpc.WithDefaultServiceConfig(config),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithChainUnaryInterceptor(deadline(usual), trail(deps.Log)),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(
			otelgrpc.WithTracerProvider(deps.Tracer), otelgrpc.WithMeterProvider(deps.Meter),
			otelgrpc.WithPropagators(obs.Propagator()), otelgrpc.WithFilter(observed))),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}),
		// A peer that restarts is found again within seconds; the default waits up to 2 min.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", cfg.Target, err)
	}
	return conn, nil
}

// deadline gives a call without a deadline the usual one.
func deadline(usual time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, ok := ctx.Deadline(); !ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, usual)
			defer cancel()
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
}

// trail leaves failed calls in the debug log; whoever called logs what matters.
func trail(log *slog.Logger) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if err != nil {
			log.DebugContext(ctx, "call to a peer failed", "rpc", method, "peer", cc.Target(), "code", status.Code(err).String(), "reason", Reason(err))
		}
		return err
	}
}

type methodName struct {
	Service string `json:"service"`
	Method  string `json:"method"`
}

// serviceConfig is gRPC's JSON for round robin and for retries of the named methods. The
// throttle stops retries while most calls fail, so that they do not add to an outage.
func serviceConfig(idempotent []string) (string, error) {
	config := map[string]any{"loadBalancingConfig": []any{map[string]any{"round_robin": struct{}{}}}}
	var names []methodName
	var errs []error
	for _, full := range idempotent {
		service, method, ok := strings.Cut(strings.TrimPrefix(full, "/"), "/")
		if !ok || service == "" || method == "" {
			errs = append(errs, fmt.Errorf("idempotent method %q is not /service/method", full))
			continue
		}
		names = append(names, methodName{service, method})
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	if len(names) > 0 {
		config["methodConfig"] = []any{map[string]any{
			"name": names,
			"retryPolicy": map[string]any{
				"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
				"retryableStatusCodes": []string{"UNAVAILABLE"},
			},
		}}
		config["retryThrottling"] = map[string]any{"maxTokens": 100, "tokenRatio": 0.5}
	}
	text, err := json.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("encode the service config: %w", err)
	}
	return string(text), nil
}
