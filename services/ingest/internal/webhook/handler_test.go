package webhook

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

func TestDeliveryIsKeptAsItCame(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	a := e.accepts(t, delivery(t, "pull_request", opened))
	if a.Decision != "trigger_review" || a.Reason != "revision" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("answered %+v", a.reply)
	}
	want := []received{{
		Source: ingest.Source{Host: "github.com", Hook: "integration/424242", DeliveryID: "eab7d317-e483-11f0-9f7a-79939be63a65"},
		Digest: sha256.Sum256([]byte(opened)), Size: int64(len(opened)),
		Event: ingest.Event{
			Name: "pull_request", Action: "opened", InstallationID: 7,
			Repository: ingest.Repository{ID: 11, Name: "acme/rocket", Owner: ingest.Account{ID: 3, Login: "acme"}},
			PullRequest: ingest.PullRequest{
				Number: 5, HeadSHA: sha, BaseRef: "main", State: "open", UpdatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			},
		},
	}}
	if diff := cmp.Diff(want, e.kept.calls()); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		r := delivery(t, "pull_request", opened)
		r.Method = method
		a := newEndpoint(t).refuses(t, r, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED")
		if a.header.Get("Allow") != http.MethodPost {
			t.Errorf("%s: Allow is %q (RFC 9110, 15.5.6)", method, a.header.Get("Allow"))
		}
	}
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	for _, ok := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON"} {
		r := delivery(t, "pull_request", opened)
		r.Header.Set("Content-Type", ok)
		e.accepts(t, r)
	}
	for _, no := range []string{
		"", "text/plain", "text/json", "application/jsonp", "application/json+x",
		"application", "application/json; charset", "multipart/form-data; boundary=x", "*/*", "application/json, text/plain",
	} {
		r := delivery(t, "pull_request", opened)
		r.Header.Set("Content-Type", no)
		e.refuses(t, r, http.StatusUnsupportedMediaType, "UNSUPPORTED_CONTENT_TYPE")
	}
	twice := delivery(t, "pull_request", opened)
	twice.Header["Content-Type"] = []string{"application/json", "application/x-www-form-urlencoded"}
	e.refuses(t, twice, http.StatusUnsupportedMediaType, "UNSUPPORTED_CONTENT_TYPE")
	for _, encoding := range []string{"gzip", "deflate", "br", "zstd", "identity"} {
		r := delivery(t, "pull_request", opened)
		r.Header.Set("Content-Encoding", encoding)
		e.refuses(t, r, http.StatusUnsupportedMediaType, "UNSUPPORTED_CONTENT_TYPE")
	}
}

// TestHeaders: what names a delivery must be there once, be short, and be plain text that a database can
// hold. These headers aren't covered by the signature.
func TestHeaders(t *testing.T) {
	t.Parallel()
	names := []string{"X-GitHub-Event", "X-GitHub-Delivery", "X-GitHub-Hook-Installation-Target-Type", "X-GitHub-Hook-Installation-Target-ID"}
	for _, name := range names {
		for what, values := range map[string][]string{
			"missing": nil, "empty": {""}, "twice": {"a", "b"}, "too long": {strings.Repeat("a", 200)},
			"not UTF-8": {"a\xff"}, "continuation bytes": {strings.Repeat("\x80", 60)}, "a NUL": {"a\x00"}, "a space": {"a b"},
			"not ASCII": {"é"}, "a newline": {"a\nb"}, "DEL": {"a\x7f"},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				r := delivery(t, "pull_request", opened)
				r.Header[http.CanonicalHeaderKey(name)] = values
				newEndpoint(t).refuses(t, r, http.StatusBadRequest, "MALFORMED_HEADERS")
			})
		}
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{"": "github.com", "github.com": "github.com", "ghe.example.test": "ghe.example.test", "GHE.Example.Test": "ghe.example.test"} {
		e := newEndpoint(t)
		r := delivery(t, "pull_request", opened)
		r.Header.Set("X-GitHub-Enterprise-Host", host)
		e.accepts(t, r)
		if got := e.kept.calls()[0].Source.Host; got != want {
			t.Errorf("host %q is kept as %q, want %q", host, got, want)
		}
	}
	for _, host := range []string{"ghe.example.test.evil.test", "evil.test", "github.com:443", "ghe.example.test."} {
		r := delivery(t, "pull_request", opened)
		r.Header.Set("X-GitHub-Enterprise-Host", host)
		newEndpoint(t).refuses(t, r, http.StatusBadRequest, "HOST_NOT_CONFIGURED")
	}
}

