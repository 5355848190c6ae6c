package rpc

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fenceline-dev/fenceline/pkg/certs"
)

// security is how one service's connections are secured, whichever side it is on.
type security struct {
	service   string
	plaintext bool
	tls       TLSConfig
	log       *slog.Logger
	meter     metric.MeterProvider
}

// server are the credentials of a listener: who calls is authenticated in the handshake.
func (s security) server(listen string) (credentials.TransportCredentials, error) {
	return s.transport(listen, func(store *certs.Store) (*tls.Config, error) { return store.Server(), nil })
}

// client are the credentials of connections to one peer, which must have that identity.
func (s security) client(target, peer string) (credentials.TransportCredentials, error) {
	return s.transport(target, func(store *certs.Store) (*tls.Config, error) {
		id := certs.Service(peer)
		if err := id.Validate(); err != nil {
			return nil, fmt.Errorf("the peer at %s: %w", target, err)
		}
		return store.Client(id), nil
	})
}

// transport is the one place that chooses how a connection is secured, for servers and clients alike: by
// certificates, or in plain text, which needs the setting and a loopback address.
func (s security) transport(hostport string, config func(*certs.Store) (*tls.Config, error)) (credentials.TransportCredentials, error) {
	prefix := prefix(s.service)
	switch {
	case s.plaintext && !loopback(hostport):
		return nil, fmt.Errorf("%sPLAINTEXT=true: %s is not a loopback address, plain text is refused there", prefix, hostport)
	case s.plaintext:
		return insecure.NewCredentials(), nil
	case len(s.tls.missing()) > 0:
		return nil, fmt.Errorf("%sTLS_CERT_FILE, _KEY_FILE and _CA_FILE are not set, and neither is %[1]sPLAINTEXT: "+
			"%[2]s can be spoken to with certificates, or on loopback in plain text", prefix, hostport)
	}
	store, err := certs.Open(s.tls.files(), certs.Deps{Use: "mesh", Log: s.log, Meter: s.meter})
	if err != nil {
		return nil, fmt.Errorf("%sTLS_CERT_FILE, _KEY_FILE, _CA_FILE: %w", prefix, err)
	}
	cfg, err := config(store)
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(cfg), nil
}

// loopback knows literal addresses and localhost; other names could resolve to anything.
func loopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
