package outbox

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// receiver is the service at the other end, without the network between.
type receiver struct {
	answer func(ctx context.Context, method, text string) error // nil: success

	mu   sync.Mutex
	got  []string // texts, in order of arrival
	seen chan string
}

func newReceiver(answer func(ctx context.Context, method, text string) error) *receiver {
	return &receiver{answer: answer, seen: make(chan string, 100_000)}
}

func (r *receiver) Invoke(ctx context.Context, method string, args, _ any, _ ...grpc.CallOption) error {
	var m wrapperspb.StringValue
	if err := proto.Unmarshal(args.([]byte), &m); err != nil {
		return err
	}
	r.mu.Lock()
	r.got = append(r.got, m.GetValue())
	r.mu.Unlock()
	var err error
	if r.answer != nil {
		err = r.answer(ctx, method, m.GetValue())
	}
	r.seen <- m.GetValue()
	return err
}

func (*receiver) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("the outbox makes unary calls only")
}

func (r *receiver) calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.got...)
}

// next waits for a call.
func (r *receiver) next(t *testing.T) string {
	t.Helper()
	select {
	case text := <-r.seen:
		return text
	case <-time.After(20 * time.Second):
		t.Fatal("no call came")
		return ""
	}
}

// ringer is a doorbell.
type ringer struct {
	err   error
	rings chan string
}

func (r *ringer) Ring(_ context.Context, stream, id string) error {
	r.rings <- stream + " " + id
	return r.err
}

// journal is a log that a test reads.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) count(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return bytes.Count(j.buf.Bytes(), []byte(text))
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(j, nil)) }

// rare polls so seldom that a test sees only what nudges and timers do.
func rare() Settings { return Settings{Poll: time.Hour, Watch: time.Hour} }

// quick fails fast.
func quick(s Settings) Settings {
	s.BackoffMin, s.BackoffMax, s.PauseMax = 20*time.Millisecond, 100*time.Millisecond, 50*time.Millisecond
	return s
}

// dispatcher builds one; every settle and void call goes to r.
func (e *env) dispatcher(r *receiver, s Settings, change func(*DispatcherConfig)) *Dispatcher {
	cfg := DispatcherConfig{
		Outbox: e.box, DB: e.db, Peers: map[string]grpc.ClientConnInterface{"ledger": r},
		Destinations: []string{settle, void}, Settings: s,
	}
	if change != nil {
		change(&cfg)
	}
	return NewDispatcher(cfg)
}

// run runs a dispatcher until the test ends or stop is called, which waits for it.
func (e *env) run(t *testing.T, d *Dispatcher) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
