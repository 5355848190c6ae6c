// Package rpc builds the gRPC servers and clients of all services: bounds, deadlines, health,
// traces, validation, and one mapping of errors to the wire.
package rpc

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
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
	Listen      string        `env:"LISTEN" envDefault:"127.0.0.1:0" doc:"host:port of the gRPC server"`
	Plaintext   bool          `env:"PLAINTEXT" doc:"speak gRPC without TLS, on loopback only: as server and to peers"`
	Reflection  bool          `env:"REFLECTION" doc:"serve gRPC reflection, so that grpcurl works without proto files"`
	Deadline    time.Duration `env:"RPC_DEADLINE" envDefault:"10s" doc:"deadline of a call that brings none"`
	MaxDeadline time.Duration `env:"RPC_MAX_DEADLINE" envDefault:"40s" doc:"longest deadline a caller is granted"`
	MaxStreams  uint32        `env:"RPC_MAX_STREAMS" envDefault:"256" doc:"concurrent calls per connection"`
	MaxConnAge  time.Duration `env:"RPC_MAX_CONN_AGE" envDefault:"30m" doc:"age at which a connection is renewed, so that clients see new replicas"`
	StopTimeout time.Duration `env:"RPC_STOP_TIMEOUT" envDefault:"10s" doc:"longest graceful stop; what still runs then is cut off"`
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
	if c.MaxDeadline != 0 && c.MaxDeadline < c.Deadline {
		errs = append(errs, fmt.Errorf("%sRPC_MAX_DEADLINE: %s is below RPC_DEADLINE, %s", prefix, c.MaxDeadline, c.Deadline))
	}
	return errors.Join(errs...)
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

// transport is the one place that chooses how a connection is secured, for servers and
// clients alike: plain text needs the setting and a loopback address.
func transport(plaintext bool, service, hostport string) (credentials.TransportCredentials, error) {
	variable := prefix(service) + "PLAINTEXT"
	if !plaintext {
		return nil, fmt.Errorf("%s is not set: %s can be spoken to in plain text only, and only on loopback with %s=true", variable, hostport, variable)
	}
	if !loopback(hostport) {
		return nil, fmt.Errorf("%s=true: %s is not a loopback address, plain text is refused there", variable, hostport)
	}
	return insecure.NewCredentials(), nil
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
