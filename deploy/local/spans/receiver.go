// Package spans receives spans over OTLP and keeps them in memory, by trace.
package spans

import (
	"context"
	"fmt"
	"net"
	"sync"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// maxKept bounds the spans that are kept; what comes later is counted and dropped.
const maxKept = 200_000

// maxMessage bounds one export, in bytes: an exporter's batch of 512 spans with 512 bytes an attribute.
const maxMessage = 16 << 20

// Receiver is an OTLP gRPC endpoint on loopback.
type Receiver struct {
	collectorv1.UnimplementedTraceServiceServer
	addr string
	grpc *grpc.Server
	done chan struct{}

	mu      sync.Mutex
	traces  map[string][]Span
	kept    int
	dropped int
	more    chan struct{} // closed when spans came
}

// Listen starts a receiver on a port that is free.
func Listen(ctx context.Context) (*Receiver, error) {
	var lc net.ListenConfig
	lis, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for spans: %w", err)
	}
	r := &Receiver{
		addr: lis.Addr().String(), grpc: grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage)),
		done: make(chan struct{}), traces: map[string][]Span{}, more: make(chan struct{}),
	}
	collectorv1.RegisterTraceServiceServer(r.grpc, r)
	go func() {
		defer close(r.done)
		_ = r.grpc.Serve(lis) // ends by Close
	}()
	return r, nil
}

// Endpoint is what OTEL_EXPORTER_OTLP_ENDPOINT should say.
func (r *Receiver) Endpoint() string { return "http://" + r.addr }

// Close stops receiving. What was received stays.
func (r *Receiver) Close() error {
	r.grpc.Stop()
	<-r.done
	return nil
}

// Export is called by exporters.
func (r *Receiver) Export(_ context.Context, req *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	got := read(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range got {
		if r.kept == maxKept {
			r.dropped++
			continue
		}
		r.kept++
		r.traces[s.TraceID] = append(r.traces[s.TraceID], s)
	}
	close(r.more)
	r.more = make(chan struct{})
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// Trace returns the spans of a trace that came so far, by their start.
func (r *Receiver) Trace(id string) []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sorted(r.traces[id])
}

// Traces returns how many spans each trace has.
func (r *Receiver) Traces() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	sizes := map[string]int{}
	for id, spans := range r.traces {
		sizes[id] = len(spans)
	}
	return sizes
}

// Dropped is how many spans came after the receiver was full.
func (r *Receiver) Dropped() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// Wait returns the spans of a trace as soon as enough says yes to them, or with ctx's error what there is.
func (r *Receiver) Wait(ctx context.Context, id string, enough func([]Span) bool) ([]Span, error) {
	for {
		r.mu.Lock()
		got, more := sorted(r.traces[id]), r.more
		r.mu.Unlock()
		if enough(got) {
			return got, nil
		}
		select {
		case <-ctx.Done():
			return got, fmt.Errorf("wait for spans of trace %s: %w", id, ctx.Err())
		case <-more:
		}
	}
}
