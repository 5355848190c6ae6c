package obs

import (
	"context"
	"fmt"
	"log/slog"
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
	log  *slog.Logger
	away atomic.Bool
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
	return &exporter{SpanExporter: inner, log: log}, nil
}

// ExportSpans sends a batch. A failed batch is lost and logged once per outage; the work
// that it describes does not wait for its telemetry.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && e.away.CompareAndSwap(false, true):
		e.log.WarnContext(ctx, "span export fails, spans are lost", "spans", len(spans), "err", err)
	case err == nil && e.away.CompareAndSwap(true, false):
		e.log.InfoContext(ctx, "span export works again")
	}
	return nil
}
