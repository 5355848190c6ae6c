package rpc_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fenceline-dev/fenceline/pkg/certs"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

// wire speaks HTTP/2 by hand, as no library would.
type wire struct {
	*testing.T
	conn   net.Conn
	framer *http2.Framer
	next   uint32
}

func dialWire(t *testing.T, conn net.Conn, err error) *wire {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(2 * patience))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	w := &wire{T: t, conn: conn, framer: http2.NewFramer(conn, conn), next: 1}
	w.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := w.framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return w
}

// plainWire connects to a server in plain text.
func plainWire(t *testing.T, h *harness) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", h.srv.Addr())
	return dialWire(t, conn, err)
}

// call begins a call with further headers and returns its stream.
func (w *wire) call(path string, more ...hpack.HeaderField) (uint32, error) {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, f := range append([]hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: path},
		{Name: ":authority", Value: "x"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	}, more...) {
		if err := enc.WriteField(f); err != nil {
			w.Fatal(err)
		}
	}
	stream, rest := w.next, block.Bytes()
	w.next += 2
	first := rest[:min(len(rest), 16<<10)]
	rest = rest[len(first):]
	err := w.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndHeaders: len(rest) == 0})
	for err == nil && len(rest) > 0 {
		part := rest[:min(len(rest), 16<<10)]
		rest = rest[len(part):]
		err = w.framer.WriteContinuation(stream, len(rest) == 0, part)
	}
	return stream, err
}

// send ends a stream with an empty message.
func (w *wire) send(stream uint32) {
	if err := w.framer.WriteData(stream, true, make([]byte, 5)); err != nil {
		w.Fatal(err)
	}
}

// answer reads until the stream ends: its trailers, or nil where it was reset or the connection ended.
func (w *wire) answer(stream uint32) map[string]string {
	for {
		frame, err := w.framer.ReadFrame()
		if err != nil {
			return nil
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = w.framer.WriteSettingsAck()
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == stream {
				return nil
			}
		case *http2.MetaHeadersFrame:
			if f.StreamID == stream && f.StreamEnded() {
				fields := map[string]string{}
				for _, h := range f.Fields {
					fields[h.Name] = h.Value
				}
				return fields
			}
		}
	}
}

// A path that is not /service/method reaches nothing, whoever calls and whatever the library makes of it.
func TestMalformedPathsAreRefused(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	h := startMutual(t, i, rpc.ServerConfig{}, table)
	var called atomic.Int64
	h.svc.stats = func(context.Context) error { called.Add(1); return nil }
	files := i.issue(t, certs.Service("ingest"), time.Hour)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}} //nolint:gosec // the server is what is tested
	conn, err := tls.Dial("tcp", h.srv.Addr(), cfg)
	w := dialWire(t, conn, err)
	for path, want := range map[string]string{
		getStats:                          "0",
		strings.TrimPrefix(getStats, "/"): "7",
		"/":                               "7",
		"//":                              "7",
		"//GetStats":                      "7",
		"/GetStats":                       "7",
		"/" + getStats:                    "7",
		getStats + "/":                    "7",
		getStats + "/x":                   "7",
		"/x" + getStats:                   "7",
		"*":                               "7",
		strings.ToUpper(getStats):         "7",
		getStats + "?x":                   "7",
		"/fenceline.outbox.v1.OutboxService/%47etStats":    "7",
		"/x/../fenceline.outbox.v1.OutboxService/GetStats": "7",
	} {
		stream, err := w.call(path)
		if err != nil {
			t.Fatal(err)
		}
		if want == "0" {
			w.send(stream)
		}
		got := w.answer(stream)
		details, _ := base64.RawStdEncoding.DecodeString(strings.TrimRight(got["grpc-status-details-bin"], "="))
		if got["grpc-status"] != want || want != "0" && !bytes.Contains(details, []byte(rpc.ReasonMethodNotAllowed)) {
			t.Errorf("%q: %v", path, got)
		}
	}
	if called.Load() != 1 {
		t.Errorf("the handler ran %d times", called.Load())
	}
}

