package store

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/obs"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/webhook"
)

// endpoint is the real HTTP endpoint over some receiver, and the client that posts to it.
type endpoint struct {
	url, signature string
	body           []byte
	client         *http.Client
	posted         atomic.Int64
}

func newEndpoint(b *testing.B, store webhook.Receiver) *endpoint {
	b.Helper()
	telemetry, shutdown, err := obs.Start(b.Context(), obs.Config{}, "ingest", io.Discard)
	if err != nil {
		b.Fatal(err)
	}
	h, err := webhook.NewHandler(webhook.Config{
		Secrets: []config.Secret{benchSecret}, Hosts: []string{benchHost}, MaxBody: 26_214_400, Held: 64 << 20,
	}, store, telemetry.Log, telemetry.Tracer.Tracer("ingest"))
	if err != nil {
		b.Fatal(err)
	}
	server, err := webhook.NewServer("127.0.0.1:0", h, telemetry.Log)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	connections := &http.Transport{MaxIdleConnsPerHost: benchClients, DisableCompression: true}
	b.Cleanup(func() {
		connections.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
		if err := shutdown(context.WithoutCancel(ctx)); err != nil {
			b.Error(err)
		}
	})
	body := payload(b)
	mac := hmac.New(sha256.New, []byte(benchSecret))
	mac.Write(body)
	return &endpoint{
		url: "http://" + server.Addr() + webhook.Path, signature: "sha256=" + hex.EncodeToString(mac.Sum(nil)),
		body: body, client: &http.Client{Transport: connections},
	}
}

// post delivers the payload under a new delivery id.
func (e *endpoint) post() error {
	req, err := http.NewRequest(http.MethodPost, e.url, bytes.NewReader(e.body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "X-Hub-Signature-256": e.signature, "X-GitHub-Event": "pull_request",
		"X-GitHub-Delivery": newID().String(), "X-GitHub-Hook-Installation-Target-Type": "integration",
		"X-GitHub-Hook-Installation-Target-ID": "1",
	} {
		req.Header.Set(name, value)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"trigger_review"`)) {
		return fmt.Errorf("answered %d: %s", resp.StatusCode, answer)
	}
	e.posted.Add(1)
	return nil
}

// payload is a pull_request event of 25 KB in GitHub's proportions: few members that anybody reads among
// some 250 links of users and repositories.
func payload(b *testing.B) []byte {
	b.Helper()
	type object = map[string]any
	links := func(n int, of object) object {
		for i := range n {
			of[fmt.Sprintf("resource_%02d_url", i)] = fmt.Sprintf("https://api.github.com/repos/acme/rocket/resources/%02d{/id}{?page}", i)
		}
		return of
	}
	user := func() object {
		return links(14, object{"id": 7, "login": "acme", "type": "Organization", "site_admin": false})
	}
	repository := func() object {
		return links(42, object{"id": 701, "full_name": "acme/rocket", "private": true, "owner": user(), "description": "A rocket.", "topics": []string{"space"}})
	}
	branch := func(ref string) object {
		return object{"label": "acme:" + ref, "ref": ref, "sha": "6dcb09b5b57875f334f61aebed695e2e4193db5e", "user": user(), "repo": repository()}
	}
	body, err := json.Marshal(object{
		"action": "synchronize", "number": 7, "before": "7dcb09b5b57875f334f61aebed695e2e4193db5e",
		"installation": object{"id": 70, "node_id": "MDIzOkludGVncmF0aW9uSW5zdGFsbGF0aW9uNzA="},
		"repository":   repository(), "organization": user(), "sender": user(),
		"pull_request": links(10, object{
			"id": 1, "number": 7, "state": "open", "draft": false, "title": "Launch", "body": "It flies.\n\nIt lands, too.",
			"updated_at": "2026-01-02T03:04:05Z", "user": user(), "head": branch("engine"), "base": branch("main"),
			"assignees": []object{user()}, "additions": 12, "deletions": 3, "changed_files": 2, "merged": false,
		}),
	})
	if err != nil {
		b.Fatal(err)
	}
	if len(body) < 24_000 || len(body) > 26_000 {
		b.Fatalf("the payload has %d bytes", len(body))
	}
	return body
}
