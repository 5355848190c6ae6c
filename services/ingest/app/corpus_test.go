package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/fenceline-dev/fenceline/migrations"
	"github.com/fenceline-dev/fenceline/pkg/config"
	"github.com/fenceline-dev/fenceline/pkg/ghapp"
	"github.com/fenceline-dev/fenceline/pkg/outbox"
	"github.com/fenceline-dev/fenceline/pkg/pg"
	"github.com/fenceline-dev/fenceline/pkg/pgtest"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/store"
	"github.com/fenceline-dev/fenceline/services/ingest/internal/webhook"
)

// corpus is an index of GitHub's own sample payloads.
type corpus struct {
	dir      string
	Secret   config.Secret `json:"secret_for_signature_256"`
	AppID    int64         `json:"app_id"`
	Fixtures []fixture     `json:"fixtures"`
}

type fixture struct {
	Event     string            `json:"event"`
	File      string            `json:"file"`
	Decision  string            `json:"decision"`
	SHA256    string            `json:"sha256"`
	Signature string            `json:"signature_256"`
	Headers   map[string]string `json:"headers"`
	Keys      struct {
		InstallationID *int64  `json:"installation_id"`
		RepositoryID   *int64  `json:"repository_id"`
		Repository     *string `json:"repository"`
		Number         *int64  `json:"pr_number"`
		HeadSHA        *string `json:"head_sha"`
		BaseRef        *string `json:"base_ref"`
		Before         *string `json:"before"`
	} `json:"keys"`
}

// loadCorpus finds the index in $GITHUB_CORPUS, or beside the workspace.
func loadCorpus(t *testing.T) corpus {
	t.Helper()
	c := corpus{dir: os.Getenv("GITHUB_CORPUS")}
	for at, err := os.Getwd(); c.dir == "" && err == nil && at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, missing := os.Stat(filepath.Join(at, "go.work")); missing == nil {
			c.dir = filepath.Join(at, "..", "shared", "github")
		}
	}
	index, err := os.ReadFile(filepath.Join(c.dir, "index.json"))
	if err != nil {
		t.Skip("no corpus: set GITHUB_CORPUS to the folder with the index of GitHub's sample payloads")
	}
	var raw struct {
		corpus
		Secret string `json:"secret_for_signature_256"`
	}
	if err := json.Unmarshal(index, &raw); err != nil {
		t.Fatal(err)
	}
	raw.dir, raw.corpus.Secret = c.dir, config.Secret(raw.Secret)
	return raw.corpus
}

// TestCorpus posts every sample payload to the real endpoint over a real database, each as if it were the
// first that ever came: answer, decision and receipt are what the index says of it in isolation.
func TestCorpus(t *testing.T) {
	t.Parallel()
	c := loadCorpus(t)
	d := pgtest.New(t, migrations.FS)
	db := d.Open(t, "ingest")
	if len(c.Fixtures) == 0 {
		t.Fatal("the index names no fixtures")
	}
	for _, f := range c.Fixtures {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(f.File, "webhooks/"), ".json"), func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join(c.dir, f.File))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Admin(t).Exec(t.Context(), "TRUNCATE ingest.accounts, ingest.installations, ingest.projects, ingest.deliveries, ingest.replays, ingest.requests, ingest.commands, ingest.outbox"); err != nil {
				t.Fatal(err)
			}
			post(t, c, f, body, db, d)
		})
	}
}

func post(t *testing.T, c corpus, f fixture, body []byte, db *pg.DB, d *pgtest.DB) {
	t.Helper()
	cfg := Config{GitHub: ghapp.Config{AppID: c.AppID}, Hosts: []string{"github.com", "ghe.example.test"}, Accounts: []string{"*"}, Enroll: "auto", Commands: CommandConfig{Short: true}}
	handler, err := webhook.NewHandler(webhook.Config{
		Secrets: []config.Secret{c.Secret}, Hosts: cfg.hosts(), MaxBody: 26_214_400,
	}, store.New(db, outbox.New(service), cfg.policy()), slog.New(slog.DiscardHandler), noop.NewTracerProvider().Tracer(""))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(c.Secret.Reveal()))
	mac.Write(body)
	signature := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	if signature != f.Signature {
		t.Errorf("the index signs these bytes as %s, they are %s", f.Signature, signature)
	}
	var first answer
	for _, again := range []bool{false, true} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, webhook.Path, bytes.NewReader(body))
		for name, value := range f.Headers {
			r.Header.Set(name, value)
		}
		r.Header.Set("X-Hub-Signature-256", signature)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var got answer
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
			t.Fatalf("answered %d %s (%v), want 200", w.Code, w.Body, err)
		}
		if again {
			first.Duplicate = true
			if got != first {
				t.Errorf("again answered %+v, want %+v", got, first)
			}
			continue
		}
		first = got
		checkDecision(t, f, got)
	}
	checkReceipt(t, f, d, first)
}

type answer struct {
	Decision  string `json:"decision"`
	Reason    string `json:"reason"`
	Receipt   string `json:"receipt_id"`
	Duplicate bool   `json:"duplicate"`
}

// actedOn are the events whose decision the index names; every other one is ignored, on record.
var actedOn = map[string]bool{
	"pull_request": true, "ping": true, "installation": true, "installation_repositories": true,
	"issue_comment": true, "check_run": true, "check_suite": true,
	"repository": true, "organization": true, "installation_target": true,
}

