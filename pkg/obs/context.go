package obs

import (
	"context"
	"crypto/rand"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceParent is the key of the W3C header, and so of the map that stands for a row.
const traceParent = "traceparent"

// quietKey marks a quiet context in the W3C trace state, so that the mark crosses gRPC and
// is told from a trace that sampling left out.
const quietKey = "fenceline"

// Propagator is the one propagator of all services: W3C trace context and nothing else,
// since baggage from outside is not wanted inside.
func Propagator() propagation.TextMapPropagator { return propagation.TraceContext{} }

// Inject returns the W3C traceparent of the context for a row, "" when there is none or
// when the context is quiet: what a quiet poll finds begins a trace of its own.
func Inject(ctx context.Context) string {
	if IsQuiet(ctx) {
		return ""
	}
	carrier := propagation.MapCarrier{}
	Propagator().Inject(ctx, carrier)
	return carrier[traceParent]
}

// Extract returns a context whose next span continues the stored trace. Where nothing
// valid was stored the context stays as it is, but not quiet: found work is recorded.
func Extract(ctx context.Context, traceparent string) context.Context {
	if sc := parse(traceparent); sc.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	if IsQuiet(ctx) {
		return trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	}
	return ctx
}

// Link returns a link to the stored trace; one without a valid trace is dropped by the SDK.
func Link(traceparent string) trace.Link {
	return trace.Link{SpanContext: parse(traceparent)}
}

// TraceID returns the trace id of the context in hex, "" when it has none or is quiet.
func TraceID(ctx context.Context) string {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.HasTraceID() || IsQuiet(ctx) {
		return ""
	}
	return sc.TraceID().String()
}

// Quiet returns a context under which no span is recorded, in this process and in those
// that it calls: for polls and scans that mostly find nothing. Its ids are random and
// shared by the logs of caller and callee. Extract ends it.
func Quiet(ctx context.Context) context.Context {
	if IsQuiet(ctx) {
		return ctx
	}
	var tid trace.TraceID
	var sid trace.SpanID
	_, _ = rand.Read(tid[:]) // crypto/rand never fails
	_, _ = rand.Read(sid[:])
	state, err := trace.ParseTraceState(quietKey + "=quiet")
	if err != nil {
		return ctx // unreachable: the state is a constant
	}
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: tid, SpanID: sid, TraceState: state, Remote: true,
	}))
}

// IsQuiet tells whether the context comes from Quiet, here or in a calling process.
func IsQuiet(ctx context.Context) bool {
	sc := trace.SpanContextFromContext(ctx)
	return sc.IsValid() && !sc.IsSampled() && sc.TraceState().Get(quietKey) == "quiet"
}

func parse(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	ctx := Propagator().Extract(context.Background(), propagation.MapCarrier{traceParent: traceparent})
	return trace.SpanContextFromContext(ctx)
}
