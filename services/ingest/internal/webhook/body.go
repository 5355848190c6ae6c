package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"
)

// errTooLarge is answered with 413.
var errTooLarge = errors.New("the body is larger than this endpoint accepts")

// errBusy is answered with 503: too many large bodies are held at this moment.
var errBusy = errors.New("too many large deliveries are being read, deliver again later")

// free is what each request may hold without asking: most deliveries are smaller.
const free = 64 << 10

// memory bounds the bytes of bodies that are held at once, over all requests. A slow sender holds only
// what it has sent, rounded up to twice that.
type memory struct {
	budget *semaphore.Weighted
	limit  int64 // of one body, in bytes
}

// read returns the whole body, and what gives its memory back.
func (m memory) read(ctx context.Context, body io.Reader, declared int64) (data []byte, release func(), err error) {
	var held int64
	release = func() { m.budget.Release(held) }
	if declared > m.limit {
		return nil, func() {}, errTooLarge
	}
	buf := make([]byte, 0, min(max(declared+1, 512), free))
	for {
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > m.limit:
			release()
			return nil, func() {}, errTooLarge
		case errors.Is(err, io.EOF):
			return buf, release, nil
		case err != nil:
			release()
			if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
				return nil, func() {}, errTooLarge
			}
			return nil, func() {}, fmt.Errorf("read body: %w", err)
		case len(buf) < cap(buf):
			continue
		}
		size := min(2*int64(cap(buf)), m.limit+1)
		if err := ctx.Err(); err != nil || !m.budget.TryAcquire(size-held) {
			release()
			return nil, func() {}, errBusy
		}
		held = size
		grown := make([]byte, len(buf), size)
		copy(grown, buf)
		buf = grown
	}
}
