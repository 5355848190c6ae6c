package obs

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"time"
)

// Config says where telemetry goes. Its variables carry no service prefix: in one process
// all services share them. The zero value logs from INFO on and exports nothing.
type Config struct {
	OTLPEndpoint string        `env:"OTEL_EXPORTER_OTLP_ENDPOINT" doc:"OTLP gRPC receiver of spans: http://host:port on loopback, https://host:port elsewhere; empty: spans are not exported"`
	LogLevel     slog.Level    `env:"LOG_LEVEL" envDefault:"INFO" doc:"least level that is logged: DEBUG, INFO, WARN or ERROR"`
	SpanDelay    time.Duration `env:"TRACE_EXPORT_DELAY" envDefault:"1s" doc:"longest time a finished span waits for its batch"`
}

// Validate names every problem with its variable.
func (c Config) Validate() error {
	var errs []error
	if _, _, err := endpoint(c.OTLPEndpoint); err != nil {
		errs = append(errs, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err))
	}
	if c.SpanDelay < 0 {
		errs = append(errs, fmt.Errorf("TRACE_EXPORT_DELAY: %s is negative", c.SpanDelay))
	}
	return errors.Join(errs...)
}

// endpoint splits an OTLP endpoint into host:port and whether it is spoken to in plain
// text, which only loopback is.
func endpoint(raw string) (hostport string, plain bool, err error) {
	if raw == "" {
		return "", false, nil
	}
	scheme, hostport := "", raw
	if strings.Contains(raw, "://") {
		u, err := url.Parse(raw)
		if err != nil {
			return "", false, errors.New("not a URL")
		}
		if u.User != nil || (u.Path != "" && u.Path != "/") || u.RawQuery != "" {
			return "", false, errors.New("only scheme, host and port may be given")
		}
		scheme, hostport = u.Scheme, u.Host
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil || host == "" || port == "" {
		return "", false, errors.New("host and port are required")
	}
	local := loopback(host)
	switch scheme {
	case "http":
		if !local {
			return "", false, fmt.Errorf("plain text to %s: only loopback may be spoken to without TLS, use https://", host)
		}
		return hostport, true, nil
	case "https":
		return hostport, false, nil
	case "":
		return hostport, local, nil
	default:
		return "", false, fmt.Errorf("scheme %q is neither http nor https", scheme)
	}
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "devel"
}
