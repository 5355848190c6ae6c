package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// errNoAuthority stands where the library would take the system's authorities instead.
var errNoAuthority = errors.New("certs: no authority is trusted")

// Server is TLS for a listener that authenticates its callers: who shows no certificate, one of another
// authority, an expired one, or one without an identity, gets no further than the handshake.
func (s *Store) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := s.current()
			if now.pool == nil {
				return nil, errNoAuthority
			}
			return &tls.Config{
				MinVersion:   tls.VersionTLS13,
				Certificates: []tls.Certificate{*now.cert},
				ClientAuth:   tls.RequireAndVerifyClientCert,
				ClientCAs:    now.pool,
				// Every connection shows its certificate anew: a ticket would outlive an authority.
				SessionTicketsDisabled: true,
				VerifyConnection: func(cs tls.ConnectionState) error {
					_, err := Of(cs.PeerCertificates[0])
					return err
				},
			}, nil
		},
	}
}

// Client is TLS for connections to one peer, which is known by its identity: addresses come and go.
func (s *Store) Client(peer Identity) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return s.Certificate(), nil
		},
		// The library would hold the certificate against a host's name; VerifyConnection does all that it
		// leaves out, and against the peer's URI.
		InsecureSkipVerify: true, //nolint:gosec // G402: verified below
		VerifyConnection: func(cs tls.ConnectionState) error {
			return verifyServer(cs.PeerCertificates, s.Authorities(), peer)
		},
	}
}

func verifyServer(chain []*x509.Certificate, roots *x509.CertPool, want Identity) error {
	if len(chain) == 0 {
		return errors.New("certs: the peer shows no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	if roots == nil {
		return errNoAuthority
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}); err != nil {
		return fmt.Errorf("certs: verify the peer: %w", err)
	}
	got, err := Of(chain[0])
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("certs: the peer is %s, not %s", got, want)
	}
	return nil
}

// HTTPS is TLS for a listener that anybody may call.
func (s *Store) HTTPS() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.Certificate(), nil },
	}
}
