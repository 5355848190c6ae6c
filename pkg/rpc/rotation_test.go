package rpc_test

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/fenceline-dev/fenceline/pkg/ca"
	"github.com/fenceline-dev/fenceline/pkg/certs"
	"github.com/fenceline-dev/fenceline/pkg/rpc"
	outboxv1 "github.com/fenceline-dev/fenceline/proto/gen/fenceline/outbox/v1"
)

// A whole rotation, of the authority and of both sides' certificates, under calls that never stop: none is
// lost, and in the end nobody is left on a connection that the old authority vouched for.
func TestRotationLosesNoCall(t *testing.T) {
	t.Parallel()
	old, next := newInstallation(t), newInstallation(t)
	caller := old.issue(t, certs.Service("ingest"), time.Hour)
	h := startMutual(t, old, rpc.ServerConfig{MaxConnAge: 150 * time.Millisecond}, table)
	server := old.dir.Files(certs.Service("ledger"))

	var seen sync.Map // serial numbers of callers, as the server sees them
	var conns connections
	h.svc.stats = func(ctx context.Context) error { seen.Store(serialOf(ctx), true); conns.note(ctx); return nil }
	client := outboxv1.NewOutboxServiceClient(h.as(t, caller))
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	var made, failed atomic.Int64
	for range 4 {
		calls.Go(func() {
			for ctx.Err() == nil {
				_, err := client.GetStats(context.WithoutCancel(ctx), &outboxv1.GetStatsRequest{})
				made.Add(1)
				if err != nil {
					failed.Add(1)
					t.Errorf("a call was lost: %v", err)
					return
				}
			}
		})
	}

	// Everybody trusts both authorities, then shows a certificate of the new one, then trusts only that.
	write(t, old.dir.CertFile("ca"), old.dir.CertFile("ca"), next.dir.CertFile("ca"))
	awaitReload(t, h, old, next)
	conns.since(t, time.Now().Add(time.Second)) // files are looked at once a second: the caller has, too
	reissue(t, next, certs.Service("ledger"), server)
	serial := reissue(t, next, certs.Service("ingest"), caller)
	until(t, "calls with the new certificate", func() bool { _, ok := seen.Load(serial); return ok })
	write(t, old.dir.CertFile("ca"), next.dir.CertFile("ca"))
	until(t, "the end of the old authority", func() bool {
		return raw(t, h, old.issue(t, certs.Service("scheduler"), time.Hour), tls.VersionTLS13) != nil
	})
	seen.Clear()
	until(t, "a call after it", func() bool { _, ok := seen.Load(serial); return ok })
	cancel()
	calls.Wait()
	seen.Range(func(key, _ any) bool {
		if key != serial {
			t.Errorf("a connection of the old authority's certificate is in use still")
		}
		return true
	})
	if failed.Load() > 0 || made.Load() < 10 {
		t.Errorf("%d of %d calls failed", failed.Load(), made.Load())
	}
}

// connections are when the server first heard of each.
type connections struct {
	mu    sync.Mutex
	first map[string]time.Time // by the caller's address
}

func (c *connections) note(ctx context.Context) {
	p, _ := peer.FromContext(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first == nil {
		c.first = map[string]time.Time{}
	}
	if _, ok := c.first[p.Addr.String()]; !ok {
		c.first[p.Addr.String()] = time.Now()
	}
}

// since waits for two connections that were first heard of after that moment: the handshake of the second
// began after it.
func (c *connections) since(t *testing.T, moment time.Time) {
	t.Helper()
	until(t, "new connections", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		n := 0
		for _, at := range c.first {
			if at.After(moment) {
				n++
			}
		}
		return n >= 2
	})
}

// awaitReload waits until the server takes callers of the new authority.
func awaitReload(t *testing.T, h *harness, old, next *installation) {
	t.Helper()
	files := next.issue(t, certs.Service("scheduler"), time.Hour)
	files.CA = old.dir.CertFile("ca")
	until(t, "trust in the new authority", func() bool { return raw(t, h, files, tls.VersionTLS13) == nil })
}

// reissue replaces a pair by one of another authority, and returns its serial number.
func reissue(t *testing.T, by *installation, id certs.Identity, files certs.Files) string {
	t.Helper()
	pair, err := by.authority.Issue(ca.Request{Identity: id, Valid: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(files.Key, pair.Key, 0o600), os.WriteFile(files.Cert, pair.Cert, 0o600)); err != nil {
		t.Fatal(err)
	}
	both, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return both.Leaf.SerialNumber.String()
}

func serialOf(ctx context.Context) string {
	p, _ := peer.FromContext(ctx)
	return p.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].SerialNumber.String()
}

// An established connection keeps what was proven when it was made; its age bounds for how long.
func TestConnectionsProveThemselvesAgain(t *testing.T) {
	t.Parallel()
	i, other := newInstallation(t), newInstallation(t)
	h := startMutual(t, i, rpc.ServerConfig{MaxConnAge: 200 * time.Millisecond}, table)
	client := outboxv1.NewOutboxServiceClient(h.as(t, i.issue(t, certs.Service("ingest"), time.Hour)))
	if _, err := client.GetStats(t.Context(), &outboxv1.GetStatsRequest{}); err != nil {
		t.Fatal(err)
	}
	write(t, i.dir.CertFile("ca"), other.dir.CertFile("ca"))
	until(t, "the refusal of a caller that is trusted no more", func() bool {
		_, err := client.GetStats(t.Context(), &outboxv1.GetStatsRequest{})
		return err != nil
	})
}
