package webhook

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// padded is a payload of exactly n bytes.
func padded(n int) string { return opened + strings.Repeat(" ", n-len(opened)) }

// counting counts what is read of an endless body.
type counting struct{ read atomic.Int64 }

func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	c.read.Add(int64(len(p)))
	return len(p), nil
}

// untouched fails when anything is read of it.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("a body that is declared too large was read")
	return 0, io.EOF
}

func TestBodySizes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{len(opened), 4<<10 - 1, 4 << 10, 4<<10 + 1, free - 1, free, free + 1, bound - 1, bound} {
		e, body := newEndpoint(t), padded(n)
		e.accepts(t, delivery(t, "pull_request", body))
		e.accepts(t, stream(delivery(t, "pull_request", body), strings.NewReader(body)))
		e.accepts(t, stream(delivery(t, "pull_request", body), iotestOneByte{strings.NewReader(body)}))
		for _, got := range e.kept.calls() {
			if got.Size != int64(n) {
				t.Errorf("a body of %d bytes was stored as %d", n, got.Size)
			}
		}
		assertReleased(t, e)
	}
	for _, n := range []int{bound + 1, bound + 2, 3 * bound} {
		e, body := newEndpoint(t), padded(n)
		e.refuses(t, delivery(t, "pull_request", body), http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE")
		e.refuses(t, stream(delivery(t, "pull_request", body), strings.NewReader(body)), http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE")
		assertReleased(t, e)
	}
}

// iotestOneByte gives a byte at a time until there are many.
type iotestOneByte struct{ io.Reader }

func (r iotestOneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 997)]) }

func TestFarTooLargeIsRefusedUnread(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	r := stream(delivery(t, "pull_request", opened), untouched{t})
	r.ContentLength = 1 << 40
	e.refuses(t, r, http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE")
}

// TestEndlessBody: memory stays bounded, both by what the handler accounts for and by what the runtime
// allocated.
func TestEndlessBody(t *testing.T) {
	e := newEndpoint(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	endless := &counting{}
	e.refuses(t, stream(delivery(t, "pull_request", opened), endless), http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE")
	runtime.ReadMemStats(&after)
	if read := endless.read.Load(); read > bound+1 {
		t.Errorf("%d bytes were read of an endless body, want at most %d", read, bound+1)
	}
	if grew := after.TotalAlloc - before.TotalAlloc; grew > 4*bound {
		t.Errorf("%d bytes were allocated for a bound of %d", grew, bound)
	}
	assertReleased(t, e)
}

// TestSlowSenderHoldsWhatItSent: a declared length reserves nothing.
func TestSlowSenderHoldsWhatItSent(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	var sent int
	var asked []int
	body := padded(bound)
	r := stream(delivery(t, "pull_request", body), readerFunc(func(p []byte) (int, error) {
		asked = append(asked, len(p))
		if room := sent + len(p); room > max(4<<10, 4*sent) {
			t.Errorf("room for %d bytes after %d were sent", room, sent)
		}
		if held := 2*bound - available(e); held > max(0, 4*int64(sent)) {
			t.Errorf("%d bytes accounted for after %d were sent", held, sent)
		}
		n := copy(p, body[sent:min(sent+701, len(body))])
		sent += n
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}))
	r.ContentLength = int64(len(body))
	e.accepts(t, r)
	if len(asked) == 0 || asked[0] > 4<<10 {
		t.Errorf("the first read had room for %v bytes", asked)
	}
	assertReleased(t, e)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestLargeBodiesShareABudget: when it is used up by slow senders, large bodies are told to come later and
// deliveries of the usual size still pass.
func TestLargeBodiesShareABudget(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, func(c *Config) { c.Held = bound + 1 })
	body := padded(bound)
	slow, feed := io.Pipe()
	done := make(chan answered, 1)
	go func() { done <- e.send(t, stream(delivery(t, "pull_request", body), slow)) }()
	// A pipe's write ends when all of it was read: then the handler holds room for it.
	if _, err := io.WriteString(feed, body[:bound-10]); err != nil {
		t.Fatal(err)
	}
	a := e.refuses(t, delivery(t, "pull_request", body), http.StatusServiceUnavailable, "BUSY")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	e.accepts(t, delivery(t, "pull_request", opened))
	e.accepts(t, delivery(t, "pull_request", padded(free-1)))
	if _, err := io.WriteString(feed, body[bound-10:]); err != nil {
		t.Fatal(err)
	}
	_ = feed.Close()
	if a := <-done; a.code != http.StatusOK {
		t.Errorf("the slow one was answered %d %+v", a.code, a.reply)
	}
	assertReleased(t, e)
	e.accepts(t, delivery(t, "pull_request", body))
}

func TestSenderGoesAway(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	for _, err := range []error{io.ErrUnexpectedEOF, errors.New("connection reset by peer")} {
		body := io.MultiReader(strings.NewReader(padded(free+1)), readerFunc(func([]byte) (int, error) { return 0, err }))
		e.refuses(t, stream(delivery(t, "pull_request", opened), body), http.StatusBadRequest, "BODY_UNREADABLE")
	}
	if bytes.Contains(e.logs.Bytes(), []byte(`"ERROR"`)) {
		t.Errorf("anybody can write errors into the log:\n%s", e.logs)
	}
	assertReleased(t, e)
}

// available is how much of the budget is free.
func available(e endpoint) int64 {
	var n int64
	for step := int64(bound); step > 0; step /= 2 {
		for e.bodies.budget.TryAcquire(step) {
			n += step
		}
	}
	e.bodies.budget.Release(n)
	return n
}

func assertReleased(t *testing.T, e endpoint) {
	t.Helper()
	all := max(e.cfg.Held, e.cfg.MaxBody+1)
	if n := available(e); n != all {
		t.Errorf("%d of %d bytes are free after all was answered", n, all)
	}
}

// TestServerBounds: a client that says nothing is let go; the timeouts are those of the real server.
func TestServerBounds(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	s, err := NewServer("127.0.0.1:0", e, e.log)
	if err != nil {
		t.Fatal(err)
	}
	defer s.lis.Close()
	h := s.http
	if h.ReadHeaderTimeout <= 0 || h.ReadHeaderTimeout > 10*time.Second || h.ReadTimeout <= 0 || h.ReadTimeout > time.Minute ||
		h.IdleTimeout <= 0 || h.MaxHeaderBytes <= 0 || h.MaxHeaderBytes > 64<<10 {
		t.Errorf("unbounded: %+v", h)
	}
	if h.WriteTimeout <= h.ReadTimeout {
		t.Errorf("a body that takes %s leaves no time to answer within %s", h.ReadTimeout, h.WriteTimeout)
	}
	if h.ErrorLog == nil {
		t.Error("the server logs past slog")
	}
}
