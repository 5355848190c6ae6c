package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"buf.build/go/protovalidate"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

// ServerDeps is what a server is built with; Errors is the service's mapping of sentinels
// to the wire. Without log or providers nothing is logged or recorded.
type ServerDeps struct {
	Service string // lower-case name, used in messages about settings
	Log     *slog.Logger
	Tracer  trace.TracerProvider
	Meter   metric.MeterProvider
	Errors  []Map
	Access  Access // who may call what; may be nil in plain text, where everybody may
}

// withDefaults keeps the libraries from falling back to their global providers.
func (d ServerDeps) withDefaults() ServerDeps {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Tracer == nil {
		d.Tracer = tracenoop.NewTracerProvider()
	}
	if d.Meter == nil {
		d.Meter = metricnoop.NewMeterProvider()
	}
	return d
}

// Server is a gRPC server with the house's bounds. It listens from NewServer on and serves
// from Run on; connections made in between wait.
type Server struct {
	cfg    ServerConfig
	access Access
	grpc   *grpc.Server
	lis    net.Listener
	health *health.Server
	log    *slog.Logger
	ending chan struct{} // closed when streams have to end

	mu       sync.Mutex
	services []string
	serving  bool // what SetServing asked for
	running  bool
}

// NewServer binds the address and builds the server. It refuses a table of callers that doesn't fit the
// contracts. Call Run, or Close to give it up.
func NewServer(cfg ServerConfig, deps ServerDeps) (*Server, error) {
	if err := cfg.validate(prefix(deps.Service)); err != nil {
		return nil, err
	}
	if err := deps.Access.Check(); err != nil {
		return nil, err
	}
	if deps.Access == nil && !cfg.Plaintext {
		return nil, errors.New("a server that knows its callers needs a table of them")
	}
	cfg, deps = cfg.withDefaults(), deps.withDefaults()
	gate, err := newGate(deps.Access, cfg.Plaintext, deps)
	if err != nil {
		return nil, err
	}
	secured := security{service: deps.Service, plaintext: cfg.Plaintext, tls: cfg.TLS, log: deps.Log, meter: deps.Meter}
	creds, err := secured.server(cfg.Listen)
	if err != nil {
		return nil, err
	}
	validator, err := protovalidate.New()
	if err != nil {
		return nil, fmt.Errorf("build the request validator: %w", err)
	}
	var lc net.ListenConfig
	lis, err := lc.Listen(context.Background(), "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for gRPC: %w", err)
	}
	s := &Server{cfg: cfg, access: deps.Access, lis: lis, health: health.NewServer(), log: deps.Log, ending: make(chan struct{}), serving: true}
	toWire := mapper{log: deps.Log, errors: deps.Errors}
	recovered := recovery.WithRecoveryHandlerContext(toWire.panicked)
	s.grpc = grpc.NewServer(append(bounds(cfg),
		grpc.Creds(creds),
		grpc.StatsHandler(otelgrpc.NewServerHandler(
			otelgrpc.WithTracerProvider(deps.Tracer), otelgrpc.WithMeterProvider(deps.Meter),
			otelgrpc.WithPropagators(obs.Propagator()), otelgrpc.WithFilter(observed))),
		grpc.ChainUnaryInterceptor(
			recovery.UnaryServerInterceptor(recovered),
			floor(cfg.Deadline, cfg.MaxDeadline),
			toWire.intercept,
			gate.unary,
			validate(validator)),
		grpc.ChainStreamInterceptor(
			recovery.StreamServerInterceptor(recovered),
			gate.stream,
			s.endStreams),
		grpc.UnknownServiceHandler(gate.unknown),
		grpc.InTapHandle(gate.malformed),
	)...)
	healthv1.RegisterHealthServer(s.grpc, s.health)
	s.health.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	if cfg.Reflection {
		reflection.Register(s.grpc)
	}
	return s, nil
}

// bounds keep one caller from using up the server, and clients from keeping a connection
// that new replicas never see.
func bounds(cfg ServerConfig) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(cfg.MaxStreams),
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: cfg.MaxConnAge, MaxConnectionAgeGrace: cfg.MaxDeadline,
			Time: time.Minute, Timeout: 10 * time.Second,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true), // pools close after Run: no handler may outlive it
	}
}

// RegisterService implements grpc.ServiceRegistrar; the service gets a health status of its
// own.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	s.grpc.RegisterService(desc, impl)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.services = append(s.services, desc.ServiceName)
	s.publish()
}

// Addr is host:port of the listener, with the port that was chosen for port 0.
func (s *Server) Addr() string { return s.lis.Addr().String() }

// SetServing tells health checks whether the server should get calls. It takes effect while
// Run runs, which starts with true unless told otherwise; calls are answered either way.
func (s *Server) SetServing(serving bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving = serving
	s.publish()
}

// publish writes the health status of the server and its services; s.mu is held.
func (s *Server) publish() {
	status := healthv1.HealthCheckResponse_NOT_SERVING
	if s.running && s.serving {
		status = healthv1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", status)
	for _, name := range s.services {
		s.health.SetServingStatus(name, status)
	}
}

// Run serves until ctx ends, then stops: health says so, streams end, calls under way get
// StopTimeout to finish and are cancelled after it. It refuses to serve what the table of callers doesn't
// speak of. Call it once.
func (s *Server) Run(ctx context.Context) error {
	if err := s.covered(); err != nil {
		return errors.Join(err, s.Close())
	}
	s.mu.Lock()
	s.running = true
	s.publish()
	s.mu.Unlock()
	s.log.InfoContext(ctx, "gRPC server listens", "addr", s.Addr())
	failed := make(chan error, 1)
	go func() { failed <- s.grpc.Serve(s.lis) }()
	select {
	case err := <-failed:
		s.grpc.Stop()
		return fmt.Errorf("serve gRPC: %w", err)
	case <-ctx.Done():
	}
	s.stop(ctx)
	if err := <-failed; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve gRPC: %w", err)
	}
	return nil
}

// covered reports the services that nobody was given.
func (s *Server) covered() error {
	if s.access == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, name := range s.services {
		if !s.access.covers(name) {
			errs = append(errs, fmt.Errorf("%s is served, and the table of callers has no entry of it", name))
		}
	}
	return errors.Join(errs...)
}

func (s *Server) stop(ctx context.Context) {
	s.health.Shutdown()
	close(s.ending)
	done := make(chan struct{})
	go func() { defer close(done); s.grpc.GracefulStop() }()
	timer := time.NewTimer(s.cfg.StopTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		s.log.WarnContext(ctx, "gRPC calls outlived the graceful stop and are cut off", "after", s.cfg.StopTimeout.String())
		s.grpc.Stop()
		<-done
	}
}

// Close gives up a server that was never run.
func (s *Server) Close() error {
	s.grpc.Stop()
	if err := s.lis.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close the gRPC listener: %w", err)
	}
	return nil
}