// TestLongestActivityFits: the longest headers that are accepted make an activity id that the scheduler's
// contract takes, at most 300 characters.
func TestLongestActivityFits(t *testing.T) {
	t.Parallel()
	r := ingest.Receipt{
		Source: ingest.Source{
			Host: strings.Repeat("h", ingest.MaxHost), Hook: fmt.Sprintf("integration/%d", int64(1<<62)),
			DeliveryID: strings.Repeat("d", maxWord),
		},
		RepositoryID: 1 << 62, Number: 1 << 62,
	}
	if n := len(r.ActivityID(1 << 30)); n > 300 {
		t.Errorf("%d characters", n)
	}
}

func TestUnknownEventsAndActions(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	for event, body := range map[string]string{
		"star":                    `{"action":"created"}`,
		"event_of_next_year":      `{"action":"exploded","anything":[{"deep":{"er":[1,2,3]}}]}`,
		"push":                    `{"ref":"refs/heads/main"}`,
		"status":                  `{}`,
		"ping":                    `{"zen":"Design for failure.","hook_id":1}`,
		"shapes we do not know":   ``,
		"oddly_typed_action":      `{"action":{"name":"created"},"installation":17,"repository":"acme/rocket"}`,
		"oddly_typed_ids":         `{"installation":{"id":"x"},"repository":{"id":-1.5,"full_name":7}}`,
		"oddly_typed_lists":       `{"installation":[1],"repository":[],"action":null}`,
		"member":                  `{"action":"added","account":{"id":1},"installation":{"id":2}}`,
		"repository_with_an_item": `{"repository":{"id":1e3}}`,
	} {
		if body == "" {
			continue
		}
		a := e.accepts(t, delivery(t, event, body))
		if a.Decision != "ignore" {
			t.Errorf("%s: %+v", event, a.reply)
		}
	}
	for event, body := range map[string]string{
		"pull_request":              strings.Replace(opened, "opened", "beamed_up", 1),
		"installation":              strings.Replace(installed, "created", "beamed_up", 1),
		"installation_repositories": strings.Replace(installed, "created", "beamed_up", 1),
	} {
		if a := e.accepts(t, delivery(t, event, body)); a.Decision != "ignore" || a.Reason != "action_ignored" {
			t.Errorf("%s: %+v", event, a.reply)
		}
	}
}

// TestStoreFails: GitHub is told that the delivery failed, and to come again; nobody is told why.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]error{
		"database away":     fmt.Errorf("receive: %w: dial tcp 10.0.0.1:5432", pg.ErrUnavailable),
		"outcome unknown":   fmt.Errorf("receive: %w", pg.ErrUnknownOutcome),
		"deadline":          http.ErrHandlerTimeout,
		"anything else too": errors.New("password is hunter2"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t)
			e.kept.fail = fail
			a := e.send(t, delivery(t, "pull_request", opened))
			if a.code != http.StatusServiceUnavailable || a.Reason != "STORE_UNAVAILABLE" || a.header.Get("Retry-After") == "" || a.Receipt != "" {
				t.Errorf("answered %d %+v %v", a.code, a.reply, a.header)
			}
			if strings.Contains(a.Error, "hunter2") || strings.Contains(a.Error, "10.0.0.1") {
				t.Errorf("the sender is told %q", a.Error)
			}
		})
	}
}

func TestDigestConflictIsAnAlert(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	e.kept.fail = fmt.Errorf("receive: %w", ingest.ErrDigestConflict)
	a := e.send(t, delivery(t, "pull_request", opened))
	if a.code != http.StatusConflict || a.Reason != "DELIVERY_CONFLICT" || a.Receipt != "" {
		t.Errorf("answered %d %+v", a.code, a.reply)
	}
	for _, want := range []string{`"alert":"delivery_conflict"`, "eab7d317-e483-11f0-9f7a-79939be63a65", "integration/424242", "github.com"} {
		if !strings.Contains(e.logs.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, e.logs)
		}
	}
}

