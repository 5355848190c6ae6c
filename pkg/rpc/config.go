// Package rpc builds the gRPC servers and clients of all services: bounds, deadlines, health,
// traces, validation, and one mapping of errors to the wire.
package rpc

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/certs"
)

const (
	// defaultDeadline is what a call without a deadline gets, on both sides.
	defaultDeadline = 10 * time.Second
	// maxMessage bounds one message in either direction, in bytes.
	maxMessage = 4 << 20
	// maxHeaders bounds the metadata of one call, in bytes.
	maxHeaders = 16 << 10
)

// ServerConfig are a server's settings. Zero values mean the defaults named here, so that a
// config made in code needs Listen and Plaintext only.
type ServerConfig struct {
	Listen      string `env:"LISTEN" envDefault:"127.0.0.1:0" doc:"host:port of the gRPC server"`
	TLS         TLSConfig
	Plaintext   bool          `env:"PLAINTEXT" doc:"speak gRPC without TLS, on loopback only, as server and to peers: every caller may call everything"`
	Reflection  bool          `env:"REFLECTION" doc:"serve gRPC reflection, to operators, so that grpcurl works without proto files"`
	Deadline    time.Duration `env:"RPC_DEADLINE" envDefault:"10s" doc:"deadline of a call that brings none"`
	MaxDeadline time.Duration `env:"RPC_MAX_DEADLINE" envDefault:"40s" doc:"longest deadline a caller is granted"`
	MaxStreams  uint32        `env:"RPC_MAX_STREAMS" envDefault:"256" doc:"concurrent calls per connection"`
	MaxConnAge  time.Duration `env:"RPC_MAX_CONN_AGE" envDefault:"30m" doc:"age at which a connection is renewed, so that clients see new replicas"`
	StopTimeout time.Duration `env:"RPC_STOP_TIMEOUT" envDefault:"10s" doc:"longest graceful stop; what still runs then is cut off"`
}

// TLSConfig names the PEM files with which a service speaks mutual TLS, as server and to its peers. They are
// read again when they change.
type TLSConfig struct {
	CertFile string `env:"TLS_CERT_FILE" doc:"PEM file of the service's certificate, leaf first, whose one URI is its identity; read again when it changes"`
	KeyFile  string `env:"TLS_KEY_FILE" doc:"PEM file of the certificate's key; read again when it changes"`
	CAFile   string `env:"TLS_CA_FILE" doc:"PEM file of the authorities that callers and peers are trusted by; read again when it changes"`
}

func (c TLSConfig) files() certs.Files {
	return certs.Files{Cert: c.CertFile, Key: c.KeyFile, CA: c.CAFile}
}

// missing are the variables that are not set.
func (c TLSConfig) missing() []string {
	var names []string
	for _, v := range []struct{ name, value string }{
		{"TLS_CERT_FILE", c.CertFile},
		{"TLS_KEY_FILE", c.KeyFile},
		{"TLS_CA_FILE", c.CAFile},
	} {
		if v.value == "" {
			names = append(names, v.name)
		}
	}
	return names
}

// Validate reports every setting that is out of its bounds.
func (c ServerConfig) Validate() error { return c.validate("") }

func (c ServerConfig) validate(prefix string) error {
	var errs []error
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("%sLISTEN: %w", prefix, err))
	}
	for _, s := range []struct {
		name  string
		value time.Duration
	}{
		{"RPC_DEADLINE", c.Deadline},
		{"RPC_MAX_DEADLINE", c.MaxDeadline},
		{"RPC_MAX_CONN_AGE", c.MaxConnAge},
		{"RPC_STOP_TIMEOUT", c.StopTimeout},
	} {
		if s.value < 0 {
			errs = append(errs, fmt.Errorf("%s%s: %s is negative", prefix, s.name, s.value))
		}
	}
	errs = append(errs, c.secured(prefix)...)
	if c.MaxDeadline != 0 && c.MaxDeadline < c.Deadline {
		errs = append(errs, fmt.Errorf("%sRPC_MAX_DEADLINE: %s is below RPC_DEADLINE, %s", prefix, c.MaxDeadline, c.Deadline))
	}
	return errors.Join(errs...)
}

// secured reports what keeps the server from being either behind certificates, or in plain text on loopback.
func (c ServerConfig) secured(prefix string) []error {
	missing := c.TLS.missing()
	switch {
	case c.Plaintext && len(missing) < 3:
		return []error{fmt.Errorf("%sPLAINTEXT: is true, and a certificate is set besides: choose one", prefix)}
	case c.Plaintext && !loopback(c.Listen):
		return []error{fmt.Errorf("%sPLAINTEXT: is true, and %s is not a loopback address: plain text is refused there", prefix, c.Listen)}
	case c.Plaintext:
		return nil
	case len(missing) == 3:
		return []error{fmt.Errorf("%sTLS_CERT_FILE: is not set, nor are TLS_KEY_FILE and TLS_CA_FILE: "+
			"mutual TLS needs them, and plain text on loopback needs PLAINTEXT", prefix)}
	}
	var errs []error
	for _, name := range missing {
		errs = append(errs, fmt.Errorf("%s%s: is not set, which mutual TLS needs besides the others", prefix, name))
	}
	return errs
}

// Peer is how the service reaches another one: secured as its own server is. The named methods may be
// repeated.
func (c ServerConfig) Peer(service, target string, idempotent ...string) ClientConfig {
	return ClientConfig{Peer: service, Target: target, TLS: c.TLS, Plaintext: c.Plaintext, Idempotent: idempotent}
}

// prefix is what a service's variables begin with.
func prefix(service string) string {
	if service == "" {
		return ""
	}
	return strings.ToUpper(service) + "_"
}

func (c ServerConfig) withDefaults() ServerConfig {
	c.Deadline = cmp.Or(c.Deadline, defaultDeadline)
	c.MaxDeadline = cmp.Or(c.MaxDeadline, max(40*time.Second, c.Deadline))
	c.MaxStreams = cmp.Or(c.MaxStreams, 256)
	c.MaxConnAge = cmp.Or(c.MaxConnAge, 30*time.Minute)
	c.StopTimeout = cmp.Or(c.StopTimeout, 10*time.Second)
	return c
}
