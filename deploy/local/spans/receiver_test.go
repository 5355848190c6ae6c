package spans

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

// The exporter is the services' own, so that what it sends is what is read.
func TestReceiverKeepsWhatServicesExport(t *testing.T) {
	t.Parallel()
	r, err := Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var log bytes.Buffer
	tel, flush, err := obs.Start(t.Context(), obs.Config{OTLPEndpoint: r.Endpoint(), SpanDelay: 10 * time.Millisecond}, "ledger", &log)
	if err != nil {
		t.Fatal(err)
	}
	tracer := tel.Tracer.Tracer("test")
	ctx, root := tracer.Start(t.Context(), "webhook", trace.WithSpanKind(trace.SpanKindServer), trace.WithLinks(
		obs.Link("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")))
	_, child := tracer.Start(ctx, "reserve", trace.WithAttributes(attribute.Int64("n", 7), attribute.StringSlice("list", []string{"a"})))
	obs.FenceVerdict(child, "CLAIM_LOST")
	obs.End(child, context.DeadlineExceeded)
	root.End()

	id := root.SpanContext().TraceID().String()
	wait, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got, err := r.Wait(wait, id, func(s []Span) bool { return len(s) == 2 })
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Name != "webhook" || got[0].Kind != "server" || got[0].Service != "ledger" || got[0].ParentID != "" || len(got[0].Links) != 1 {
		t.Errorf("root: %+v", got[0])
	}
	c := got[1]
	if c.ParentID != got[0].SpanID || c.Error == "" || c.Duration() < 0 || c.Attributes["n"] != int64(7) {
		t.Errorf("child: %+v", c)
	}
	if diff := cmp.Diff([]any{"a"}, c.Attributes["list"]); diff != "" {
		t.Error(diff)
	}
	if len(c.Events) != 1 || c.Events[0].Attributes[obs.KeyFenceReason] != "CLAIM_LOST" {
		t.Errorf("events: %+v", c.Events)
	}
	if err := flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.Traces()[id]; n != 2 || r.Dropped() != 0 {
		t.Errorf("%d spans kept, %d dropped, want 2 and 0", n, r.Dropped())
	}
}
