package ghapp

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/pkg/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testKey = sync.OnceValue(func() config.Secret {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return config.Secret(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
})

// hub is a GitHub with one endpoint of interest; it mints a new token on every ask.
type hub struct {
	*httptest.Server
	mints  atomic.Int64
	onMint func(w http.ResponseWriter, r *http.Request) bool // true: answered
	life   time.Duration
}

func newHub(t *testing.T, serve http.HandlerFunc) *hub {
	t.Helper()
	h := &hub{life: time.Hour}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /app/installations/{id}/access_tokens", func(w http.ResponseWriter, r *http.Request) {
		n := h.mints.Add(1)
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
			http.Error(w, "no JWT", http.StatusUnauthorized)
			return
		}
		if h.onMint != nil && h.onMint(w, r) {
			return
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"token": fmt.Sprintf("secret-%s-%d", r.PathValue("id"), n), "expires_at": time.Now().Add(h.life).UTC(),
		})
	})
	mux.HandleFunc("/", serve)
	h.Server = httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h
}

// app connects to the hub on connections of its own, closed with the test.
func (h *hub) app(t *testing.T, change ...func(*Config)) *App {
	t.Helper()
	cfg := Config{AppID: 7, PrivateKey: testKey(), BaseURL: h.URL, Timeout: 5 * time.Second}
	for _, c := range change {
		c(&cfg)
	}
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := newTransport(cfg, base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.CloseIdleConnections)
	a, err := NewApp(cfg, Deps{Transport: tr})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) }

func TestConfigReportsEveryProblem(t *testing.T) {
	t.Parallel()
	err := Config{AppID: 0, PrivateKey: "not a key", BaseURL: "ftp://x", Timeout: -1}.Validate()
	for _, want := range []string{"APP_ID", "PRIVATE_KEY", "BASE_URL", "TIMEOUT"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not reported by %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "not a key") {
		t.Errorf("the key is repeated: %v", err)
	}
}

func TestBaseURLKeepsItsPathAndOneSlash(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://api.github.com":            "https://api.github.com/",
		"https://ghes.example/api/v3":       "https://ghes.example/api/v3/",
		"https://ghes.example/api/v3///":    "https://ghes.example/api/v3/",
		"http://127.0.0.1:8080/":            "http://127.0.0.1:8080/",
		"https://api.octo.ghe.com/":         "https://api.octo.ghe.com/",
		"https://u:p@ghes.example/":         "",
		"https://ghes.example/?a=b":         "",
		"api.github.com":                    "",
		"https://":                          "",
		"https://ghes.example/api/v3#there": "",
	} {
		got, err := parseBase(raw)
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("parseBase(%q) = %v, %v; want %q", raw, got, err, want)
		}
	}
}

func TestRequestCarriesVersionAgentAndToken(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 1)
	h := newHub(t, func(w http.ResponseWriter, r *http.Request) { seen <- r.Header; ok(w, r) })
	if _, err := h.app(t).Client(9).Get(t.Context(), "repositories/1", nil); err != nil {
		t.Fatal(err)
	}
	got := <-seen
	for name, want := range map[string]string{
		"Authorization": "token secret-9-1", "User-Agent": UserAgent, "X-Github-Api-Version": "2022-11-28", "Traceparent": "",
	} {
		if got.Get(name) != want {
			t.Errorf("%s = %q, want %q", name, got.Get(name), want)
		}
	}
}

func TestJWTClientSpeaksAsTheApp(t *testing.T) {
	t.Parallel()
	h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
		if auth := r.Header.Values("Authorization"); len(auth) != 1 || strings.Count(auth[0], ".") != 2 {
			t.Errorf("not one JWT: %d values", len(auth))
		}
		ok(w, r)
	})
	if _, err := h.app(t).JWT().Get(t.Context(), "app", nil); err != nil {
		t.Fatal(err)
	}
	if n := h.mints.Load(); n != 0 {
		t.Errorf("%d tokens minted", n)
	}
}

func TestEachInstallationHasOneClientOfItsOwn(t *testing.T) {
	t.Parallel()
	a := newHub(t, ok).app(t)
	one, again, two := a.Client(1), a.Client(1), a.Client(2)
	if one != again {
		t.Error("a second client for one installation")
	}
	if one == two || one.GitHub == two.GitHub {
		t.Error("two installations share a client")
	}
}

func TestQuotaIsPerInstallation(t *testing.T) {
	t.Parallel()
	h := newHub(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-RateLimit-Limit", "5000")
		w.Header().Set("X-RateLimit-Remaining", "41")
		w.Header().Set("X-RateLimit-Resource", "core")
		ok(w, r)
	})
	a := h.app(t)
	if _, err := a.Client(1).Get(t.Context(), "repositories/1", nil); err != nil {
		t.Fatal(err)
	}
	got, want := a.Client(1).Quota(), Quota{Limit: 5000, Remaining: 41, Resource: "core"}
	if got.Reset = want.Reset; got != want {
		t.Errorf("quota %+v, want %+v", got, want)
	}
	if got := a.Client(2).Quota(); got != (Quota{}) {
		t.Errorf("the other installation got %+v", got)
	}
}
