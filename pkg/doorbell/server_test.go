package doorbell

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fenceline-dev/fenceline/pkg/redistest"
)

// server is a Redis of this test alone, behind an address that outlives it.
type server struct {
	start    func() (addr string, stop func())
	listener net.Listener
	real     *redistest.Redis // nil: miniredis

	mu      sync.Mutex
	backend string
	stop    func()
}

// onEach runs a test against the embedded doorbell and against real Redis.
func onEach(t *testing.T, test func(t *testing.T, s *server)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		test(t, startMini(t))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, startReal(t))
	})
}

func startMini(t *testing.T) *server {
	s := &server{}
	s.start = func() (string, func()) {
		m := miniredis.RunT(t)
		return m.Addr(), m.Close
	}
	return s.serve(t)
}

func startReal(t *testing.T) *server {
	s := &server{}
	s.start = func() (string, func()) {
		r := redistest.Server(t)
		if !r.Real() {
			t.Skip("redis-server is not installed")
		}
		s.real = r
		return r.Addr(), func() { _ = r.Stop() }
	}
	return s.serve(t)
}

func (s *server) serve(t *testing.T) *server {
	t.Helper()
	var err error
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.backend, s.stop = s.start()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			front, err := s.listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.join(front) })
		}
	})
	t.Cleanup(func() {
		_ = s.listener.Close()
		s.stop()
		wg.Wait()
	})
	return s
}

// join copies between a client and the server of the moment until either ends.
func (s *server) join(front net.Conn) {
	defer func() { _ = front.Close() }()
	s.mu.Lock()
	backend := s.backend
	s.mu.Unlock()
	back, err := net.Dial("tcp", backend)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(back, front)
		_ = back.Close()
	}()
	_, _ = io.Copy(front, back)
}

func (s *server) addr() string { return s.listener.Addr().String() }

// restart replaces the server by an empty one; every connection ends.
func (s *server) restart() {
	s.stop()
	backend, stop := s.start()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backend, s.stop = backend, stop
}

// hang stops the process: connections stay, nothing answers.
func (s *server) hang(t *testing.T) {
	t.Helper()
	if err := s.real.Pause(); err != nil {
		t.Fatal(err)
	}
}

func (s *server) resume(t *testing.T) {
	t.Helper()
	if err := s.real.Resume(); err != nil {
		t.Fatal(err)
	}
}

// client is a plain client, beside the code under test.
func (s *server) client(t *testing.T) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: s.addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// waitFor polls a condition that has no event to wait on.
func waitFor(t *testing.T, what string, done func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
