package obs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/fenceline-dev/fenceline/pkg/obs"
)

// receiver is an OTLP endpoint that keeps what it gets.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	mu   sync.Mutex
	got  map[string][]*tracev1.Span // by service.name
	addr string
}

func (r *receiver) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rs := range req.GetResourceSpans() {
		service := ""
		for _, a := range rs.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, ss := range rs.GetScopeSpans() {
			r.got[service] = append(r.got[service], ss.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{got: map[string][]*tracev1.Span{}, addr: lis.Addr().String()}
	srv := grpc.NewServer()
	collector.RegisterTraceServiceServer(srv, r)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(lis) }()
	t.Cleanup(func() { srv.Stop(); <-done })
	return r
}

func TestFiveServicesInOneProcess(t *testing.T) {
	t.Parallel()
	r := startReceiver(t)
	services := []string{"ingest", "scheduler", "reviewer", "ledger", "publisher"}
	var logs [5]bytes.Buffer
	var tels [5]*obs.Telemetry
	var stops [5]func(context.Context) error
	for i, name := range services {
		var err error
		tels[i], stops[i], err = obs.Start(t.Context(), obs.Config{OTLPEndpoint: "http://" + r.addr, SpanDelay: time.Hour}, name, &logs[i])
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range services {
		ctx, span := tels[i].Tracer.Tracer("t").Start(t.Context(), obs.SpanEngine, trace.WithAttributes(obs.RunID(strings.Repeat("r", 600))))
		tels[i].Log.InfoContext(ctx, "working")
		span.End()
		counter, err := tels[i].Meter.Meter("t").Int64Counter("only." + name)
		if err != nil {
			t.Fatal(err)
		}
		counter.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", "ok"), attribute.String("server.address", "10.0.0.1"), attribute.Int("server.port", 40000+i)))
	}
	for i, name := range services {
		text := scrape(t, tels[i])
		for j, other := range services {
			if has := strings.Contains(text, "only_"+other+"_total"); has != (i == j) {
				t.Errorf("%s's metrics have %s's counter: %v", name, other, has)
			}
		}
		if strings.Contains(text, "server_port") || strings.Contains(text, "server_address") {
			t.Error("a peer's address became a metric label")
		}
		if !strings.Contains(text, "go_goroutines") {
			t.Error("no Go runtime metrics")
		}
		if err := stops[i](t.Context()); err != nil {
			t.Errorf("shutdown of %s: %v", name, err)
		}
		if !bytes.Contains(logs[i].Bytes(), fmt.Appendf(nil, `"service":%q`, name)) || !bytes.Contains(logs[i].Bytes(), []byte(`"trace_id"`)) {
			t.Errorf("log of %s: %s", name, logs[i].Bytes())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range services {
		spans := r.got[name]
		if len(spans) != 1 || spans[0].GetName() != obs.SpanEngine {
			t.Fatalf("%s: spans %v: shutdown has to flush", name, spans)
		}
		if n := len(spans[0].GetAttributes()[0].GetValue().GetStringValue()); n != 512 {
			t.Errorf("an attribute of %d bytes left the process", n)
		}
	}
}

func scrape(t *testing.T, tel *obs.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Prometheus.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("metrics: %d", w.Code)
	}
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A receiver that is away costs spans and one log line, not the service's stop.
func TestReceiverAway(t *testing.T) {
	t.Parallel()
	lis, err := net.Listen("tcp", "127.0.0.1:0") // accepts nothing
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	log := make(lines, 16)
	tel, stop, err := obs.Start(t.Context(), obs.Config{OTLPEndpoint: lis.Addr().String(), SpanDelay: time.Hour}, "ledger", log)
	if err != nil {
		t.Fatal(err)
	}
	_, span := tel.Tracer.Tracer("t").Start(t.Context(), obs.SpanSettle)
	span.End()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_ = stop(ctx) // whether the SDK calls an exceeded deadline an error is its own matter
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("shutdown took %s", took)
	}
	var line struct{ Level, Msg string }
	select {
	case text := <-log:
		if err := json.Unmarshal(text, &line); err != nil || line.Level != "WARN" {
			t.Errorf("log %q: %v", text, err)
		}
	case <-time.After(15 * time.Second):
		t.Error("lost spans were not logged")
	}
}

// lines hands over each line that is written.
type lines chan []byte

func (l lines) Write(p []byte) (int, error) {
	l <- bytes.Clone(p)
	return len(p), nil
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"":                             "",
		"127.0.0.1:4317":               "",
		"http://127.0.0.1:4317":        "",
		"http://localhost:4317/":       "",
		"http://[::1]:4317":            "",
		"https://otel.example.com:443": "",
		"otel.example.com:443":         "",
		"http://otel.example.com:4317": "plain text to otel.example.com",
		"http://10.0.0.1:4317":         "plain text to 10.0.0.1",
		"ftp://127.0.0.1:4317":         "neither http nor https",
		"127.0.0.1":                    "host and port are required",
		"http://u:p@127.0.0.1:4317":    "only scheme, host and port",
		"http://127.0.0.1:4317/v1/x":   "only scheme, host and port",
		"http://127.0.0.1:43 17":       "not a URL",
	} {
		err := obs.Config{OTLPEndpoint: endpoint}.Validate()
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", endpoint, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "OTEL_EXPORTER_OTLP_ENDPOINT: ")):
			t.Errorf("%q: got %v, want %q", endpoint, err, want)
		}
	}
	err := obs.Config{OTLPEndpoint: "x", SpanDelay: -1}.Validate()
	if err == nil || !strings.Contains(err.Error(), "TRACE_EXPORT_DELAY") || !strings.Contains(err.Error(), "OTLP_ENDPOINT") {
		t.Errorf("not every problem at once: %v", err)
	}
	if _, _, err := obs.Start(t.Context(), obs.Config{OTLPEndpoint: "x"}, "ledger", io.Discard); err == nil {
		t.Error("Start took a wrong endpoint")
	}
}