func TestForeignPayloadIsAnAlert(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"installation_mismatch", "project_of_another_tenant"} {
		e := newEndpoint(t)
		e.kept.say = ingest.Decision{Kind: ingest.Ignore, Reason: reason}
		e.accepts(t, delivery(t, "pull_request", opened))
		for _, want := range []string{`"alert":"foreign_payload"`, reason, "eab7d317-e483-11f0-9f7a-79939be63a65"} {
			if !strings.Contains(e.logs.String(), want) {
				t.Errorf("the log lacks %s:\n%s", want, e.logs)
			}
		}
	}
}

// TestSecretsAndPayloadsAreNotLogged, whatever is answered.
func TestSecretsAndPayloadsAreNotLogged(t *testing.T) {
	t.Parallel()
	const canary = "canary-0d8f"
	e := newEndpoint(t)
	for _, body := range []string{
		`{"action":"` + canary + `"`, `{"` + canary + `":1,"` + canary + `":2}`, `{"action":1,"x":"` + canary + `"}`,
		strings.Replace(opened, `"main"`, `"`+canary+`"`, 1), strings.Replace(opened, `"2026-01-02T03:04:05Z"`, `"`+canary+`"`, 1),
	} {
		a := e.send(t, delivery(t, "pull_request", body))
		bad := delivery(t, "pull_request", body)
		bad.Header.Set("X-Hub-Signature-256", "sha256="+canary)
		b := e.send(t, bad)
		for _, out := range []string{a.Error, b.Error, e.logs.String()} {
			if strings.Contains(out, canary) || strings.Contains(out, secret.Reveal()) {
				t.Errorf("found in %q", out)
			}
		}
	}
}

// TestTraceStartsHere: a traceparent that the sender brings is linked, not trusted as a parent.
func TestTraceStartsHere(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	e := newEndpoint(t)
	e.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("")
	r := delivery(t, "pull_request", opened)
	r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	e.accepts(t, r)
	e.accepts(t, delivery(t, "pull_request", opened))
	strange := delivery(t, "pull_request", opened)
	strange.Header.Set("X-GitHub-Delivery", strings.Repeat("\x80", 60))
	e.refuses(t, strange, http.StatusBadRequest, "MALFORMED_HEADERS")
	var ended []sdktrace.ReadOnlySpan
	for _, s := range spans.Ended() {
		if s.Name() == obs.SpanWebhook {
			ended = append(ended, s)
		} else if s.Name() != obs.SpanReceipt || !s.Parent().IsValid() {
			t.Errorf("span %s under %s", s.Name(), s.Parent().SpanID())
		}
	}
	if len(ended) != 3 || len(spans.Ended()) != 5 {
		t.Fatalf("%d of %d spans are webhooks, want 3 of 5", len(ended), len(spans.Ended()))
	}
	got := ended[0]
	if got.Parent().IsValid() || got.SpanContext().TraceID().String() == "0af7651916cd43dd8448eb211c80319c" {
		t.Error("the sender's trace was continued")
	}
	if l := got.Links(); len(l) != 1 || l[0].SpanContext.SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("links: %+v", l)
	}
	if l := ended[1].Links(); len(l) != 0 {
		t.Errorf("links without a traceparent: %+v", l)
	}
}

// TestServes runs the real server: one delivery is answered, another path isn't found, and it stops.
func TestServes(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	s, err := NewServer("127.0.0.1:0", e, e.log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := contextWithStop(t)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]int{Path: http.StatusOK, "/": http.StatusNotFound, Path + "/x": http.StatusNotFound} {
		r := delivery(t, "pull_request", opened)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr()+path, strings.NewReader(opened))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = r.Header
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	// Endless and chunked, over a real connection: answered or cut, and not read to the end.
	endless := &counting{}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr()+Path, io.NopCloser(endless))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = delivery(t, "pull_request", opened).Header
	if resp, err := client.Do(req); err == nil {
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("endless: %d", resp.StatusCode)
		}
		_ = resp.Body.Close()
	}
	if read := endless.read.Load(); read > 64*bound {
		t.Errorf("%d bytes were taken of an endless body", read)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("stopped with %v", err)
	}
	if _, err := NewServer("127.0.0.1:notaport", e, e.log); err == nil {
		t.Error("bound a port that does not exist")
	}
}
