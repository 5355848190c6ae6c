package pgtest

import (
	"context"
	"encoding/binary"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/pg"
)

// Dropper is a proxy in front of PostgreSQL that can lose the reply to a commit: the server has done the
// work and said so, the client sees only a closed connection and can't know. It stands between one pool
// and the server, follows the wire protocol (postgresql.org, "Message Flow") and knows no SQL of the tests.
//
// A commit is whatever makes work permanent: a COMMIT, or the Sync that ends an implicit transaction, as of
// a batch without BEGIN. A read outside of a transaction is one, too, and so are the queries that pg makes
// on a new connection: let a first operation warm the pool before Arm.
type Dropper struct {
	DSN string // leads through the proxy

	network, address string // of the server

	countdown atomic.Int64 // commits until the one whose reply is lost; 0: none is
	lost      atomic.Int64
	commits   atomic.Int64

	listener net.Listener
	running  sync.WaitGroup
	mu       sync.Mutex
	conns    map[net.Conn]bool // nil once closed
}

// DropReplies opens a pool of a service behind a Dropper. Both end with the test.
func DropReplies(t testing.TB, d *DB, service string) (*pg.DB, *Dropper) {
	t.Helper()
	p := newDropper(t, d.DSN(service))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
	defer cancel()
	db, err := pg.Open(ctx, pg.Config{DSN: config.Secret(p.DSN), MaxConns: 4, AllowUnsafe: true}, service, nil)
	if err != nil {
		t.Fatalf("pgtest: open as fl_%s through a dropper: %v", service, err)
	}
	t.Cleanup(db.Close)
	return db, p
}

// Arm lets pass as many commits as are named, and then loses one reply. Without a number it loses the
// next one.
func (p *Dropper) Arm(pass ...int) {
	n := int64(1)
	for _, more := range pass {
		n += int64(more)
	}
	p.countdown.Store(n)
}

// Lost returns how many replies were lost so far.
func (p *Dropper) Lost() int { return int(p.lost.Load()) }

// Commits returns how many commits went to the server so far: the difference around an operation is how
// many of its replies can be lost.
func (p *Dropper) Commits() int { return int(p.commits.Load()) }

func newDropper(t testing.TB, dsn string) *Dropper {
	t.Helper()
	server, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("pgtest: listen: %v", err)
	}
	p := &Dropper{listener: l, conns: map[net.Conn]bool{}}
	p.network, p.address = pgconn.NetworkAddress(server.Host, server.Port)
	p.DSN = (&url.URL{
		Scheme: "postgres", User: url.UserPassword(server.User, server.Password), Host: l.Addr().String(), Path: "/" + server.Database,
		RawQuery: "sslmode=disable", // what is encrypted can't be followed
	}).String()
	p.running.Go(p.serve)
	t.Cleanup(p.close)
	return p
}

func (p *Dropper) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), p.network, p.address)
		if err != nil || !p.keep(client, server) {
			_ = client.Close()
			continue
		}
		s := &session{dropper: p, client: client, server: server}
		s.status.Store('I')
		p.running.Go(s.forth)
		p.running.Go(s.back)
	}
}

func (p *Dropper) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.conns == nil {
			_ = c.Close()
			continue
		}
		p.conns[c] = true
	}
	return p.conns != nil
}

func (p *Dropper) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.running.Wait()
}

// session is one connection through the proxy.
type session struct {
	dropper        *Dropper
	client, server net.Conn
	status         atomic.Int32 // of the last ReadyForQuery: I idle, T in a transaction, E in a failed one
	losing         atomic.Bool  // the reply to what was sent last is to be lost
}

// forth passes on what the client says.
func (s *session) forth() {
	defer s.end()
	messages, executed := &framer{startup: true}, false
	s.copy(s.server, s.client, func(b []byte) (pass bool) {
		messages.feed(b, func(kind byte, body []byte) {
			commits := false
			switch kind {
			case 'E': // Execute
				executed = true
			case 'S': // Sync
				commits, executed = executed && s.status.Load() == 'I', false
			case 'Q':
				commits = strings.HasPrefix(strings.ToLower(string(body[:min(len(body), 6)])), "commit")
			}
			if commits {
				s.dropper.commits.Add(1)
				if s.dropper.countdown.Load() > 0 && s.dropper.countdown.Add(-1) == 0 {
					s.losing.Store(true)
				}
			}
		})
		return true
	})
}

// back passes on what the server answers, or loses it and ends the session once the answer is whole.
func (s *session) back() {
	defer s.end()
	messages := &framer{}
	s.copy(s.client, s.server, func(b []byte) (pass bool) {
		ready := false
		messages.feed(b, func(kind byte, body []byte) {
			if kind == 'Z' && len(body) == 1 { // ReadyForQuery
				s.status.Store(int32(body[0]))
				ready = true
			}
		})
		if !s.losing.Load() {
			return true
		}
		if ready {
			s.dropper.lost.Add(1)
			s.end()
		}
		return false
	})
}

func (s *session) copy(to, from net.Conn, look func([]byte) (pass bool)) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && look(b[:n]) {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (s *session) end() {
	_ = s.client.Close()
	_ = s.server.Close()
}

// framer cuts a stream into messages: a kind, a length that counts itself, a body. The first message of a
// client has no kind.
type framer struct {
	startup bool
	rest    []byte
}

func (f *framer) feed(b []byte, message func(kind byte, body []byte)) {
	f.rest = append(f.rest, b...)
	for {
		head := 5
		if f.startup {
			head = 4
		}
		if len(f.rest) < head {
			return
		}
		size := head - 4 + int(binary.BigEndian.Uint32(f.rest[head-4:]))
		if size < head || len(f.rest) < size {
			return
		}
		if !f.startup {
			message(f.rest[0], f.rest[head:size])
		}
		f.startup = false
		f.rest = f.rest[size:]
	}
}