func checkDecision(t *testing.T, f fixture, got answer) {
	t.Helper()
	want := f.Decision
	if !actedOn[f.Event] && got.Reason != "event_ignored" {
		t.Errorf("ignored because of %q, want event_ignored", got.Reason)
	}
	if got.Decision != want || got.Reason == "" || got.Duplicate {
		t.Errorf("decided %+v, want %s", got, want)
	}
}

func checkReceipt(t *testing.T, f fixture, d *pgtest.DB, got answer) {
	t.Helper()
	const row = `
SELECT json_build_object('host', host, 'delivery', delivery_id, 'event', event, 'decision', decision, 'reason', reason, 'digest', encode(digest, 'hex'),
       'installation_id', installation_id, 'repository_id', repository_id, 'repository', repository, 'pr_number', number,
       'head_sha', head_sha, 'base_ref', base_ref, 'before', before_sha, 'duplicates', duplicates)::text FROM ingest.deliveries`
	type receipt struct {
		Host, Delivery, Event, Decision, Reason, Digest string
		InstallationID                                  int64 `json:"installation_id"`
		RepositoryID                                    int64 `json:"repository_id"`
		Repository                                      string
		Number                                          int64  `json:"pr_number"`
		HeadSHA                                         string `json:"head_sha"`
		BaseRef                                         string `json:"base_ref"`
		Before                                          string
		Duplicates                                      int
	}
	var r receipt
	if err := json.Unmarshal([]byte(pgtest.Query[string](t, d, row)), &r); err != nil {
		t.Fatal(err)
	}
	want := receipt{
		Host: cmp.Or(f.Headers["X-GitHub-Enterprise-Host"], "github.com"), Delivery: f.Headers["X-GitHub-Delivery"], Event: f.Event,
		Decision: got.Decision, Reason: got.Reason, Digest: f.SHA256, Duplicates: 1,
		InstallationID: or(f.Keys.InstallationID), RepositoryID: or(f.Keys.RepositoryID), Repository: or(f.Keys.Repository),
	}
	if f.Event == "pull_request" {
		want.Number, want.HeadSHA, want.BaseRef, want.Before = or(f.Keys.Number), or(f.Keys.HeadSHA), or(f.Keys.BaseRef), or(f.Keys.Before)
	}
	if f.Event == "issue_comment" {
		want.Number = or(f.Keys.Number)
	}
	if r != want {
		t.Errorf("the receipt is\n%+v, want\n%+v", r, want)
	}
	// What people ask for waits in a row; what happened is told to the scheduler.
	told := pgtest.Query[int64](t, d, "SELECT count(*) FROM ingest.outbox WHERE destination LIKE '%/RecordActivity'")
	kept := pgtest.Query[int64](t, d, "SELECT count(*) FROM ingest.commands")
	var wantTold, wantKept int64
	if got.Decision == string(ingest.TriggerReview) || got.Decision == string(ingest.UpdateTarget) {
		if wantTold = 1; f.Event != "pull_request" {
			wantTold, wantKept = 0, 1
		}
	}
	if told != wantTold || kept != wantKept {
		t.Errorf("%s: %d activities and %d commands, want %d and %d", got.Decision, told, kept, wantTold, wantKept)
	}
}

func or[T any](v *T) T {
	if v == nil {
		var zero T
		return zero
	}
	return *v
}

// TestDatabaseAway: GitHub shows a failed delivery, and the same delivery later is taken.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t, migrations.FS)
	cfg := Config{GitHub: ghapp.Config{AppID: 424242}, Hosts: []string{"github.com"}, Accounts: []string{"*"}, Enroll: "auto"}
	handler, err := webhook.NewHandler(webhook.Config{
		Secrets: []config.Secret{"correct horse battery"}, Hosts: []string{"github.com"}, MaxBody: 1 << 20,
	}, store.New(d.Open(t, service), outbox.New(service), cfg.policy()), slog.New(slog.DiscardHandler), noop.NewTracerProvider().Tracer(""))
	if err != nil {
		t.Fatal(err)
	}
	deliver := func() *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, webhook.Path, strings.NewReader(opened))
		mac := hmac.New(sha256.New, []byte("correct horse battery"))
		mac.Write([]byte(opened))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "X-GitHub-Event": "pull_request", "X-GitHub-Delivery": "guid",
			"X-GitHub-Hook-Installation-Target-Type": "integration", "X-GitHub-Hook-Installation-Target-ID": "424242",
			"X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
		} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	elsewhere, err := pgx.ParseConfig(d.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere.Database = "postgres"
	admin, err := pgx.ConnectConfig(t.Context(), elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(context.WithoutCancel(t.Context())) }()
	exec := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("ALTER DATABASE " + d.Name + " ALLOW_CONNECTIONS false")
	exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + d.Name + "'")
	for range 2 {
		if w := deliver(); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "STORE_UNAVAILABLE") {
			t.Errorf("answered %d %s %v", w.Code, w.Body, w.Header())
		}
	}
	exec("ALTER DATABASE " + d.Name + " ALLOW_CONNECTIONS true")
	if w := deliver(); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "duplicate") {
		t.Errorf("later answered %d %s", w.Code, w.Body)
	}
	if n := pgtest.Query[int64](t, d, "SELECT count(*) FROM ingest.outbox"); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
}
