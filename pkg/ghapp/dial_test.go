package ghapp

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

func TestAddressesOfGitHub(t *testing.T) {
	t.Parallel()
	const public, enterprise = "https://api.github.com/", "https://ghes.example/api/v3/"
	for _, c := range []struct {
		base, address   string
		public, private bool // allowed without and with PRIVATE_NETWORK
	}{
		{public, "140.82.112.5:443", true, true},
		{public, "[2606:50c0:8000::153]:443", true, true},
		{enterprise, "10.1.2.3:443", false, true},
		{enterprise, "172.16.0.1:443", false, true},
		{enterprise, "192.168.1.1:443", false, true},
		{enterprise, "[fd00::1]:443", false, true},
		{enterprise, "100.64.0.1:443", false, true},
		{enterprise, "[64:ff9b::a01:203]:443", false, true},
		{enterprise, "[::ffff:10.1.2.3]:443", false, true},
		{enterprise, "127.0.0.1:443", false, false},
		{enterprise, "[::1]:443", false, false},
		{enterprise, "[::ffff:127.0.0.1]:443", false, false},
		{enterprise, "169.254.169.254:80", false, false},
		{enterprise, "[::ffff:169.254.169.254]:80", false, false},
		{enterprise, "[fe80::1%eth0]:443", false, false},
		{enterprise, "0.0.0.0:443", false, false},
		{enterprise, "0.1.2.3:443", false, false},
		{enterprise, "[::]:443", false, false},
		{enterprise, "224.0.0.1:443", false, false},
		{enterprise, "255.255.255.255:443", false, false},
		{enterprise, "[2002:a01:203::1]:443", false, false},
		{enterprise, "nonsense", false, false},
		{"http://127.0.0.1:8080/", "127.0.0.1:8080", true, true}, // meant by who wrote it
		{"http://127.0.0.1:8080/", "127.0.0.2:8080", false, false},
		{"http://10.0.0.9/api/v3/", "10.0.0.9:80", true, true},
		{"http://[::1]:8080/", "[::1]:8080", true, true},
		{"http://localhost:8080/", "127.0.0.1:8080", true, true},
		{"http://localhost:8080/", "10.0.0.9:8080", false, true},
	} {
		base, err := url.Parse(c.base)
		if err != nil {
			t.Fatal(err)
		}
		for _, private := range []bool{false, true} {
			err := guardOf(base, private).control(t.Context(), "tcp", c.address, nil)
			if want := private && c.private || !private && c.public; (err == nil) != want {
				t.Errorf("%s at %s, private %t: %v", c.base, c.address, private, err)
			}
			if err != nil && !errors.Is(err, errAddress) {
				t.Errorf("not an errAddress: %v", err)
			}
		}
	}
}

// rebound leads every name to the address.
func rebound(t *testing.T, tr *http.Transport, address string) {
	t.Helper()
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, address) }
	t.Cleanup(tr.CloseIdleConnections)
}

// GitHub's name comes to lead into the machine: nobody is called there, no token is sent, and it is said why.
func TestReboundNameIsRefused(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(canary.Close)
	base, _ := parseBase("http://api.github.example")
	for _, private := range []bool{false, true} {
		cfg := Config{AppID: 7, PrivateKey: testKey(), BaseURL: base.String(), PrivateNetwork: private}
		tr, err := newTransport(cfg, base)
		if err != nil {
			t.Fatal(err)
		}
		rebound(t, tr, canary.Listener.Addr().String())
		a, err := NewApp(cfg, Deps{Transport: tr})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []*Client{a.JWT(), a.Client(1)} {
			_, err = c.Get(t.Context(), "app", nil)
			if f := Classify(err); f.Class != NotExecuted || f.Reason != ReasonAddress {
				t.Errorf("got %s %s", f.Class, f.Reason)
			}
		}
	}
	if hits.Load() != 0 {
		t.Errorf("the canary was called %d times", hits.Load())
	}
}

func TestOwnAuthority(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(ok))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the client that does not trust it
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	base, _ := parseBase(s.URL)
	for path, want := range map[string]Class{file: None, "": NotExecuted} {
		cfg := Config{AppID: 7, PrivateKey: testKey(), BaseURL: s.URL, CAFile: path}
		tr, err := newTransport(cfg, base)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(tr.CloseIdleConnections)
		a, err := NewApp(cfg, Deps{Transport: tr})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := a.JWT().Get(t.Context(), "app", nil)
		if f := Classify(err); f.Class != want {
			t.Errorf("with %q: %s %v", path, f.Class, err)
		}
		if err == nil && resp.ProtoMajor != 2 {
			t.Errorf("spoken by %s", resp.Proto)
		}
	}
}

// proxy is one that knows the only way to GitHub, by whatever name it is asked for.
func proxy(t *testing.T, to string, seen func(*http.Request)) *httptest.Server {
	t.Helper()
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen(r)
		if r.Method == http.MethodConnect {
			out, err := net.Dial("tcp", to)
			if err != nil {
				http.Error(w, "", http.StatusBadGateway)
				return
			}
			in, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			_, _ = io.Copy(in, out)
			_ = in.Close()
			return
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(p.Close)
	return p
}

func TestProxy(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(ok))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 10)
	p := proxy(t, s.Listener.Addr().String(), func(r *http.Request) {
		asked <- r.Method + " " + r.Host + " " + r.Header.Get("Proxy-Authorization")
		if strings.Contains(r.Header.Get("Authorization"), "Bearer") && r.Method == http.MethodConnect {
			t.Error("the proxy sees a credential of GitHub's")
		}
	})
	set := config.Secret("http://me:pw@" + p.Listener.Addr().String())
	for base, want := range map[string]string{
		"https://example.com/":     "CONNECT example.com:443 Basic bWU6cHc=", // the certificate of httptest is example.com's
		"http://ghes.example:8080": "GET ghes.example:8080 Basic bWU6cHc=",
	} {
		cfg := Config{AppID: 7, PrivateKey: testKey(), BaseURL: base, Proxy: set, CAFile: file}
		u, _ := parseBase(base)
		tr, err := newTransport(cfg, u)
		if err != nil {
			t.Fatal(err)
		}
		a, err := NewApp(cfg, Deps{Transport: tr})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.JWT().Get(t.Context(), "app", nil); err != nil {
			t.Errorf("%s: %v", base, err)
		}
		tr.CloseIdleConnections()
		select {
		case got := <-asked:
			if got != want {
				t.Errorf("the proxy was asked %q, want %q", got, want)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s: the proxy was not asked", base)
		}
	}
}

func TestNetworkSettings(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no such file":         {func(c *Config) { c.CAFile = empty + ".not" }, "CA_FILE"},
		"no certificate":       {func(c *Config) { c.CAFile = empty }, "CA_FILE"},
		"proxy without host":   {func(c *Config) { c.Proxy = "http://" }, "PROXY"},
		"proxy of another way": {func(c *Config) { c.Proxy = "ftp://me:hush@proxy" }, "PROXY"},
		"negative cache":       {func(c *Config) { c.Cache = -1 }, "CACHE"},
	} {
		cfg := Config{AppID: 7, PrivateKey: testKey(), BaseURL: "https://api.github.com"}
		c.change(&cfg)
		err := cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
