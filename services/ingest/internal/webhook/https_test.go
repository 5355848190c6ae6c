package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/ca"
	"github.com/fenceline-dev/fenceline/pkg/certs"
)

// TestServesHTTPS takes a delivery by HTTPS, none in plain HTTP, and shows a new certificate without a restart.
func TestServesHTTPS(t *testing.T) {
	t.Parallel()
	dir := ca.Dir(filepath.Join(t.TempDir(), "certs"))
	authority, err := dir.Init(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	request := ca.Request{Identity: certs.Service("ingest"), Valid: time.Hour, Hosts: []string{"127.0.0.1"}}
	files, err := dir.Issue(authority, request)
	if err != nil {
		t.Fatal(err)
	}
	store, err := certs.Open(certs.Files{Cert: files.Cert, Key: files.Key}, certs.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	e := newEndpoint(t)
	s, err := NewServer("127.0.0.1:0", e, e.log)
	if err != nil {
		t.Fatal(err)
	}
	s.Secure(store.HTTPS())
	ctx, stop := contextWithStop(t)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	pem, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	first := deliver(t, "https://"+s.Addr()+Path, roots)
	if first.status != http.StatusOK || first.proto != "HTTP/1.1" {
		t.Errorf("by HTTPS: %+v", first)
	}
	if plain := deliver(t, "http://"+s.Addr()+Path, roots); plain.status != http.StatusBadRequest {
		t.Errorf("in plain HTTP: %+v", plain)
	}
	if _, err := dir.Issue(authority, request); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); deliver(t, "https://"+s.Addr()+Path, roots).serial == first.serial; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("the new certificate was never shown")
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("stopped with %v", err)
	}
}

// shown is how a delivery was answered, and with which certificate.
type shown struct {
	status        int
	proto, serial string
}

func deliver(t *testing.T, url string, roots *x509.CertPool) shown {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(opened))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = delivery(t, "pull_request", opened).Header
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	a := shown{status: resp.StatusCode, proto: resp.Proto}
	if resp.TLS != nil {
		a.serial = resp.TLS.PeerCertificates[0].SerialNumber.String()
	}
	return a
}
