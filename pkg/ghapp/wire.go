package ghapp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

var (
	errRedirect = errors.New("redirect refused")
	errTooLarge = errors.New("answer too large")
)

// scope names the meter.
const scope = "fenceline/ghapp"

// errorBody bounds the body of an answer that failed: its message is all that is wanted.
const errorBody = 64 << 10

// sentKey carries an *atomic.Bool that says whether a request can have reached GitHub.
type sentKey struct{}

// wire is what all clients of an App share: the connections, the one host they may speak to, and
// what GitHub last said about limits.
type wire struct {
	base    *url.URL
	maxBody int64
	next    http.RoundTripper
	traces  bool // next tells when it has a connection
	limits  *limits

	revalidated metric.Int64Counter
}

func newWire(base *url.URL, maxBody int64, deps Deps) (*wire, error) {
	var tracer trace.TracerProvider = tracenoop.NewTracerProvider()
	if deps.Tracer != nil {
		tracer = deps.Tracer
	}
	var meter metric.MeterProvider = metricnoop.NewMeterProvider()
	if deps.Meter != nil {
		meter = deps.Meter
	}
	revalidated, err := meter.Meter(scope).Int64Counter("fenceline.github.revalidations",
		metric.WithDescription("Reads of what was read before: unchanged ones cost no quota"))
	if err != nil {
		return nil, fmt.Errorf("revalidations counter: %w", err)
	}
	limits, err := newLimits(meter.Meter(scope))
	if err != nil {
		return nil, err
	}
	_, traces := deps.Transport.(*http.Transport)
	return &wire{
		base: base, maxBody: maxBody, traces: traces, limits: limits, revalidated: revalidated,
		next: otelhttp.NewTransport(deps.Transport,
			otelhttp.WithTracerProvider(tracer), otelhttp.WithMeterProvider(meter),
			// Our trace ids are nothing to GitHub, so no header carries them there.
			otelhttp.WithPropagators(propagation.NewCompositeTextMapPropagator()),
			otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return "github " + r.Method })),
	}, nil
}

// of returns the transport of one installation, on the shared connections.
func (w *wire) of(installation int64) http.RoundTripper {
	return &leg{wire: w, installation: installation}
}

type leg struct {
	*wire
	installation int64
}

// RoundTrip is the last thing that our code does with a request, so the wall stands here: a
// request that carries a credential leaves for the configured host or not at all.
func (l *leg) RoundTrip(req *http.Request) (*http.Response, error) {
	if !sameHost(req.URL, l.base) {
		closeBody(req)
		return nil, fmt.Errorf("%w: %s is not the configured host", errRedirect, req.URL.Host)
	}
	resp, err := l.next.RoundTrip(l.marked(req))
	if err != nil {
		return nil, err
	}
	if q, ok := quotaOf(resp.Header); ok {
		l.limits.heard(l.installation, q, time.Now())
	}
	withhold(resp.Header)
	if resp.StatusCode >= 400 {
		resp.Body = buffered(resp.Body)
	} else {
		resp.Body = &bounded{ReadCloser: resp.Body, left: l.maxBody}
	}
	return resp, nil
}

// buffered reads the body of a failure at once. Its status says what matters, so it is no matter
// if the rest is cut off.
func buffered(body io.ReadCloser) io.ReadCloser {
	head, _ := io.ReadAll(io.LimitReader(body, errorBody))
	_ = body.Close()
	return io.NopCloser(bytes.NewReader(head))
}

// marked arranges that the caller learns whether the request can have reached GitHub.
func (l *leg) marked(req *http.Request) *http.Request {
	sent, ok := req.Context().Value(sentKey{}).(*atomic.Bool)
	if !ok {
		return req
	}
	if !l.traces {
		sent.Store(true)
		return req
	}
	return req.WithContext(httptrace.WithClientTrace(req.Context(),
		&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}))
}

// checkRedirect follows what GitHub does after a rename, and nothing else. A redirected write may
// turn into a read that looks like success (a 301 makes a GET of a POST), and a credential must
// never travel to another host.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	if !reads(first.Method) {
		return fmt.Errorf("%w: of a %s", errRedirect, first.Method)
	}
	if !sameHost(req.URL, first.URL) {
		return fmt.Errorf("%w: to another host", errRedirect)
	}
	if len(via) >= 5 {
		return fmt.Errorf("%w: after %d", errRedirect, len(via))
	}
	return nil
}

func sameHost(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// bounded ends a body that is longer than its limit with an error.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return b.past()
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// past is at the limit: a body that ends exactly there is whole.
func (b *bounded) past() (int, error) {
	var one [1]byte
	for {
		n, err := b.ReadCloser.Read(one[:])
		if n > 0 {
			return 0, errTooLarge
		}
		if err != nil {
			return 0, err
		}
	}
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
