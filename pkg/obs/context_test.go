package obs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

const stored = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func recorder(t *testing.T) (trace.Tracer, *tracetest.SpanRecorder) {
	t.Helper()
	rec := tracetest.NewSpanRecorder()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(rec))
	t.Cleanup(func() { _ = tp.Shutdown(context.Background()) })
	return tp.Tracer("test"), rec
}

func TestContextSurvivesARow(t *testing.T) {
	t.Parallel()
	tracer, rec := recorder(t)
	ctx, parent := tracer.Start(t.Context(), obs.SpanWebhook)
	row := obs.Inject(ctx)
	parent.End()
	_, child := tracer.Start(obs.Extract(context.Background(), row), obs.SpanOutboxDispatch, trace.WithLinks(obs.Link(stored)))
	child.End()

	got := rec.Ended()[1]
	if got.Parent().SpanID() != parent.SpanContext().SpanID() || got.SpanContext().TraceID() != parent.SpanContext().TraceID() {
		t.Errorf("child of %v, want of %v", got.Parent(), parent.SpanContext())
	}
	if links := got.Links(); len(links) != 1 || links[0].SpanContext.TraceID().String() != stored[3:35] {
		t.Errorf("links %v", links)
	}
	if id := obs.TraceID(ctx); id != parent.SpanContext().TraceID().String() {
		t.Errorf("TraceID %q", id)
	}
}

func TestRowsWithoutATrace(t *testing.T) {
	t.Parallel()
	tracer, rec := recorder(t)
	if got := obs.Inject(t.Context()); got != "" {
		t.Errorf("Inject of an empty context: %q", got)
	}
	for _, bad := range []string{"", "garbage", "00-00000000000000000000000000000000-b7ad6b7169203331-01", stored[:40]} {
		ctx, parent := tracer.Start(t.Context(), "parent")
		if got := trace.SpanContextFromContext(obs.Extract(ctx, bad)); !got.Equal(parent.SpanContext()) {
			t.Errorf("Extract(%q) lost the live parent", bad)
		}
		_, span := tracer.Start(t.Context(), "linked", trace.WithLinks(obs.Link(bad)))
		span.End()
		parent.End()
		if links := rec.Ended()[len(rec.Ended())-2].Links(); len(links) != 0 {
			t.Errorf("Link(%q) stayed: %v", bad, links)
		}
	}
}

func TestQuietRecordsNothingUntilWorkIsFound(t *testing.T) {
	t.Parallel()
	tracer, rec := recorder(t)
	ctx, busy := tracer.Start(t.Context(), "loop")
	quiet := obs.Quiet(ctx)
	if !obs.IsQuiet(quiet) || obs.IsQuiet(ctx) {
		t.Fatal("IsQuiet is wrong")
	}
	if obs.Quiet(quiet) != quiet {
		t.Error("a quiet context was made quiet again")
	}
	inner, poll := tracer.Start(quiet, "poll")
	_, nested := tracer.Start(inner, "nested")
	nested.End()
	poll.End()
	if !obs.IsQuiet(inner) {
		t.Error("a dropped span made the context loud")
	}
	if row := obs.Inject(inner); row != "" {
		t.Errorf("a quiet trace was stored: %q", row)
	}
	if id := obs.TraceID(inner); id != "" {
		t.Errorf("a quiet trace was shown: %q", id)
	}
	for name, row := range map[string]string{"root": "", "continued": stored} {
		_, span := tracer.Start(obs.Extract(inner, row), name)
		if !span.SpanContext().IsSampled() {
			t.Errorf("%s: found work was dropped", name)
		}
		if row != "" && span.SpanContext().TraceID().String() != row[3:35] {
			t.Errorf("%s: trace %s", name, span.SpanContext().TraceID())
		}
		span.End()
	}
	busy.End()
	if n := len(rec.Ended()); n != 3 {
		t.Errorf("%d spans, want loop, root, continued", n)
	}
}

func TestEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err    error
		status sdktrace.Status
		kind   string
	}{
		"success":  {nil, sdktrace.Status{Code: otelcodes.Unset}, ""},
		"plain":    {errors.New("boom"), sdktrace.Status{Code: otelcodes.Error, Description: "boom"}, "_OTHER"},
		"deadline": {fmt.Errorf("load: %w", context.DeadlineExceeded), sdktrace.Status{Code: otelcodes.Error, Description: "load: context deadline exceeded"}, "DeadlineExceeded"},
		"canceled": {context.Canceled, sdktrace.Status{Code: otelcodes.Error, Description: "context canceled"}, "Canceled"},
		"grpc":     {fmt.Errorf("settle: %w", status.Error(codes.Aborted, "fenced")), sdktrace.Status{Code: otelcodes.Error, Description: "settle: rpc error: code = Aborted desc = fenced"}, "Aborted"},
		"long":     {errors.New(strings.Repeat("é", 400)), sdktrace.Status{Code: otelcodes.Error, Description: strings.Repeat("é", 128)}, "_OTHER"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tracer, rec := recorder(t)
			_, span := tracer.Start(t.Context(), obs.SpanSettle)
			obs.End(span, tc.err)
			got := rec.Ended()[0]
			if diff := cmp.Diff(tc.status, got.Status()); diff != "" {
				t.Error(diff)
			}
			kind := ""
			for _, a := range got.Attributes() {
				if a.Key == obs.KeyErrorType {
					kind = a.Value.AsString()
				}
			}
			if kind != tc.kind {
				t.Errorf("error.type %q, want %q", kind, tc.kind)
			}
		})
	}
}

func TestFenceVerdict(t *testing.T) {
	t.Parallel()
	tracer, rec := recorder(t)
	ctx, span := tracer.Start(t.Context(), obs.SpanCommitResult)
	obs.FenceVerdict(span, "STALE_GENERATION")
	obs.FenceVerdictIn(ctx, obs.FenceHeld)
	span.End()
	var got []map[string]any
	for _, e := range rec.Ended()[0].Events() {
		m := map[string]any{"name": e.Name}
		for _, a := range e.Attributes {
			m[string(a.Key)] = a.Value.AsInterface()
		}
		got = append(got, m)
	}
	want := []map[string]any{
		{"name": "fence verdict", "fenceline.fence.reason": "STALE_GENERATION", "fenceline.fence.held": false},
		{"name": "fence verdict", "fenceline.fence.reason": "HELD", "fenceline.fence.held": true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The keys are a contract: dashboards, the trace tree's test and the demo read them.
func TestKeys(t *testing.T) {
	t.Parallel()
	got := attribute.NewSet(
		obs.Tenant("t"), obs.DeliveryID("d"), obs.TargetID("x"), obs.Generation(3), obs.Lifecycle(1), obs.Epoch(2),
		obs.RunID("r"), obs.AttemptID("a"), obs.IntentKey("i"), obs.ClaimID("c"),
	)
	want := map[attribute.Key]string{
		"fenceline.tenant": "t", "fenceline.delivery.id": "d", "fenceline.target.id": "x", "fenceline.generation": "3",
		"fenceline.lifecycle": "1", "fenceline.epoch": "2", "fenceline.run.id": "r", "fenceline.attempt.id": "a",
		"fenceline.intent.key": "i", "fenceline.claim.id": "c",
	}
	for key, value := range want {
		if v, ok := got.Value(key); !ok || v.String() != value {
			t.Errorf("%s = %q, want %q", key, v.String(), value)
		}
	}
}