// Streams that are opened and reset at once, faster than handlers end, take no more than the bound of one
// connection, and leave other connections alone.
func TestRapidResetIsBounded(t *testing.T) {
	t.Parallel()
	const limit, resets = 16, 4000
	h := start(t, rpc.ServerConfig{MaxStreams: limit})
	var running, most atomic.Int64
	release := make(chan struct{})
	h.svc.stats = func(ctx context.Context) error {
		if metadata.ValueFromIncomingContext(ctx, "good") != nil {
			return nil
		}
		now := running.Add(1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		defer running.Add(-1)
		<-release // as one that doesn't look at its context
		return nil
	}
	w := plainWire(t, h)
	go func() { _, _ = io.Copy(io.Discard, w.conn) }()
	flood := make(chan struct{})
	go func() {
		defer close(flood)
		for range resets {
			stream, err := w.call(getStats)
			if err != nil {
				return // the server has had enough of this connection
			}
			if w.framer.WriteData(stream, true, make([]byte, 5)) != nil || w.framer.WriteRSTStream(stream, http2.ErrCodeCancel) != nil {
				return
			}
		}
	}()
	client := outboxv1.NewOutboxServiceClient(h.raw(t))
	until(t, "the flood", func() bool { return running.Load() == limit })
	for range 20 {
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "good", "1"), patience)
		if _, err := client.GetStats(ctx, &outboxv1.GetStatsRequest{}); err != nil {
			t.Errorf("a good call beside the flood: %v", err)
		}
		cancel()
	}
	close(release)
	within(t, "the end of the flood", flood)
	if most.Load() > limit {
		t.Errorf("%d handlers ran at once, the bound is %d", most.Load(), limit)
	}
}

// Headers beyond the bound end the call before a handler sees it, without being kept.
func TestHugeHeadersAreRefused(t *testing.T) {
	t.Parallel()
	h := start(t, rpc.ServerConfig{})
	var called atomic.Int64
	h.svc.stats = func(context.Context) error { called.Add(1); return nil }
	for _, size := range []int{15 << 10, 17 << 10, 1 << 20, 16 << 20} {
		w := plainWire(t, h)
		stream, err := w.call(getStats, hpack.HeaderField{Name: "x-filler", Value: strings.Repeat("~", size)})
		if err != nil && !errors.Is(err, io.ErrShortWrite) {
			continue // the server hung up on it
		}
		if size < 16<<10 {
			w.send(stream)
		}
		got := w.answer(stream)
		if small := size < 16<<10; (got["grpc-status"] == "0") != small {
			t.Errorf("%d bytes of headers: %v", size, got)
		}
	}
	if called.Load() != 1 {
		t.Errorf("the handler ran %d times, want once", called.Load())
	}
	// The house's own client doesn't even send them.
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-filler", strings.Repeat("~", 17<<10))
	if _, err := outboxv1.NewOutboxServiceClient(h.dial(t)).GetStats(ctx, &outboxv1.GetStatsRequest{}); status.Code(err) != codes.Internal {
		t.Errorf("the client sent it: %v", err)
	}
}

// One connection holds so many calls at once; the next waits for its turn, and its own deadline.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	h := start(t, rpc.ServerConfig{MaxStreams: 2})
	entered, release := make(chan struct{}, 3), make(chan struct{})
	h.svc.stats = func(context.Context) error { entered <- struct{}{}; <-release; return nil }
	conn := h.raw(t)
	answers := make(chan error, 2)
	for range 2 {
		go func() { answers <- callStats(t.Context(), conn, time.Minute) }()
	}
	within(t, "the first call", entered)
	within(t, "the second call", entered)
	if err := callStats(t.Context(), conn, 100*time.Millisecond); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a third call: %v", err)
	}
	if err := callHealthyElsewhere(t, h, release); err != nil {
		t.Errorf("another connection: %v", err)
	}
	for range 2 {
		if err := within(t, "an answer", answers); err != nil {
			t.Error(err)
		}
	}
}

func callStats(ctx context.Context, conn *grpc.ClientConn, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := outboxv1.NewOutboxServiceClient(conn).GetStats(ctx, &outboxv1.GetStatsRequest{})
	return err
}

// callHealthyElsewhere makes a call on another connection, then lets all of them go.
func callHealthyElsewhere(t *testing.T, h *harness, release chan struct{}) error {
	t.Helper()
	_, err := outboxv1.NewOutboxServiceClient(h.raw(t)).ListMessages(t.Context(), &outboxv1.ListMessagesRequest{})
	close(release)
	return err
}
