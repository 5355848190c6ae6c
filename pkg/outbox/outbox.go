// Package outbox is a durable unary call: what a transaction wants to say to another service is a row of
// the same transaction, and is sent after the commit until somebody answers.
//
// Messages have no order and may arrive twice: receivers are idempotent on natural keys and drop what is
// older by generation, epoch or version. A destination is a gRPC full method name, or a doorbell; a ring
// is tried once, since nothing depends on it.
package outbox

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
)

// MaxPayload bounds an encoded request, in bytes.
const MaxPayload = 1 << 20

// maxKey bounds a stored key, in bytes: an index entry has to hold it.
const maxKey = 1024

// doorbell prefixes the stream name in a destination.
const doorbell = "doorbell:"

var (
	// ErrKeyConflict means that the key already names a message with another content. It is a programming
	// error: the key must name the cause.
	ErrKeyConflict = errors.New("outbox: key names another message")
	// ErrTooLarge means that the encoded request is over MaxPayload.
	ErrTooLarge = errors.New("outbox: payload too large")
	// ErrInvalid means that destination, key or request are missing or malformed.
	ErrInvalid = errors.New("outbox: invalid message")
)

// Message is one call, or one ring, to be made after the commit.
type Message struct {
	// Destination is a gRPC full method, "/fenceline.ledger.v1.LedgerService/Settle", or
	// "doorbell:<stream>". A method that several contexts serve is led by the one that is meant: see At.
	Destination string
	// Request is what is sent; nil for a doorbell, whose job id derives from the row.
	Request proto.Message
	// Key names the cause, unique per tenant: the same key with the same content is one message.
	Key string
	// Tenant owns the row; uuid.Nil is the system.
	Tenant uuid.UUID
	// NotBefore delays the first attempt; zero, or a time that has passed, is at once.
	NotBefore time.Time
}

func (m Message) validate() error {
	switch {
	case strings.HasPrefix(m.Destination, doorbell):
		if m.Destination == doorbell {
			return fmt.Errorf("%w: doorbell without a stream", ErrInvalid)
		}
	case peerOf(m.Destination) == "":
		return fmt.Errorf("%w: destination %q", ErrInvalid, m.Destination)
	case m.Request == nil:
		return fmt.Errorf("%w: no request for %s", ErrInvalid, m.Destination)
	}
	if m.Key == "" || len(m.storedKey()) > maxKey || strings.ContainsRune(m.Key, 0) {
		return fmt.Errorf("%w: key of %s is empty, too long or holds a zero byte", ErrInvalid, m.Destination)
	}
	return nil
}

func (m Message) storedKey() string {
	if m.Tenant == uuid.Nil {
		return "system:" + m.Key
	}
	return m.Tenant.String() + ":" + m.Key
}

// At is the destination of a method that several contexts serve, at one of them:
// "ledger/fenceline.outbox.v1.ErasureService/EraseTenant".
func At(peer, method string) string { return peer + method }

// peerOf names the context that serves a destination: the one that leads it, or "ledger" for
// "/fenceline.ledger.v1.LedgerService/Settle"; "" for what is no such name.
func peerOf(destination string) string {
	peer, method, ok := strings.Cut(destination, "/")
	service, name, _ := strings.Cut(method, "/")
	parts := strings.Split(service, ".")
	if !ok || name == "" || strings.Contains(name, "/") || strings.ContainsAny(peer, ".:") || len(parts) < 3 {
		return ""
	}
	if peer == "" {
		return parts[1]
	}
	return peer
}

// methodOf is the gRPC full method of a destination that has one.
func methodOf(destination string) string { return destination[strings.Index(destination, "/"):] }

// Outbox writes messages of one schema and tells the dispatchers of this process about them.
type Outbox struct {
	schema string
	sql    statements

	mu    sync.Mutex
	hears map[string][]*nudge // by destination
}

// New returns the outbox of a schema, whose name is a plain identifier.
func New(schema string) *Outbox {
	return &Outbox{schema: schema, sql: statementsOf(schema), hears: map[string][]*nudge{}}
}

func (o *Outbox) listen(destination string, n *nudge) (stop func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hears[destination] = append(o.hears[destination], n)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		var left []*nudge
		for _, other := range o.hears[destination] {
			if other != n {
				left = append(left, other)
			}
		}
		o.hears[destination] = left
	}
}

// tell nudges this process's dispatch loops; a loop elsewhere finds the row by its poll.
func (o *Outbox) tell(entries []entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range entries {
		for _, n := range o.hears[e.destination] {
			if e.ring != nil && e.delay <= 0 && n.ring(*e.ring) {
				break // by one is enough
			}
			n.add(e.at, e.delay)
		}
	}
}
