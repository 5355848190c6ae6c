package worker

import (
	"context"
	"slices"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/reviewer/internal/engine"
)

const (
	delivery  = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	coalesced = "00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01"
)

// TestOneTraceLeadsThroughTheClaim continues the delivery's trace and links what was coalesced.
func TestOneTraceLeadsThroughTheClaim(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute, found)
	spans := tracetest.NewSpanRecorder()
	b.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("")
	c := b.scheduler.claim()
	c.Trace, c.Links, c.Delivery = delivery, []string{coalesced}, "guid"
	b.Review(obs.Quiet(context.WithoutCancel(t.Context())), t.Context(), c, time.Now())

	parents := make(map[string]string)
	names := make(map[string]string)
	for _, s := range spans.Ended() {
		names[s.SpanContext().SpanID().String()] = s.Name()
	}
	for _, s := range spans.Ended() {
		parents[s.Name()] = names[s.Parent().SpanID().String()]
		if got := s.SpanContext().TraceID().String(); got != delivery[3:35] {
			t.Errorf("%s is of trace %s", s.Name(), got)
		}
	}
	for child, parent := range map[string]string{
		obs.SpanClaim: "", obs.SpanRead: obs.SpanClaim, obs.SpanAttempt: obs.SpanClaim,
		obs.SpanReserve: obs.SpanAttempt, obs.SpanEngine: obs.SpanAttempt, obs.SpanFinish: obs.SpanAttempt,
	} {
		if got, is := parents[child]; !is || got != parent {
			t.Errorf("%q lies under %q, %t; want %q", child, got, is, parent)
		}
	}
	i := slices.IndexFunc(spans.Ended(), func(s sdktrace.ReadOnlySpan) bool { return s.Name() == obs.SpanClaim })
	claim := spans.Ended()[i]
	if len(claim.Links()) != 1 || claim.Links()[0].SpanContext.TraceID().String() != coalesced[3:35] {
		t.Errorf("links %v", claim.Links())
	}
	if a := b.memory.one(t); a.Trace[:35] != delivery[:35] {
		t.Errorf("the attempt stores %q", a.Trace)
	}
}

func TestAFenceVerdictIsASpanEvent(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, time.Minute, func(context.Context) (engine.Output, error) {
		b.scheduler.push()
		return output, nil
	})
	spans := tracetest.NewSpanRecorder()
	b.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("")
	b.work(t)
	var reasons []string
	for _, s := range spans.Ended() {
		for _, e := range s.Events() {
			for _, kv := range e.Attributes {
				if e.Name == obs.EventFence && string(kv.Key) == obs.KeyFenceReason {
					reasons = append(reasons, s.Name()+": "+kv.Value.AsString())
				}
			}
		}
	}
	if want := []string{"claim: HELD", "claim: STALE_GENERATION"}; !slices.Equal(reasons, want) {
		t.Errorf("verdicts %v, want %v", reasons, want)
	}
}

// TestAnEnginesWordsStayInside: an error may quote what was reviewed.
func TestAnEnginesWordsStayInside(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute, func(context.Context) (engine.Output, error) { panic("ghp_secret") })
	spans := tracetest.NewSpanRecorder()
	b.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("")
	b.work(t)
	for _, s := range spans.Ended() {
		if s.Name() == obs.SpanEngine && s.Status().Description != "engine_panic" {
			t.Errorf("the engine's span says %q", s.Status().Description)
		}
	}
}
