package ghapp

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// timed bounds a call, from its token to the end of its body. http.Client.Timeout would do the
// same, but its timer runs on where a body is read and not closed, as go-github v66 leaves the
// body of every failure.
type timed struct {
	next  http.RoundTripper
	limit time.Duration
}

// RoundTrip implements http.RoundTripper.
func (t timed) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), t.limit)
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &ending{ReadCloser: resp.Body, end: sync.OnceFunc(cancel)}
	return resp, nil
}

// ending calls end when the body has ended, however it does.
type ending struct {
	io.ReadCloser
	end func()
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if err != nil {
		e.end()
	}
	return n, err
}

func (e *ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}
