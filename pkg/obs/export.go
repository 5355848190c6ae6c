package obs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials"
)

// exportTimeout bounds one export, its retries included.
const exportTimeout = 10 * time.Second

// exporter reports failed exports through the service's own log: the SDK would hand them
// to a global handler that prints plain text to stderr.
type exporter struct {
	sdktrace.SpanExporter
	log   *slog.Logger
	away  atomic.Bool
	abort chan struct{} // closed when an export under way has to end
	once  sync.Once
}

func newExporter(ctx context.Context, cfg Config, log *slog.Logger) (*exporter, error) {
	hostport, plain, err := endpoint(cfg.OTLPEndpoint)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	opts := []otlptracegrpc.Option{
		otlptracegrpc.WithEndpoint(hostport),
		otlptracegrpc.WithTimeout(exportTimeout),
	}
	if plain {
		opts = append(opts, otlptracegrpc.WithInsecure())
	} else {
		opts = append(opts, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(nil)))
	}
	inner, err := otlptrace.New(ctx, otlptracegrpc.NewClient(opts...))
	if err != nil {
		return nil, fmt.Errorf("build the OTLP exporter: %w", err)
	}
	return &exporter{SpanExporter: inner, log: log, abort: make(chan struct{})}, nil
}

// ExportSpans sends a batch. A failed batch is lost and logged once per outage; the work
// that it describes does not wait for its telemetry.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-e.abort:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && e.away.CompareAndSwap(false, true):
		e.log.WarnContext(ctx, "span export fails, spans are lost", "spans", len(spans), "err", err)
	case err == nil && e.away.CompareAndSwap(true, false):
		e.log.InfoContext(ctx, "span export works again")
	}
	return nil
}

// flush shuts tp down, which exports what waits. When ctx ends the export under way is cut
// off: by itself the SDK would return and leave it running.
func (e *exporter) flush(ctx context.Context, tp *sdktrace.TracerProvider) error {
	stop := context.AfterFunc(ctx, func() { e.once.Do(func() { close(e.abort) }) })
	defer stop()
	if err := tp.Shutdown(ctx); err != nil {
		return fmt.Errorf("flush spans: %w", err)
	}
	return nil
}
