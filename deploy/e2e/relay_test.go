package e2e

import (
	"io"
	"net"
	"sync"
	"testing"
)

// relay passes connections on as they are, so that what is said on them stays between the two ends. Its
// address stays while the service behind it dies and comes back.
type relay struct {
	addr string

	mu      sync.Mutex
	backend string
	open    map[net.Conn]bool
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{addr: lis.Addr().String(), open: map[net.Conn]bool{}}
	go func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			go r.pass(conn)
		}
	}()
	t.Cleanup(func() { _ = lis.Close(); r.to("") })
	return r
}

// to names where the service listens now; empty while it is away. Connections to where it was end.
func (r *relay) to(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.backend = addr
	for conn := range r.open {
		_ = conn.Close()
	}
	clear(r.open)
}

func (r *relay) pass(in net.Conn) {
	defer in.Close()
	r.mu.Lock()
	backend := r.backend
	r.mu.Unlock()
	if backend == "" {
		return
	}
	out, err := net.Dial("tcp", backend)
	if err != nil {
		return
	}
	defer out.Close()
	r.mu.Lock()
	r.open[in], r.open[out] = true, true
	r.mu.Unlock()
	go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
	_, _ = io.Copy(in, out)
	r.mu.Lock()
	delete(r.open, in)
	delete(r.open, out)
	r.mu.Unlock()
}
