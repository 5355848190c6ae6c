package e2e

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// raw passes messages on as they are.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = raw{}

// call is one unary call that goes through a proxy: send does it and returns the receiver's answer.
type call func(ctx context.Context, send func() ([]byte, error)) ([]byte, error)

// proxy stands before one service, at an address that stays while the service dies and comes back. What
// goes wrong between two services goes wrong here.
type proxy struct {
	addr  string
	creds credentials.TransportCredentials // to the service
	relay *relay                           // where the services go past this proxy; nil: they don't

	mu      sync.Mutex
	backend *grpc.ClientConn
	faults  map[string]call // by full method
	calls   map[string]int
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	var lc net.ListenConfig
	lis, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: lis.Addr().String(), creds: insecure.NewCredentials(), faults: map[string]call{}, calls: map[string]int{}}
	// As often as the services' own servers let clients ask whether they are there.
	pings := keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}
	srv := grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(p.serve), grpc.KeepaliveEnforcementPolicy(pings))
	go func() { _ = srv.Serve(lis) }()
	t.Cleanup(srv.Stop)
	return p
}

// to names where the service listens now; empty while it is away.
func (p *proxy) to(t *testing.T, addr string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.backend != nil {
		_ = p.backend.Close()
		p.backend = nil
	}
	if p.relay != nil {
		p.relay.to(addr)
	}
	if addr == "" {
		return
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(p.creds))
	if err != nil {
		t.Fatal(err)
	}
	p.backend = conn
}

// fault makes calls of a method go through fn from now on; nil ends it.
func (p *proxy) fault(method string, fn call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if fn == nil {
		delete(p.faults, method)
		return
	}
	p.faults[method] = fn
}

// clear ends every fault.
func (p *proxy) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.faults)
}

func (p *proxy) count(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[method]
}

func (p *proxy) serve(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var req []byte
	if err := stream.RecvMsg(&req); err != nil {
		return err
	}
	p.mu.Lock()
	backend, fault := p.backend, p.faults[method]
	p.calls[method]++
	p.mu.Unlock()
	if backend == nil {
		return status.Error(codes.Unavailable, "the service is away")
	}
	in, _ := metadata.FromIncomingContext(stream.Context())
	ctx := metadata.NewOutgoingContext(stream.Context(), in)
	send := func() ([]byte, error) {
		var resp []byte
		// What was sent arrives, also where its sender has left.
		err := backend.Invoke(context.WithoutCancel(ctx), method, &req, &resp, grpc.ForceCodecV2(raw{}))
		return resp, err
	}
	if fault == nil {
		fault = func(_ context.Context, send func() ([]byte, error)) ([]byte, error) { return send() }
	}
	resp, err := fault(ctx, send)
	if err != nil {
		return err
	}
	return stream.SendMsg(&resp)
}

// loseAnswers does the first n calls and loses their answers.
func loseAnswers(n int) call {
	var mu sync.Mutex
	return func(_ context.Context, send func() ([]byte, error)) ([]byte, error) {
		resp, err := send()
		mu.Lock()
		defer mu.Unlock()
		if n > 0 && err == nil {
			n--
			return nil, status.Error(codes.Unavailable, "the answer was lost")
		}
		return resp, err
	}
}

// gate holds the first call of a method until it is opened.
type gate struct {
	reached chan struct{}
	open    chan struct{}
	once    sync.Once
	opened  sync.Once
}

func newGate() *gate { return &gate{reached: make(chan struct{}), open: make(chan struct{})} }

// before holds calls before they are done.
func (g *gate) before(ctx context.Context, send func() ([]byte, error)) ([]byte, error) {
	g.once.Do(func() { close(g.reached) })
	select {
	case <-g.open:
		return send()
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// after does calls and holds their answers.
func (g *gate) after(ctx context.Context, send func() ([]byte, error)) ([]byte, error) {
	resp, err := send()
	g.once.Do(func() { close(g.reached) })
	select {
	case <-g.open:
		return resp, err
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// late holds calls before they are done, and does them even where their caller has left meanwhile.
func (g *gate) late(ctx context.Context, send func() ([]byte, error)) ([]byte, error) {
	g.once.Do(func() { close(g.reached) })
	<-g.open
	return send()
}

func (g *gate) release() { g.opened.Do(func() { close(g.open) }) }

// afterSend does the first call and never answers it: its caller will be killed.
func afterSend(sent chan struct{}) call {
	var once sync.Once
	return func(ctx context.Context, send func() ([]byte, error)) ([]byte, error) {
		first := false
		once.Do(func() { first = true })
		resp, err := send()
		if !first {
			return resp, err
		}
		close(sent)
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// loseFirstFull loses the first answer that is not empty.
func loseFirstFull(lost *bool) call {
	var mu sync.Mutex
	return func(_ context.Context, send func() ([]byte, error)) ([]byte, error) {
		resp, err := send()
		mu.Lock()
		defer mu.Unlock()
		if err == nil && len(resp) > 0 && !*lost {
			*lost = true
			return nil, status.Error(codes.Unavailable, "the answer was lost")
		}
		return resp, err
	}
}
