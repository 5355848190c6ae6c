package app

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/fenceline-dev/fenceline/pkg/boot"
	"github.com/fenceline-dev/fenceline/pkg/certs"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/webhook"
)

// ListenerConfig is where deliveries come in: by HTTPS, or in plain HTTP on loopback, from a proxy that ends
// TLS in front of it.
type ListenerConfig struct {
	Listen   string `env:"WEBHOOK_LISTEN" envDefault:"127.0.0.1:8080" doc:"host:port of the webhook endpoint, /webhook; without a certificate loopback only"`
	CertFile string `env:"WEBHOOK_TLS_CERT_FILE" doc:"PEM file of the endpoint's certificate chain, leaf first, for HTTPS; read again when it changes"`
	KeyFile  string `env:"WEBHOOK_TLS_KEY_FILE" doc:"PEM file of the certificate's key; read again when it changes"`
	Proxy    string `env:"WEBHOOK_PROXY" doc:"name of the proxy that ends TLS in front of an endpoint without a certificate, for people and the log"`
}

func (c ListenerConfig) validate() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("INGEST_WEBHOOK_LISTEN: %w", err)
	}
	addr, err := netip.ParseAddr(host)
	local := host == "localhost" || err == nil && addr.IsLoopback()
	switch secure := c.CertFile != ""; {
	case secure != (c.KeyFile != ""):
		return errors.New("INGEST_WEBHOOK_TLS_CERT_FILE: HTTPS needs INGEST_WEBHOOK_TLS_KEY_FILE besides, and the other way round")
	case secure && c.Proxy != "":
		return errors.New("INGEST_WEBHOOK_PROXY: the endpoint has a certificate, so no proxy ends TLS in front of it: choose one")
	case !secure && !local:
		return fmt.Errorf("INGEST_WEBHOOK_LISTEN: %s is not loopback: plain HTTP is served there only, behind a proxy that ends TLS; "+
			"elsewhere INGEST_WEBHOOK_TLS_CERT_FILE and INGEST_WEBHOOK_TLS_KEY_FILE are needed", c.Listen)
	}
	return nil
}

// listen binds the endpoint.
func (c ListenerConfig) listen(handler *webhook.Handler, p *boot.Process) (*webhook.Server, error) {
	server, err := webhook.NewServer(c.Listen, handler, p.Log.With("proxy", c.Proxy))
	if err != nil || c.CertFile == "" {
		return server, err
	}
	store, err := certs.Open(certs.Files{Cert: c.CertFile, Key: c.KeyFile}, certs.Deps{Use: "webhook", Log: p.Log, Meter: p.Meter})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("INGEST_WEBHOOK_TLS_CERT_FILE, INGEST_WEBHOOK_TLS_KEY_FILE: %w", err), server.Close())
	}
	server.Secure(store.HTTPS())
	return server, nil
}
