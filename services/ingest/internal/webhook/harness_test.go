package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret, greeting and greeted are GitHub's published test vector (docs.github.com, validating webhook
// deliveries).
const (
	secret   config.Secret = "It's a Secret to Everybody"
	greeting string        = "Hello, World!"
	greeted  string        = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
)

// bound is the largest body in these tests, in bytes.
const bound = 256 << 10

const sha = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"

// opened is the least that is read of a pull_request event.
const opened = `{"action":"opened","installation":{"id":7},"repository":{"id":11,"full_name":"acme/rocket","owner":{"id":3,"login":"acme"}},` +
	`"pull_request":{"number":5,"state":"open","draft":false,"updated_at":"2026-01-02T03:04:05Z","head":{"sha":"` + sha + `"},"base":{"ref":"main"}}}`

// keeper is a store that remembers what it was asked to keep.
type keeper struct {
	mu   sync.Mutex
	got  []received
	fail error
	say  ingest.Decision
}

type received struct {
	Source ingest.Source
	Digest [32]byte
	Size   int64
	Event  ingest.Event
}

func (k *keeper) Receive(_ context.Context, src ingest.Source, digest [32]byte, size int64, e ingest.Event) (ingest.Answer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.got = append(k.got, received{src, digest, size, e})
	d := k.say
	if d.Kind == "" {
		d = ingest.Decide(e)
	}
	return ingest.Answer{Receipt: ingest.ReceiptID{1}, Decision: d}, k.fail
}

func (k *keeper) calls() []received {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.got
}

// endpoint is a handler over a keeper, and what it logged.
type endpoint struct {
	*Handler
	kept *keeper
	logs *bytes.Buffer
}

func newEndpoint(t *testing.T, change ...func(*Config)) endpoint {
	t.Helper()
	cfg := Config{Secrets: []config.Secret{secret}, Hosts: []string{"github.com", "ghe.example.test"}, MaxBody: bound, Held: 2 * bound}
	for _, c := range change {
		c(&cfg)
	}
	e := endpoint{kept: &keeper{}, logs: &bytes.Buffer{}}
	log := slog.New(slog.NewJSONHandler(e.logs, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var err error
	if e.Handler, err = NewHandler(cfg, e.kept, log, noop.NewTracerProvider().Tracer("")); err != nil {
		t.Fatal(err)
	}
	return e
}

func sign(body string, with config.Secret) string {
	mac := hmac.New(sha256.New, []byte(with.Reveal()))
	mac.Write([]byte(body))
	return signaturePrefix + hex.EncodeToString(mac.Sum(nil))
}

// delivery is a request as GitHub makes it, rightly signed.
func delivery(t *testing.T, event, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, strings.NewReader(body))
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "GitHub-Hookshot/0000000",
		"X-GitHub-Event": event, "X-GitHub-Delivery": "eab7d317-e483-11f0-9f7a-79939be63a65", "X-GitHub-Hook-ID": "300000001",
		"X-GitHub-Hook-Installation-Target-Type": "integration", "X-GitHub-Hook-Installation-Target-ID": "424242",
		"X-Hub-Signature-256": sign(body, secret),
	} {
		r.Header.Set(name, value)
	}
	return r
}

// stream replaces a request's body by one of undeclared length.
func stream(r *http.Request, body io.Reader) *http.Request {
	r.Body, r.ContentLength = io.NopCloser(body), -1
	return r
}

type answered struct {
	code   int
	header http.Header
	reply
}

func (e endpoint) send(t *testing.T, r *http.Request) answered {
	t.Helper()
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	a := answered{code: w.Code, header: w.Header()}
	if err := json.Unmarshal(w.Body.Bytes(), &a.reply); err != nil {
		t.Fatalf("the answer is not JSON: %v in %q", err, w.Body)
	}
	return a
}

// refuses asserts an answer without a receipt, and that the store was never asked.
func (e endpoint) refuses(t *testing.T, r *http.Request, code int, reason string) answered {
	t.Helper()
	before := len(e.kept.calls())
	a := e.send(t, r)
	if a.code != code || a.Reason != reason {
		t.Errorf("answered %d %s %q, want %d %s", a.code, a.Reason, a.Error, code, reason)
	}
	if a.Receipt != "" || a.Decision != "" || a.Error == "" {
		t.Errorf("a refusal says %+v: it names no receipt and says what was wrong", a.reply)
	}
	if n := len(e.kept.calls()) - before; n != 0 {
		t.Errorf("the store was called %d times", n)
	}
	return a
}

func (e endpoint) accepts(t *testing.T, r *http.Request) answered {
	t.Helper()
	a := e.send(t, r)
	if a.code != http.StatusOK || a.Receipt == "" || a.Decision == "" || a.Error != "" {
		t.Errorf("answered %d %+v, want 200 with a receipt and a decision", a.code, a.reply)
	}
	return a
}

func contextWithStop(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	return ctx, stop
}
