// Package obs is the vocabulary and the plumbing of observation: span names and attribute
// keys, trace context in and out of a row, and a service's telemetry without anything global.
package obs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

// maxAttribute bounds the bytes of one span attribute: ids and names fit, a diff or a
// prompt that slipped in by mistake does not.
const maxAttribute = 512

// Telemetry is what one service observes itself with. Several live in one process side by
// side: nothing of it is registered globally.
type Telemetry struct {
	Tracer     trace.TracerProvider
	Meter      metric.MeterProvider
	Log        *slog.Logger
	Prometheus http.Handler
}

// Start builds the telemetry of one service; logs go to w as JSON lines. The returned
// function flushes the span exporter and ends within its context's deadline. Without an
// OTLP endpoint spans are made (their ids appear in logs and rows) and exported nowhere.
func Start(ctx context.Context, cfg Config, service string, w io.Writer) (*Telemetry, func(context.Context) error, error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	log := slog.New(NewHandler(w, cfg.LogLevel)).With("service", service)
	res := resource.NewWithAttributes(semconv.SchemaURL,
		semconv.ServiceName(service),
		semconv.ServiceNamespace("fenceline"),
		semconv.ServiceVersion(version()),
	)
	tracer, flush, err := newTracer(ctx, cfg, res, log)
	if err != nil {
		return nil, nil, err
	}
	meter, handler, err := newMeter(res, log)
	if err != nil {
		return nil, nil, errors.Join(err, flush(ctx))
	}
	shutdown := func(ctx context.Context) error {
		return errors.Join(flush(ctx), meter.Shutdown(ctx))
	}
	return &Telemetry{Tracer: tracer, Meter: meter, Log: log, Prometheus: handler}, shutdown, nil
}

func newTracer(ctx context.Context, cfg Config, res *resource.Resource, log *slog.Logger) (trace.TracerProvider, func(context.Context) error, error) {
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxAttribute
	opts := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(res),
		sdktrace.WithRawSpanLimits(limits),
		// Parent based on purpose: a quiet parent drops its children, here and across gRPC.
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())),
	}
	if cfg.OTLPEndpoint == "" {
		tp := sdktrace.NewTracerProvider(opts...)
		return tp, tp.Shutdown, nil
	}
	exporter, err := newExporter(ctx, cfg, log)
	if err != nil {
		return nil, nil, err
	}
	tp := sdktrace.NewTracerProvider(append(opts, sdktrace.WithBatcher(exporter,
		sdktrace.WithBatchTimeout(cmp.Or(cfg.SpanDelay, time.Second)), sdktrace.WithExportTimeout(exportTimeout)))...)
	return tp, func(ctx context.Context) error { return exporter.flush(ctx, tp) }, nil
}

func newMeter(res *resource.Resource, log *slog.Logger) (*sdkmetric.MeterProvider, http.Handler, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry))
	if err != nil {
		return nil, nil, fmt.Errorf("build the Prometheus exporter: %w", err)
	}
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelError),
		ErrorHandling: promhttp.ContinueOnError,
	})
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithResource(res), sdkmetric.WithReader(exporter),
		sdkmetric.WithView(dropAddresses))
	return meter, handler, nil
}

// dropAddresses keeps peers' addresses and ephemeral ports off the metrics: every
// connection would open new series that are never freed.
func dropAddresses(i sdkmetric.Instrument) (sdkmetric.Stream, bool) {
	return sdkmetric.Stream{
		Name: i.Name, Description: i.Description, Unit: i.Unit,
		AttributeFilter: attribute.NewDenyKeysFilter(
			semconv.ServerAddressKey, semconv.ServerPortKey, semconv.ClientAddressKey, semconv.ClientPortKey,
			semconv.NetworkPeerAddressKey, semconv.NetworkPeerPortKey,
		),
	}, true
}
