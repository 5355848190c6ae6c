package ghapp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

// errAddress: GitHub's name leads to an address that GitHub can't have.
var errAddress = errors.New("address refused")

// newTransport connects to the one host at base, or to the proxy that stands before it.
func newTransport(cfg Config, base *url.URL) (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 32
	t.TLSHandshakeTimeout = 5 * time.Second
	roots, err := authorities(cfg.CAFile)
	if err != nil {
		return nil, err
	}
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	proxy, err := proxyFor(cfg.Proxy, base)
	if err != nil {
		return nil, err
	}
	t.Proxy = http.ProxyURL(proxy)
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	if proxy == nil { // else the name is the proxy's to resolve, and its own address is the operator's choice
		dialer.ControlContext = guardOf(base, cfg.PrivateNetwork).control
	}
	t.DialContext = dialer.DialContext
	return t, nil
}

// proxyFor returns the proxy before base, nil for none: the one that is set, else the environment's.
func proxyFor(set config.Secret, base *url.URL) (*url.URL, error) {
	if set.Empty() {
		return http.ProxyFromEnvironment(&http.Request{URL: base})
	}
	u, err := url.Parse(set.Reveal())
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
		return nil, errors.New("PROXY is not an http, https or socks5 URL") // which may hold a password
	}
	return u, nil
}

// authorities are the machine's own, and those of the file; nil is the machine's own alone.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("CA_FILE: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CA_FILE: no certificate in %s", file)
	}
	return pool, nil
}

// guard looks at the address that a connection is about to be made to. GitHub's name may come to lead
// elsewhere, to a metadata service or into the cluster, by a mistake in the settings or by its DNS.
type guard struct {
	written netip.Addr // what BASE_URL names by number, which is what the operator meant
	local   bool       // BASE_URL names localhost
	private bool
}

func guardOf(base *url.URL, private bool) guard {
	g := guard{private: private, local: base.Hostname() == "localhost"}
	if a, err := netip.ParseAddr(base.Hostname()); err == nil {
		g.written = a.Unmap()
	}
	return g
}

// control is a net.Dialer's, which calls it with each resolved address.
func (g guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: not a number", errAddress)
	}
	switch a := at.Addr().Unmap().WithZone(""); {
	case a == g.written.WithZone(""), g.local && a.IsLoopback():
		return nil
	case !a.IsGlobalUnicast(), within(a, reserved): // loopback and link-local are not
		return fmt.Errorf("%w: %s is no host's in a network", errAddress, a)
	case !g.private && (a.IsPrivate() || within(a, unrouted)):
		return fmt.Errorf("%w: %s is of a private network, which PRIVATE_NETWORK does not allow", errAddress, a)
	}
	return nil
}

var (
	// Shared by a provider's customers (RFC 6598), and by translation into IPv4 (RFC 6052, 8215), whatever that leads to.
	unrouted = prefixes("100.64.0.0/10", "64:ff9b::/96", "64:ff9b:1::/48")
	// This network, protocol assignments, benchmarks, the future; discarded and outdated IPv6 (RFC 6890).
	reserved = prefixes("0.0.0.0/8", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "100::/64", "2002::/16", "fec0::/10")
)

func prefixes(list ...string) (all []netip.Prefix) {
	for _, p := range list {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
}

func within(a netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
