// Package ca makes a certificate authority for a first installation, and certificates that carry the
// identities of package certs.
package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/certs"
)

// backdate is how long before its making a certificate is valid, for machines whose clocks differ.
const backdate = 5 * time.Minute

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair is a certificate and its private key, in PEM.
type Pair struct {
	Cert, Key []byte
}

// New makes an authority that is valid from now on for that long.
func New(valid time.Duration) (*Authority, error) {
	now := time.Now()
	tmpl := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "Fenceline CA " + now.UTC().Format(time.DateOnly)},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(valid),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true, // it signs leaves, never another authority
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	der, err := sign(tmpl, tmpl, key, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	return &Authority{cert: cert, key: key}, nil
}

// Parse reads an authority back from what PEM returned.
func Parse(p Pair) (*Authority, error) {
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, fmt.Errorf("ca: certificate and key: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return nil, errors.New("ca: not an authority with an ECDSA key")
	}
	return &Authority{cert: pair.Leaf, key: key}, nil
}

// PEM is the authority's certificate, which everybody trusts, and its key, which only it holds.
func (a *Authority) PEM() (Pair, error) { return encode(a.cert.Raw, a.key) }

// NotAfter is when the authority, and with it all that it signed, stops being trusted.
func (a *Authority) NotAfter() time.Time { return a.cert.NotAfter }

// Request says what certificate is wanted.
type Request struct {
	Identity certs.Identity
	Valid    time.Duration // from now on; never beyond the authority itself
	// Hosts are names and addresses of a service's machines, for callers that know it by these and not by
	// its identity, as grpcurl does.
	Hosts []string
}

// Issue makes a key and its certificate. Only a service's may be shown by a server.
func (a *Authority) Issue(r Request) (Pair, error) {
	if err := r.Identity.Validate(); err != nil {
		return Pair{}, err
	}
	now := time.Now()
	tmpl := &x509.Certificate{
		Subject:     pkix.Name{CommonName: r.Identity.Name},
		URIs:        []*url.URL{r.Identity.URI()},
		NotBefore:   now.Add(min(-backdate, r.Valid-time.Hour)), // one that has expired is of use to tests
		NotAfter:    now.Add(r.Valid),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if tmpl.NotAfter.After(a.cert.NotAfter) {
		tmpl.NotAfter = a.cert.NotAfter
	}
	if r.Identity.Kind == certs.KindService {
		tmpl.ExtKeyUsage = append(tmpl.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		tmpl.DNSNames, tmpl.IPAddresses = names(r.Hosts)
	}
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	der, err := sign(tmpl, a.cert, key, a.key)
	if err != nil {
		return Pair{}, err
	}
	return encode(der, key)
}

func names(hosts []string) (dns []string, ips []net.IP) {
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			ips = append(ips, ip)
		} else if h != "" && !slices.Contains(dns, h) {
			dns = append(dns, h)
		}
	}
	return dns, ips
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("ca: make a key: %w", err)
	}
	return key, nil
}

func sign(tmpl, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer) // makes a random serial number
	if err != nil {
		return nil, fmt.Errorf("ca: sign: %w", err)
	}
	return der, nil
}

func encode(der []byte, key *ecdsa.PrivateKey) (Pair, error) {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("ca: encode a key: %w", err)
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}
