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

// errBody is answered with 400, to a sender that is mostly gone: its body broke off or came too slowly.
var errBody = errors.New("the body could not be read to its end")

const (
	// free is what each request may hold without asking, in bytes: most deliveries are smaller.
	free = 64 << 10
	// begin is what a request holds before it has sent anything.
	begin = 4 << 10
	// growth is how much room a body gets for what it has sent.
	growth = 4
)

// memory bounds the bytes of bodies that are held at once, over all requests. A declared length reserves
// nothing: a slow sender holds at most growth times what it has sent.
type memory struct {
	budget *semaphore.Weighted
	limit  int64 // of one body, in bytes
}

// read returns the whole body, and what gives its memory back.
func (m memory) read(ctx context.Context, body io.Reader, declared int64) (data []byte, release func(), err error) {
	var held int64
	release = func() { m.budget.Release(held) }
	none := func() {}
	if declared > m.limit {
		return nil, none, errTooLarge
	}
	buf := make([]byte, 0, min(begin, m.limit+1))
	for {
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > m.limit:
			release()
			return nil, none, errTooLarge
		case errors.Is(err, io.EOF):
			return buf, release, nil
		case err != nil:
			release()
			return nil, none, unread(err)
		case len(buf) < cap(buf):
			continue
		}
		// One byte more than declared, so that the end is found without growing again.
		size := min(growth*int64(cap(buf)), m.limit+1)
		if declared >= int64(cap(buf)) {
			size = min(size, declared+1)
		}
		if err := ctx.Err(); err != nil {
			release()
			return nil, none, unread(err)
		}
		if size > free && !m.budget.TryAcquire(size-held) {
			release()
			return nil, none, errBusy
		}
		if size > free {
			held = size
		}
		grown := make([]byte, len(buf), size)
		copy(grown, buf)
		buf = grown
	}
}

func unread(err error) error {
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return errTooLarge
	}
	return fmt.Errorf("%w: %w", errBody, err)
}
